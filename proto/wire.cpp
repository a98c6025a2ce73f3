// The functions from_proto(), which check the limits of all fields of a message and then convert it, and the conversion
// of records to and from the bytes that the store keeps.
#include "proto/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <iterator>

#include "proto/limits.h"
#include "proto/wire_internal.h"

namespace wl {
namespace {

namespace pb = ::google::protobuf;

template <typename Message>
auto checked(const Message& message) -> decltype(convert(message)) {
  WL_RETURN_IF_ERROR(check_fields(message));
  return convert(message);
}

template <typename Message>
auto decode(std::string_view bytes, const char* what) -> decltype(convert(Message())) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(absl::StrCat("stored ", what, ": its ", bytes.size(), " bytes cannot be read"));
  }
  return checked(message);
}

}  // namespace

absl::StatusOr<Source> from_proto(const v1::Source& message) {
  return checked(message);
}
absl::StatusOr<Problem> from_proto(const v1::Problem& message) {
  return checked(message);
}
absl::StatusOr<Check> from_proto(const v1::Check& message) {
  return checked(message);
}
absl::StatusOr<Recipe> from_proto(const v1::Recipe& message) {
  return checked(message);
}
absl::StatusOr<Candidate> from_proto(const v1::Candidate& message) {
  return checked(message);
}
absl::StatusOr<Trial> from_proto(const v1::Trial& message) {
  return checked(message);
}
absl::StatusOr<Batch> from_proto(const v1::Batch& message) {
  return checked(message);
}
absl::StatusOr<Device> from_proto(const v1::Device& message) {
  return checked(message);
}
absl::StatusOr<TuneOptions> from_proto(const v1::TuneOptions& message) {
  return checked(message);
}
absl::StatusOr<KernelRecord> from_proto(const v1::KernelRecord& message) {
  return checked(message);
}
absl::StatusOr<KernelRecord> manifest_from_proto(const v1::KernelRecord& message) {
  WL_RETURN_IF_ERROR(check_fields(message));
  return convert_manifest(message);
}
absl::StatusOr<JobResult> from_proto(const v1::JobResult& message) {
  return checked(message);
}
absl::StatusOr<JobProgress> from_proto(const v1::Progress& message) {
  return checked(message);
}
absl::StatusOr<Job> from_proto(const v1::Job& message) {
  return checked(message);
}

std::string encode(const TuneOptions& options) {
  return to_proto(options).SerializeAsString();
}
std::string encode(const KernelRecord& record) {
  return to_proto(record).SerializeAsString();
}
std::string encode(const JobResult& result) {
  return to_proto(result).SerializeAsString();
}
std::string encode(const Device& device) {
  return to_proto(device).SerializeAsString();
}
std::string encode(const Batch& batch) {
  return to_proto(batch).SerializeAsString();
}

absl::StatusOr<TuneOptions> decode_options(std::string_view bytes) {
  return decode<v1::TuneOptions>(bytes, "options");
}
absl::StatusOr<KernelRecord> decode_record(std::string_view bytes) {
  return decode<v1::KernelRecord>(bytes, "record");
}
absl::StatusOr<RecordNames> decode_names(std::string_view bytes) {
  using pb::internal::WireFormatLite;
  RecordNames out;
  // The members for the record's fields 1, 2 and 3, in this order.
  std::string* const fields[] = {&out.digest, &out.key, &out.environment};
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool wanted = field >= 1 && field <= std::ssize(fields) &&
                        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (wanted ? !WireFormatLite::ReadBytes(&in, fields[field - 1]) : !WireFormatLite::SkipField(&in, tag)) break;
  }
  if (in.ConsumedEntireMessage()) return out;
  return absl::DataLossError(absl::StrCat("stored record: its ", bytes.size(), " bytes cannot be read"));
}
absl::StatusOr<JobResult> decode_result(std::string_view bytes) {
  return decode<v1::JobResult>(bytes, "result");
}
absl::StatusOr<Device> decode_device(std::string_view bytes) {
  return decode<v1::Device>(bytes, "device");
}
absl::StatusOr<Batch> decode_batch(std::string_view bytes) {
  return decode<v1::Batch>(bytes, "batch");
}

}  // namespace wl
