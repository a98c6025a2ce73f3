// Broken models: random changes of fields in a good model, so that those that parse reach deep into the importer.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "onnx/onnx_pb.h"

namespace wl::testing {

// Makes `count` mutations of the message or of messages inside it.
void mutate(google::protobuf::Message& message, int count, std::mt19937_64& rng);

// Changes, removes or duplicates bytes.
void mutate_bytes(std::string& bytes, int count, std::mt19937_64& rng);

}  // namespace wl::testing
