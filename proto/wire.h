// The only conversion between protobuf messages and the structs of compiler/base (records.h, job.h). to_proto never
// fails; it cuts texts that are only for people (labels, messages, names of groups) to their limits. from_proto
// validates data from other processes, and its error says which field is wrong. First it checks every text, list and
// number by its limits (proto/limits.h), so that no name in a struct is a path or has control characters; after that it
// checks conditions on several fields. A round trip gives equal data, except for texts that were cut. encode and decode
// convert structs to and from serialised messages, for the store's payload columns; these bytes are never hashed.
#pragma once

#include <string>
#include <string_view>

#include "compiler/base/job.h"
#include "compiler/base/records.h"
#include "compiler/base/status.h"
#include "warploom/v1/kernel_store.pb.h"
#include "warploom/v1/records.pb.h"
#include "warploom/v1/tuning.pb.h"

namespace wl {

namespace v1 = ::warploom::v1;

v1::Source to_proto(const Source& source);
v1::Problem to_proto(const Problem& problem);
v1::Check to_proto(const Check& check);
v1::Recipe to_proto(const Recipe& recipe);
v1::Candidate to_proto(const Candidate& candidate);
v1::Trial to_proto(const Trial& trial);
v1::Batch to_proto(const Batch& batch);
v1::Device to_proto(const Device& device);
v1::MeasuredRates to_proto(const MeasuredRates& rates);
MeasuredRates from_proto(const v1::MeasuredRates& message);  // the message's fields must have been checked (limits.h)
v1::TuneOptions to_proto(const TuneOptions& options);
v1::KernelRecord to_proto(const KernelRecord& record);
v1::JobResult to_proto(const JobResult& result);
v1::Progress to_proto(const JobProgress& progress);
v1::Job to_proto(const Job& job);

absl::StatusOr<Source> from_proto(const v1::Source& message);
absl::StatusOr<Problem> from_proto(const v1::Problem& message);
absl::StatusOr<Check> from_proto(const v1::Check& message);
absl::StatusOr<Recipe> from_proto(const v1::Recipe& message);
absl::StatusOr<Candidate> from_proto(const v1::Candidate& message);
absl::StatusOr<Trial> from_proto(const v1::Trial& message);
absl::StatusOr<Batch> from_proto(const v1::Batch& message);
absl::StatusOr<Device> from_proto(const v1::Device& message);
absl::StatusOr<TuneOptions> from_proto(const v1::TuneOptions& message);
// Converts a record. DataLoss: the message's digest does not match its other fields.
absl::StatusOr<KernelRecord> from_proto(const v1::KernelRecord& message);
// Converts a record that was sent without source.prelude and source.text (GetKernelRequest.manifest_only). Its digest
// cannot be checked.
absl::StatusOr<KernelRecord> manifest_from_proto(const v1::KernelRecord& message);
absl::StatusOr<JobResult> from_proto(const v1::JobResult& message);
absl::StatusOr<JobProgress> from_proto(const v1::Progress& message);
absl::StatusOr<Job> from_proto(const v1::Job& message);

std::string encode(const TuneOptions& options);
std::string encode(const KernelRecord& record);
std::string encode(const JobResult& result);
std::string encode(const Device& device);
std::string encode(const Batch& batch);
absl::StatusOr<TuneOptions> decode_options(std::string_view bytes);
absl::StatusOr<KernelRecord> decode_record(std::string_view bytes);
// The names in a record. decode_names() reads them from the bytes of the record's message, without reading or checking
// anything else. DataLoss: the bytes are not a message.
struct RecordNames {
  std::string digest, key, environment;
};
absl::StatusOr<RecordNames> decode_names(std::string_view bytes);
absl::StatusOr<JobResult> decode_result(std::string_view bytes);
absl::StatusOr<Device> decode_device(std::string_view bytes);
absl::StatusOr<Batch> decode_batch(std::string_view bytes);

}  // namespace wl
