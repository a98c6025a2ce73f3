// Conversion of the messages that the store keeps: kernel records and the results of jobs.
#include "proto/wire.h"
#include "proto/wire_internal.h"

namespace wl {
namespace {

v1::GroupResult group_to_proto(const GroupResult& group) {
  v1::GroupResult out;
  out.set_key(group.key);
  out.set_graph(group.graph);
  out.set_count(group.count);
  out.set_ops(group.ops);
  out.set_source(group.source);
  out.set_kernels_default(group.kernels_default);
  out.set_kernels(group.kernels);
  out.set_bytes_default(group.bytes_default);
  out.set_bytes(group.bytes);
  out.set_flops(group.flops);
  out.set_default_ns(group.default_ns);
  out.set_best_ns(group.best_ns);
  for (int64_t sample : group.samples_ns) out.add_samples_ns(sample);
  counts_to_wire(group.trials, out.mutable_trials());
  out.set_max_error(group.max_error);
  out.set_bound(group.bound);
  out.set_plan(group.plan);
  out.set_record_digest(group.record_digest);
  out.set_measured_by(group.measured_by);
  out.set_confirmed_by(group.confirmed_by);
  out.set_built(group.built);
  out.set_default_estimated(group.default_estimated);
  return out;
}

absl::StatusOr<GroupResult> group_from_proto(const v1::GroupResult& in) {
  GroupResult out;
  out.key = in.key();
  out.graph = in.graph();
  out.count = in.count();
  out.ops = in.ops();
  out.source = in.source();
  out.kernels_default = in.kernels_default();
  out.kernels = in.kernels();
  out.bytes_default = in.bytes_default();
  out.bytes = in.bytes();
  out.flops = in.flops();
  out.default_ns = in.default_ns();
  out.best_ns = in.best_ns();
  out.samples_ns.assign(in.samples_ns().begin(), in.samples_ns().end());
  WL_ASSIGN_OR_RETURN(out.trials, counts_from_wire(in.trials()));
  out.max_error = in.max_error();
  out.bound = in.bound();
  out.plan = in.plan();
  out.record_digest = in.record_digest();
  out.measured_by = in.measured_by();
  out.confirmed_by = in.confirmed_by();
  out.built = in.built();
  out.default_estimated = in.default_estimated();
  return out;
}

absl::StatusOr<std::vector<Binding>> bindings_from_wire(const google::protobuf::RepeatedPtrField<v1::Binding>& in,
                                                        int buffers) {
  std::vector<Binding> out;
  for (const v1::Binding& item : in) {
    if (item.buffer() < 0 || item.buffer() >= buffers) {
      return invalid("message JobResult: \"", item.name(), "\" is bound to buffer ", item.buffer(), " of ", buffers);
    }
    out.push_back({item.name(), item.buffer()});
  }
  return out;
}

}  // namespace

void counts_to_wire(const OutcomeCounts& counts, google::protobuf::RepeatedPtrField<v1::OutcomeCount>* out) {
  for (int i = 0; i < kOutcomeCount; ++i) {
    if (counts[i] == 0) continue;
    v1::OutcomeCount* item = out->Add();
    item->set_outcome(outcome_to_wire(static_cast<Outcome>(i)));
    item->set_count(counts[i]);
  }
}

absl::StatusOr<OutcomeCounts> counts_from_wire(const google::protobuf::RepeatedPtrField<v1::OutcomeCount>& in) {
  OutcomeCounts out{};
  for (const v1::OutcomeCount& item : in) {
    WL_ASSIGN_OR_RETURN(Outcome outcome, outcome_from_wire(item.outcome()));
    out[static_cast<int>(outcome)] = item.count();
  }
  return out;
}

v1::MeasuredRates to_proto(const MeasuredRates& rates) {
  v1::MeasuredRates out;
  out.set_gflops(rates.gflops);
  for (const MeasuredRates::Memory& memory : rates.memories) {
    v1::MeasuredRates::Memory& item = *out.add_memories();
    item.set_name(memory.name);
    item.set_bytes(memory.bytes);
    item.set_gbps(memory.gbps);
  }
  return out;
}

MeasuredRates from_proto(const v1::MeasuredRates& message) {
  MeasuredRates out{.gflops = message.gflops()};
  for (const v1::MeasuredRates::Memory& item : message.memories())
    out.memories.push_back({item.name(), item.bytes(), item.gbps()});
  return out;
}

v1::KernelRecord to_proto(const KernelRecord& record) {
  v1::KernelRecord out;
  out.set_digest(record.digest);
  out.set_key(record.key);
  out.set_environment(record.environment);
  *out.mutable_device() = to_proto(record.device);
  out.set_graph(record.graph);
  out.set_plan(record.plan);
  out.set_default_plan(record.default_plan);
  *out.mutable_problem() = to_proto(record.problem);
  *out.mutable_source() = to_proto(record.source);
  out.set_object_sha256(record.object_sha256);
  for (int64_t sample : record.samples_ns) out.add_samples_ns(sample);
  for (int64_t sample : record.default_samples_ns) out.add_default_samples_ns(sample);
  out.set_max_error(record.max_error);
  out.set_bound(record.bound);
  for (uint64_t seed : record.check_seeds) out.add_check_seeds(seed);
  out.set_strategy(record.strategy);
  out.set_trials_asked(record.trials_asked);
  out.set_budget_s(record.budget_s);
  counts_to_wire(record.outcomes, out.mutable_outcomes());
  out.set_bytes(record.bytes);
  out.set_flops(record.flops);
  out.set_ops(record.ops);
  out.set_compile_s(record.compile_s);
  out.set_check_s(record.check_s);
  out.set_measure_s(record.measure_s);
  out.set_measured_by(record.measured_by);
  out.set_confirmed_by(record.confirmed_by);
  out.set_signed_by(record.signed_by);
  out.set_signature(record.signature);
  out.set_generation(record.generation);
  out.set_built_by(record.built_by);
  out.set_built_signature(record.built_signature);
  return out;
}

absl::StatusOr<KernelRecord> convert_manifest(const v1::KernelRecord& in) {
  KernelRecord out;
  out.digest = in.digest();
  out.key = in.key();
  out.environment = in.environment();
  WL_ASSIGN_OR_RETURN(out.device, convert(in.device()));
  out.graph = in.graph();
  out.plan = in.plan();
  out.default_plan = in.default_plan();
  WL_ASSIGN_OR_RETURN(out.problem, convert(in.problem()));
  WL_ASSIGN_OR_RETURN(out.source, convert(in.source()));
  out.object_sha256 = in.object_sha256();
  out.samples_ns.assign(in.samples_ns().begin(), in.samples_ns().end());
  out.default_samples_ns.assign(in.default_samples_ns().begin(), in.default_samples_ns().end());
  out.max_error = in.max_error();
  out.bound = in.bound();
  out.check_seeds.assign(in.check_seeds().begin(), in.check_seeds().end());
  out.strategy = in.strategy();
  out.trials_asked = in.trials_asked();
  out.budget_s = in.budget_s();
  WL_ASSIGN_OR_RETURN(out.outcomes, counts_from_wire(in.outcomes()));
  out.bytes = in.bytes();
  out.flops = in.flops();
  out.ops = in.ops();
  out.compile_s = in.compile_s();
  out.check_s = in.check_s();
  out.measure_s = in.measure_s();
  out.measured_by = in.measured_by();
  out.confirmed_by = in.confirmed_by();
  out.signed_by = in.signed_by();
  out.signature = in.signature();
  out.generation = in.generation();
  out.built_by = in.built_by();
  out.built_signature = in.built_signature();
  return out;
}

absl::StatusOr<KernelRecord> convert(const v1::KernelRecord& in) {
  WL_ASSIGN_OR_RETURN(KernelRecord out, convert_manifest(in));
  if (record_digest(out) != out.digest) {
    return absl::DataLossError(
        absl::StrCat("record of key ", out.key, ": its bytes do not have the digest ", out.digest));
  }
  return out;
}

v1::JobResult to_proto(const JobResult& result) {
  v1::JobResult out;
  for (const GroupResult& group : result.groups) *out.add_groups() = group_to_proto(group);
  for (const Step& step : result.steps) {
    v1::Step* item = out.add_steps();
    item->set_group(step.group);
    for (int argument : step.arguments) item->add_arguments(argument);
  }
  for (const ResultBuffer& buffer : result.buffers) {
    v1::ResultBuffer* item = out.add_buffers();
    item->set_name(buffer.name);
    item->set_dtype(std::string(name_of(buffer.dtype)));
    for (int64_t extent : buffer.shape) item->add_shape(extent);
    item->set_kind(static_cast<v1::ResultBuffer::Kind>(buffer.kind));
  }
  const auto bind = [](const std::vector<Binding>& bindings, google::protobuf::RepeatedPtrField<v1::Binding>* to) {
    for (const Binding& binding : bindings) {
      v1::Binding* item = to->Add();
      item->set_name(binding.name);
      item->set_buffer(binding.buffer);
    }
  };
  bind(result.inputs, out.mutable_inputs());
  bind(result.outputs, out.mutable_outputs());
  out.set_graph_hash(result.graph_hash);
  out.set_kernels_default(result.kernels_default);
  out.set_kernels(result.kernels);
  out.set_bytes_default(result.bytes_default);
  out.set_bytes(result.bytes);
  out.set_default_ns(result.default_ns);
  out.set_default_estimated(result.default_estimated);
  out.set_best_ns(result.best_ns);
  out.set_trials(result.trials);
  out.set_enumerate_s(result.enumerate_s);
  out.set_compile_s(result.compile_s);
  out.set_check_s(result.check_s);
  out.set_measure_s(result.measure_s);
  out.set_total_s(result.total_s);
  *out.mutable_device() = to_proto(result.device);
  out.set_environment(result.environment);
  out.set_warploom_version(result.warploom_version);
  out.set_cover_rounds(result.cover_rounds);
  out.set_cover_certified(result.cover_certified);
  for (const TimedCover& cover : result.covers) {
    v1::TimedCover* item = out.add_covers();
    item->set_name(cover.name);
    item->set_kernels(cover.kernels);
    item->set_bytes(cover.bytes);
    item->set_kernels_ns(cover.kernels_ns);
    for (int64_t sample : cover.samples_ns) item->add_samples_ns(sample);
    item->set_chosen(cover.chosen);
    item->set_why(message_for_wire(cover.why));
  }
  if (result.rates.gflops > 0) *out.mutable_rates() = to_proto(result.rates);
  return out;
}

absl::StatusOr<JobResult> convert(const v1::JobResult& in) {
  JobResult out;
  for (const v1::GroupResult& item : in.groups()) {
    WL_ASSIGN_OR_RETURN(GroupResult group, group_from_proto(item));
    out.groups.push_back(std::move(group));
  }
  for (const v1::ResultBuffer& item : in.buffers()) {
    ResultBuffer buffer;
    buffer.name = item.name();
    WL_ASSIGN_OR_RETURN(buffer.dtype, dtype_from_wire(item.dtype(), "ResultBuffer.dtype"));
    WL_ASSIGN_OR_RETURN(buffer.shape, shape_from_wire(item.shape(), "ResultBuffer.shape"));
    buffer.kind = static_cast<ResultBuffer::Kind>(item.kind());
    out.buffers.push_back(std::move(buffer));
  }
  const int buffers = static_cast<int>(out.buffers.size());
  for (const v1::Step& item : in.steps()) {
    Step step;
    step.group = item.group();
    if (step.group < 0 || step.group >= static_cast<int>(out.groups.size())) {
      return invalid("message Step: group ", step.group, " of ", out.groups.size());
    }
    for (int argument : item.arguments()) {
      if (argument < 0 || argument >= buffers) return invalid("message Step: buffer ", argument, " of ", buffers);
      step.arguments.push_back(argument);
    }
    out.steps.push_back(std::move(step));
  }
  WL_ASSIGN_OR_RETURN(out.inputs, bindings_from_wire(in.inputs(), buffers));
  WL_ASSIGN_OR_RETURN(out.outputs, bindings_from_wire(in.outputs(), buffers));
  out.graph_hash = in.graph_hash();
  out.kernels_default = in.kernels_default();
  out.kernels = in.kernels();
  out.bytes_default = in.bytes_default();
  out.bytes = in.bytes();
  out.default_ns = in.default_ns();
  out.default_estimated = in.default_estimated();
  out.best_ns = in.best_ns();
  out.trials = in.trials();
  out.enumerate_s = in.enumerate_s();
  out.compile_s = in.compile_s();
  out.check_s = in.check_s();
  out.measure_s = in.measure_s();
  out.total_s = in.total_s();
  WL_ASSIGN_OR_RETURN(out.device, convert(in.device()));
  out.environment = in.environment();
  out.warploom_version = in.warploom_version();
  out.rates = from_proto(in.rates());
  out.cover_rounds = in.cover_rounds();
  out.cover_certified = in.cover_certified();
  for (const v1::TimedCover& item : in.covers()) {
    TimedCover cover{item.name(), item.kernels(), item.bytes(), item.kernels_ns(), {}, item.chosen(), item.why()};
    cover.samples_ns.assign(item.samples_ns().begin(), item.samples_ns().end());
    out.covers.push_back(std::move(cover));
  }
  return out;
}

}  // namespace wl
