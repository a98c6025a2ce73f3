// Broken models: fields of a good one changed at random, so that what parses still reaches deep into the importer.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "onnx/onnx_pb.h"

namespace wl::testing {

// `count` mutations of the message or of those inside it.
void mutate(google::protobuf::Message& message, int count, std::mt19937_64& rng);

// Bytes changed, removed or doubled.
void mutate_bytes(std::string& bytes, int count, std::mt19937_64& rng);

}  // namespace wl::testing
