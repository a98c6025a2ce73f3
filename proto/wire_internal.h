// Shared by the source files of wire only.
#pragma once

#include <string>
#include <vector>

#include "proto/wire.h"

namespace wl {

absl::StatusOr<DType> dtype_from_wire(const std::string& name, const char* field);
absl::StatusOr<std::vector<int64_t>> shape_from_wire(const google::protobuf::RepeatedField<int64_t>& shape,
                                                     const char* field);
absl::StatusOr<Outcome> outcome_from_wire(v1::Outcome outcome);
v1::Outcome outcome_to_wire(Outcome outcome);
void counts_to_wire(const OutcomeCounts& counts, google::protobuf::RepeatedPtrField<v1::OutcomeCount>* out);
absl::StatusOr<OutcomeCounts> counts_from_wire(const google::protobuf::RepeatedPtrField<v1::OutcomeCount>& in);
// Replaces bytes that are not UTF-8 by '?': proto3 strings must be UTF-8, and the output of a compiler or a crashing
// kernel need not be.
std::string text_for_wire(const std::string& text);

}  // namespace wl
