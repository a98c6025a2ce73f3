// Conversions that the source files proto/wire*.cpp share; no other file uses them.
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
// Returns the text of a message (of a compiler, a kernel or an error) as it is sent: in UTF-8, and cut to kMostMessage
// bytes.
std::string message_for_wire(const std::string& text);

// Convert as from_proto() does, but without the check of the fields' limits, which must have been made before.
absl::StatusOr<Source> convert(const v1::Source& message);
absl::StatusOr<Problem> convert(const v1::Problem& message);
absl::StatusOr<Check> convert(const v1::Check& message);
absl::StatusOr<Recipe> convert(const v1::Recipe& message);
absl::StatusOr<Candidate> convert(const v1::Candidate& message);
absl::StatusOr<Trial> convert(const v1::Trial& message);
absl::StatusOr<Batch> convert(const v1::Batch& message);
absl::StatusOr<Device> convert(const v1::Device& message);
absl::StatusOr<TuneOptions> convert(const v1::TuneOptions& message);
absl::StatusOr<KernelRecord> convert(const v1::KernelRecord& message);
absl::StatusOr<KernelRecord> convert_manifest(const v1::KernelRecord& message);  // does not check the record's digest
absl::StatusOr<JobResult> convert(const v1::JobResult& message);
absl::StatusOr<JobProgress> convert(const v1::Progress& message);
absl::StatusOr<Job> convert(const v1::Job& message);

}  // namespace wl
