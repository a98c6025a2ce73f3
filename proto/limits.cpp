#include "proto/limits.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/base/names.h"
#include "compiler/base/status.h"
#include "proto/protocol.h"
#include "proto/trust/heads.h"
#include "warploom/v1/records.pb.h"

namespace wl {
namespace {

namespace pb = ::google::protobuf;
namespace v1 = ::warploom::v1;

constexpr size_t kWordBytes = 128, kDeviceName = 256, kPrelude = 4 << 20, kSource = 16 << 20, kAnswer = 64 << 20;
constexpr int kMostSamples = 1 << 16, kMostGroups = 1 << 17, kMostNodes = 1 << 20;

struct TextRow {
  const char* field;
  TextKind kind;
  size_t most;
};

constexpr TextRow kTexts[] = {
    {"BufferSpec.dtype", TextKind::kWord, kWordBytes},
    {"Source.target", TextKind::kWord, kWordBytes},
    {"Source.compiler", TextKind::kWord, kWordBytes},
    {"Source.prelude", TextKind::kText, kPrelude},
    {"Source.text", TextKind::kText, kSource},
    {"Source.library", TextKind::kWord, kWordBytes},
    {"Source.entry", TextKind::kIdentifier, kWordBytes},
    {"Problem.key", TextKind::kDigest, kWordBytes},
    {"Candidate.plan", TextKind::kText, kMostPlan},
    {"KernelChain.plan", TextKind::kName, kMostName},
    {"Trial.plan", TextKind::kText, kMostPlan},
    {"Trial.message", TextKind::kText, kMostMessage},
    {"Trial.object_sha256", TextKind::kDigest, kWordBytes},
    {"Batch.preludes", TextKind::kText, kPrelude},
    {"Device.target", TextKind::kWord, kWordBytes},
    {"Device.name", TextKind::kName, kDeviceName},
    {"Device.compilers", TextKind::kWord, kWordBytes},
    {"Device.libraries", TextKind::kName, kWordBytes},
    {"Device.details", TextKind::kName, 4 * kMostName},

    {"KernelRecord.digest", TextKind::kDigest, kWordBytes},
    {"KernelRecord.key", TextKind::kDigest, kWordBytes},
    {"KernelRecord.graph", TextKind::kText, kMostGraph},
    {"KernelRecord.plan", TextKind::kText, kMostPlan},
    {"KernelRecord.default_plan", TextKind::kText, kMostPlan},
    {"KernelRecord.object_sha256", TextKind::kDigest, kWordBytes},
    {"KernelRecord.strategy", TextKind::kWord, kWordBytes},
    {"KernelRecord.signed_by", TextKind::kWord, kWordBytes},
    {"KernelRecord.signature", TextKind::kWord, kWordBytes},
    {"KernelRecord.built_by", TextKind::kWord, kWordBytes},
    {"KernelRecord.built_signature", TextKind::kWord, kWordBytes},
    {"StoreHead.signed_by", TextKind::kWord, kWordBytes},
    {"StoreHead.signature", TextKind::kWord, kWordBytes},
    {"StoreHead.Floor.key", TextKind::kDigest, kWordBytes},
    {"KernelSummary.digest", TextKind::kDigest, kWordBytes},
    {"KernelSummary.key", TextKind::kDigest, kWordBytes},
    {"KernelSummary.plan", TextKind::kText, kMostPlan},
    {"KernelSummary.name", TextKind::kText, kMostName},
    {"ListKernelsRequest.key_prefix", TextKind::kHex, kDigestDigits},
    {"GetKernelRequest.key", TextKind::kDigest, kWordBytes},
    {"GetKernelRequest.digest", TextKind::kDigest, kWordBytes},
    {"InvalidateKernelRequest.key", TextKind::kDigest, kWordBytes},
    {"KernelUse.key", TextKind::kDigest, kWordBytes},
    {"Usage.Kernel.key", TextKind::kDigest, kWordBytes},
    {"Usage.Kernel.digest", TextKind::kDigest, kWordBytes},
    {"Usage.Missed.why", TextKind::kText, kMostMessage},
    {"PinKernelRequest.key", TextKind::kDigest, kWordBytes},
    {"PinKernelRequest.digest", TextKind::kDigest, kWordBytes},

    {"TuneOptions.target", TextKind::kWord, kWordBytes},
    {"TuneOptions.strategy", TextKind::kWord, kWordBytes},
    {"TuneOptions.effort", TextKind::kWord, kWordBytes},
    {"TuneOptions.libraries", TextKind::kWord, kWordBytes},
    {"TuneOptions.cover", TextKind::kWord, kWordBytes},
    {"CreateTuningJobRequest.request_id", TextKind::kName, kWordBytes},
    {"CreateTuningJobRequest.trace", TextKind::kTrace, 32},
    {"Job.trace", TextKind::kTrace, 32},
    {"Batch.trace", TextKind::kTrace, 32},
    {"CreateTuningJobRequest.graph", TextKind::kText, kMostGraph},
    {"Job.error_message", TextKind::kText, kMostMessage},
    {"Progress.phase", TextKind::kWord, kWordBytes},
    {"Progress.Group.key", TextKind::kDigest, kWordBytes},
    {"GroupResult.key", TextKind::kDigest, kWordBytes},
    {"GroupResult.graph", TextKind::kText, kMostGraph},
    {"GroupResult.source", TextKind::kWord, kWordBytes},
    {"GroupResult.plan", TextKind::kText, kMostPlan},
    {"GroupResult.record_digest", TextKind::kDigest, kWordBytes},
    {"ResultBuffer.dtype", TextKind::kWord, kWordBytes},
    {"TimedCover.name", TextKind::kWord, kWordBytes},
    {"TimedCover.why", TextKind::kText, kMostMessage},
    {"MeasuredRates.Memory.name", TextKind::kWord, kWordBytes},
    {"JobResult.graph_hash", TextKind::kDigest, kWordBytes},
    {"JobResult.warploom_version", TextKind::kWord, kWordBytes},
    {"InspectRequest.graph", TextKind::kText, kMostGraph},
    {"InspectRequest.stage", TextKind::kWord, kWordBytes},
    {"InspectResponse.graph", TextKind::kText, kMostGraph},
    {"InspectResponse.why", TextKind::kText, kAnswer},
    {"InspectResponse.picture", TextKind::kText, kAnswer},
    {"InspectResponse.prelude", TextKind::kText, kPrelude},
    {"InspectResponse.Group.key", TextKind::kDigest, kWordBytes},
    {"InspectResponse.Group.graph", TextKind::kText, kMostGraph},
    {"InspectResponse.Group.plan", TextKind::kText, kMostPlan},
    {"InspectResponse.Group.kernel", TextKind::kText, kAnswer},
    {"InspectResponse.Group.space", TextKind::kText, kAnswer},

    {"RegisterWorkerRequest.name", TextKind::kName, kDeviceName},
    {"RegisterWorkerRequest.machine", TextKind::kDigest, kWordBytes},
    {"RenewLeasesRequest.Item.phase", TextKind::kWord, kWordBytes},
    {"ReleaseLeasesRequest.reason", TextKind::kText, kMostMessage},
    {"WorkerInfo.Doing.target", TextKind::kWord, kWordBytes},
    {"WorkerInfo.Doing.step", TextKind::kWord, kWordBytes},
    {"ServerInfo.store", TextKind::kText, 4 * kMostName},
    {"ServerInfo.upstream_problem", TextKind::kText, kMostMessage},
    {"BatchGetKernelsResponse.upstream_problem", TextKind::kText, kMostMessage},
    {"OfferKernelResponse.why", TextKind::kText, kMostMessage},
    {"BackupResponse.file", TextKind::kText, 4 * kMostName},

    {"ReverifyRequest.target", TextKind::kWord, kWordBytes},
    {"ReverifiedKernel.digest", TextKind::kDigest, kWordBytes},
    {"ReverifiedKernel.key", TextKind::kDigest, kWordBytes},
    {"ReverifiedKernel.outcome", TextKind::kWord, kWordBytes},
    {"ReverifiedKernel.plan_before", TextKind::kText, kMostPlan},
    {"ReverifiedKernel.plan", TextKind::kText, kMostPlan},
    {"ReverifiedKernel.message", TextKind::kText, 2 * kMostMessage},

    {"FindMissingRequest.digests", TextKind::kDigest, kWordBytes},
    {"FindMissingResponse.digests", TextKind::kDigest, kWordBytes},
    {"UploadRequest.digest", TextKind::kDigest, kWordBytes},
    {"DownloadRequest.digest", TextKind::kDigest, kWordBytes},
};

// Text fields that must not be empty, and message fields that must be present.
constexpr const char* kNeeded[] = {
    "Source.entry",
    "Device.target",
    "KernelRecord.digest",
    "KernelRecord.key",
    "KernelSummary.digest",
    "KernelSummary.key",
    "InvalidateKernelRequest.key",
    "CreateTuningJobRequest.request_id",
    "RegisterWorkerRequest.name",
    "Candidate.source",
    "Batch.problem",
    "Batch.recipe",
    "KernelRecord.device",
    "KernelRecord.problem",
    "KernelRecord.source",
    "OfferKernelRequest.record",
    "JobResult.device",
};

struct ItemsRow {
  const char* field;
  int most;
};

constexpr ItemsRow kItems[] = {
    {"Fill.literal", kMostNodes},
    {"BufferSpec.shape", 64},
    {"Check.samples", kMostNodes},
    {"Trial.samples_ns", kMostSamples},
    {"Trial.clocks_mhz", kMostSamples},
    {"Batch.preludes", 64},
    {"Batch.chains", 16},
    {"KernelChain.intermediates", kMostNodes},
    {"KernelChain.steps", kMostNodes},
    {"Device.compilers", 16},
    {"KernelRecord.samples_ns", kMostSamples},
    {"KernelRecord.default_samples_ns", kMostSamples},
    {"BatchGetKernelsRequest.items", 256},
    {"BatchGetKernelsResponse.items", 256},
    {"StoreHead.floors", kMostFloors},
    {"GetHeadsResponse.heads", 2 * kMostHeads},
    {"OfferHeadsRequest.heads", 2 * kMostHeads},
    {"Progress.groups", kMostGroups},
    {"GroupResult.samples_ns", kMostSamples},
    {"ResultBuffer.shape", 64},
    {"TimedCover.samples_ns", kMostSamples},
    {"JobResult.covers", 16},
    {"JobResult.groups", kMostGroups},
    {"JobResult.steps", kMostNodes},
    {"JobResult.buffers", kMostNodes},
    {"JobResult.inputs", kMostNodes},
    {"JobResult.outputs", kMostNodes},
    {"InspectResponse.groups", kMostGroups},
    {"MeasuredRates.memories", 8},
    {"RegisterWorkerRequest.devices", 64},
    {"RegisterWorkerRequest.rates", 64},
    {"WorkerInfo.devices", 64},
    {"ListWorkersResponse.workers", kMostGroups},
};

struct RangeRow {
  const char* field;
  double least, most;
};

constexpr double kBytes = 1LL << 46, kCount = 1e15, kSeconds = 1e12, kTrials = 1e9, kRate = 1e9, kClock = 1e6;

constexpr RangeRow kRanges[] = {
    {"Source.grid", 0, kBytes},
    {"Source.threads", 0, 1 << 20},
    {"Source.scratch_bytes", 0, kBytes},
    {"Source.passes", 0, 1 << 20},
    {"Source.work_bytes", 0, kBytes},
    {"Recipe.min_repeats", 1, 1'000'000},
    {"Recipe.max_repeats", 1, 1'000'000},
    {"Recipe.deadline_ns", 1, kCount},
    {"Recipe.threads", 0, 1 << 20},
    {"Candidate.trial", 0, kTrials},
    {"KernelChain.trial", 0, kTrials},
    {"KernelChain.intermediates", 0, kBytes},
    {"Check.Sample.buffer", 0, kMostItems},
    {"Check.Sample.index", 0, kCount},
    {"Trial.trial", 0, kTrials},
    {"Trial.samples_ns", 0, kCount},
    {"Trial.clock_mhz", 0, kClock},
    {"Trial.clocks_mhz", 0, kClock},
    {"Trial.compile_s", 0, kSeconds},
    {"Trial.check_s", 0, kSeconds},
    {"Trial.measure_s", 0, kSeconds},
    {"Batch.phase", 0, kTrials},
    {"WorkerInfo.Doing.phase", 0, kTrials},
    {"Device.threads", 1, 1 << 20},
    {"Device.l1_bytes", 0, kBytes},
    {"Device.l2_bytes", 0, kBytes},
    {"Device.l3_bytes", 0, kBytes},
    {"MeasuredRates.gflops", 0, kRate},
    {"MeasuredRates.Memory.bytes", 0, kBytes},
    {"MeasuredRates.Memory.gbps", 0, kRate},
    {"KernelUse.calls", 1, kCount},
    {"KernelUse.ns", 0, kCount},
    {"GetUsageRequest.most", 0, 500},
    {"KernelRecord.generation", 0, kCount},
    {"StoreHead.unix_ms", 0, kCount},
    {"StoreHead.oldest", 0, kCount},
    {"StoreHead.Floor.generation", 0, kCount},
    {"KernelRecord.samples_ns", 0, kCount},
    {"KernelRecord.default_samples_ns", 0, kCount},
    {"OutcomeCount.count", 0, kCount},
    {"TuneOptions.trials", 0, 1'000'000},
    {"TuneOptions.budget_s", 0, 1e9},
    {"TuneOptions.at_once", 0, 1024},
    {"GroupResult.samples_ns", 0, kCount},
    {"TimedCover.samples_ns", 0, kCount},
    {"ResultBuffer.kind", 0, 2},
    {"DownloadRequest.offset", 0, kBytes},
};

// Floating-point fields that hold data and may be any number. All other floating-point fields must not be negative or
// NaN, unless they have a row of kRanges.
constexpr const char* kAnyNumber[] = {"Fill.mean", "Fill.stddev", "Fill.literal", "Check.Sample.expected"};

// The limits of one field.
struct Limit {
  const pb::FieldDescriptor* field;
  TextKind kind = TextKind::kName;
  size_t most_bytes = kMostName;
  bool needed = false;
  int most_items = kMostItems;
  bool ranged = false;
  double least = 0, most = 0;

  std::string name() const { return cat("message field ", field->full_name().substr(sizeof("warploom.v1.") - 1)); }
};

using LimitsByMessage = std::unordered_map<const pb::Descriptor*, std::vector<Limit>>;

void add_message(const pb::Descriptor* message, LimitsByMessage& out) {
  std::vector<Limit>& limits = out[message];
  for (int i = 0; i < message->field_count(); ++i) {
    limits.push_back({message->field(i)});
    if (message->field(i)->type() == pb::FieldDescriptor::TYPE_BYTES) limits.back().most_bytes = 1 << 20;
    if (message->field(i)->cpp_type() != pb::FieldDescriptor::CPPTYPE_DOUBLE) continue;
    limits.back().ranged = true;
    limits.back().most = std::numeric_limits<double>::infinity();
  }
  for (int i = 0; i < message->nested_type_count(); ++i) add_message(message->nested_type(i), out);
}

LimitsByMessage make_limits() {
  LimitsByMessage out;
  for (const pb::FileDescriptor* file : protocol_files())
    for (int i = 0; i < file->message_type_count(); ++i) add_message(file->message_type(i), out);
  const auto at = [&](const char* name) -> Limit& {
    const pb::FieldDescriptor* field =
        v1::Source::descriptor()->file()->pool()->FindFieldByName(std::string("warploom.v1.") + name);
    WL_CHECK(field != nullptr, "the table of limits names the field ", name, ", which does not exist");
    return out[field->containing_type()][field->index()];
  };
  for (const TextRow& row : kTexts) {
    Limit& limit = at(row.field);
    limit.kind = row.kind;
    limit.most_bytes = row.most;
  }
  for (const char* field : kNeeded) at(field).needed = true;
  for (const ItemsRow& row : kItems) at(row.field).most_items = row.most;
  for (const char* field : kAnyNumber) at(field).ranged = false;
  for (const RangeRow& row : kRanges) {
    Limit& limit = at(row.field);
    limit.ranged = true;
    limit.least = row.least;
    limit.most = row.most;
  }
  return out;
}

const std::vector<Limit>& limits_of(const pb::Descriptor* message) {
  static const LimitsByMessage* const kLimits = new LimitsByMessage(make_limits());
  const auto found = kLimits->find(message);
  WL_CHECK(found != kLimits->end(), "no limits for messages of type ", message->full_name());
  return found->second;
}

absl::Status missing(const Limit& limit) {
  return invalid(limit.name(), ": expected a value, found none");
}

absl::Status check_string(const Limit& limit, const std::string& value) {
  if (limit.field->type() == pb::FieldDescriptor::TYPE_BYTES) {
    if (value.size() <= limit.most_bytes) return absl::OkStatus();
    return invalid(limit.name(), ": expected at most ", limit.most_bytes, " bytes, found ", value.size());
  }
  if (value.empty()) return limit.needed ? missing(limit) : absl::OkStatus();
  // The check does not get the field's name: making the name takes time, so it is made only for an error.
  const absl::Status status = check_text("", value, limit.kind, limit.most_bytes);
  return status.ok() ? status : invalid(limit.name(), std::string(status.message()));
}

absl::Status check_number(const Limit& limit, double value) {
  if (value >= limit.least && value <= limit.most) return absl::OkStatus();
  return invalid(limit.name(), ": expected ", limit.least, " to ", limit.most, ", found ", value);
}

// Checks the value of a field or, if it is a list, its item `i`.
absl::Status check_value(const pb::Message& message, const Limit& limit, int i) {
  const pb::Reflection& has = *message.GetReflection();
  const pb::FieldDescriptor* field = limit.field;
  const bool list = field->is_repeated();
  std::string scratch;
  const auto number = [&](auto one, auto item) {
    return check_number(limit, static_cast<double>(list ? (has.*item)(message, field, i) : (has.*one)(message, field)));
  };
  using R = pb::Reflection;
  switch (field->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return check_string(limit, list ? has.GetRepeatedStringReference(message, field, i, &scratch)
                                      : has.GetStringReference(message, field, &scratch));
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      return check_fields(list ? has.GetRepeatedMessage(message, field, i) : has.GetMessage(message, field));
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return number(&R::GetInt32, &R::GetRepeatedInt32);
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return number(&R::GetInt64, &R::GetRepeatedInt64);
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return number(&R::GetDouble, &R::GetRepeatedDouble);
    case pb::FieldDescriptor::CPPTYPE_ENUM:
      return number(&R::GetEnumValue, &R::GetRepeatedEnumValue);
    default:
      return invalid(limit.name(), ": no range can be given for a field of type ", field->cpp_type_name());
  }
}

}  // namespace

absl::Status check_fields(const pb::Message& message) {
  const pb::Reflection& has = *message.GetReflection();
  for (const Limit& limit : limits_of(message.GetDescriptor())) {
    const pb::FieldDescriptor* field = limit.field;
    const bool inside = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
    const bool checked = inside || limit.ranged || field->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING;
    if (!field->is_repeated()) {
      const bool absent = inside && !has.HasField(message, field);
      if (absent && limit.needed) return missing(limit);
      if (checked && !absent) WL_RETURN_IF_ERROR(check_value(message, limit, 0));
      continue;
    }
    const int size = has.FieldSize(message, field);
    if (size > limit.most_items)
      return invalid(limit.name(), ": expected at most ", limit.most_items, " items, found ", size);
    for (int i = 0; checked && i < size; ++i) WL_RETURN_IF_ERROR(check_value(message, limit, i));
  }
  return absl::OkStatus();
}

}  // namespace wl
