// Random changes of fields or bytes of a valid model. Mutants that can still be parsed test the inner parts of the
// importer.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "onnx/onnx_pb.h"

namespace wl::testing {

// Makes `count` random changes of fields of the message or of the messages inside it.
void mutate(google::protobuf::Message& message, int count, std::mt19937_64& rng);

// Makes `count` random changes of bytes: replaced, removed or duplicated ones.
void mutate_bytes(std::string& bytes, int count, std::mt19937_64& rng);

}  // namespace wl::testing
