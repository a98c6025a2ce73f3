// Conversion of the messages between the coordinator and workers.
#include <algorithm>

#include "compiler/base/code.h"
#include "compiler/base/names.h"
#include "proto/limits.h"
#include "proto/wire.h"
#include "proto/wire_internal.h"

namespace wl {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 48;

v1::Fill fill_to_proto(const Fill& fill) {
  v1::Fill out;
  out.set_mean(fill.mean);
  out.set_stddev(fill.stddev);
  out.set_low(fill.low);
  out.set_high(fill.high);
  for (double value : fill.literal) out.add_literal(value);
  return out;
}

Fill fill_from_proto(const v1::Fill& in) {
  return {in.mean(), in.stddev(), in.low(), in.high(), {in.literal().begin(), in.literal().end()}};
}

absl::StatusOr<BufferSpec> buffer_from_proto(const v1::BufferSpec& in) {
  BufferSpec out;
  out.name = in.name();
  WL_ASSIGN_OR_RETURN(out.dtype, dtype_from_wire(in.dtype(), "BufferSpec.dtype"));
  WL_ASSIGN_OR_RETURN(out.shape, shape_from_wire(in.shape(), "BufferSpec.shape"));
  out.output = in.output();
  out.fill = fill_from_proto(in.fill());
  out.stream = in.stream();
  return out;
}

v1::CodeLimits limits_to_proto(const CodeLimits& limits) {
  v1::CodeLimits out;
  out.set_wave(limits.wave);
  out.set_block_threads(limits.block_threads);
  out.set_unit_threads(limits.unit_threads);
  out.set_unit_blocks(limits.unit_blocks);
  out.set_lane_registers(limits.lane_registers);
  out.set_unit_registers(limits.unit_registers);
  out.set_block_shared(limits.block_shared);
  out.set_unit_shared(limits.unit_shared);
  return out;
}

CodeLimits limits_from_proto(const v1::CodeLimits& in) {
  return {in.wave(),           in.block_threads(),  in.unit_threads(), in.unit_blocks(),
          in.lane_registers(), in.unit_registers(), in.block_shared(), in.unit_shared()};
}

}  // namespace

absl::StatusOr<DType> dtype_from_wire(const std::string& name, const char* field) {
  std::optional<DType> dtype = dtype_named(name);
  if (!dtype) return invalid("message field ", field, ": unknown dtype \"", name, "\"");
  return *dtype;
}

absl::StatusOr<std::vector<int64_t>> shape_from_wire(const google::protobuf::RepeatedField<int64_t>& shape,
                                                     const char* field) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0) return invalid("message field ", field, ": negative extent ", extent);
    if (extent > 0 && elements > kMaxElements / extent) return invalid("message field ", field, ": too many elements");
    elements *= extent == 0 ? 1 : extent;
  }
  return std::vector<int64_t>(shape.begin(), shape.end());
}

absl::StatusOr<Outcome> outcome_from_wire(v1::Outcome outcome) {
  if (outcome < v1::OUTCOME_CORRECT || outcome > v1::OUTCOME_REJECTED) {
    return invalid("message field outcome: expected 1 to 6, found ", static_cast<int>(outcome));
  }
  return static_cast<Outcome>(outcome - v1::OUTCOME_CORRECT);
}

v1::Outcome outcome_to_wire(Outcome outcome) {
  return static_cast<v1::Outcome>(static_cast<int>(outcome) + v1::OUTCOME_CORRECT);
}

std::string message_for_wire(const std::string& text) {
  return fitted(text, TextKind::kText, kMostMessage);
}

v1::Source to_proto(const Source& source) {
  v1::Source out;
  out.set_target(source.target);
  out.set_compiler(source.compiler);
  out.set_prelude(source.prelude);
  out.set_text(source.text);
  out.set_entry(source.entry);
  out.set_grid(source.grid);
  out.set_threads(source.threads);
  out.set_scratch_bytes(source.scratch_bytes);
  out.set_load_bytes(source.load_bytes);
  out.set_store_bytes(source.store_bytes);
  if (source.passes != 1) out.set_passes(source.passes);
  out.set_work_bytes(source.work_bytes);
  out.set_library(source.library);
  return out;
}

absl::StatusOr<Source> convert(const v1::Source& in) {
  return Source{in.target(),
                in.compiler(),
                in.prelude(),
                in.text(),
                in.entry(),
                in.grid(),
                in.threads(),
                in.scratch_bytes(),
                in.load_bytes(),
                in.store_bytes(),
                std::max(1, in.passes()),
                in.work_bytes(),
                in.library()};
}

v1::Problem to_proto(const Problem& problem) {
  v1::Problem out;
  out.set_key(problem.key);
  for (const BufferSpec& buffer : problem.buffers) {
    v1::BufferSpec* spec = out.add_buffers();
    spec->set_name(buffer.name);
    spec->set_dtype(std::string(name_of(buffer.dtype)));
    for (int64_t extent : buffer.shape) spec->add_shape(extent);
    spec->set_output(buffer.output);
    *spec->mutable_fill() = fill_to_proto(buffer.fill);
    spec->set_stream(buffer.stream);
  }
  return out;
}

absl::StatusOr<Problem> convert(const v1::Problem& in) {
  Problem out;
  out.key = in.key();
  for (const v1::BufferSpec& spec : in.buffers()) {
    WL_ASSIGN_OR_RETURN(BufferSpec buffer, buffer_from_proto(spec));
    out.buffers.push_back(std::move(buffer));
  }
  return out;
}

v1::Check to_proto(const Check& check) {
  v1::Check out;
  out.set_seed(check.seed);
  for (const Check::Sample& sample : check.samples) {
    v1::Check::Sample* item = out.add_samples();
    item->set_buffer(sample.buffer);
    item->set_index(sample.index);
    item->set_expected(sample.expected);
    item->set_bound(sample.bound);
  }
  return out;
}

absl::StatusOr<Check> convert(const v1::Check& in) {
  Check out;
  out.seed = in.seed();
  for (const v1::Check::Sample& item : in.samples()) {
    out.samples.push_back({item.buffer(), item.index(), item.expected(), item.bound()});
  }
  return out;
}

v1::Recipe to_proto(const Recipe& recipe) {
  v1::Recipe out;
  out.set_cold(recipe.cold);
  out.set_min_repeats(recipe.min_repeats);
  out.set_max_repeats(recipe.max_repeats);
  out.set_budget_ns(recipe.budget_ns);
  out.set_deadline_ns(recipe.deadline_ns);
  out.set_hopeless_factor(recipe.hopeless_factor);
  out.set_best_ns(recipe.best_ns);
  out.set_interleave(recipe.interleave);
  out.set_threads(recipe.threads);
  out.set_lost_factor(recipe.lost_factor);
  return out;
}

absl::StatusOr<Recipe> convert(const v1::Recipe& in) {
  Recipe out;
  out.cold = in.cold();
  out.min_repeats = in.min_repeats();
  out.max_repeats = in.max_repeats();
  out.budget_ns = in.budget_ns();
  out.deadline_ns = in.deadline_ns();
  out.hopeless_factor = in.hopeless_factor();
  out.best_ns = in.best_ns();
  out.interleave = in.interleave();
  out.threads = in.threads();
  out.lost_factor = in.lost_factor();
  if (out.max_repeats < out.min_repeats)
    return invalid("message Recipe: expected max_repeats >= min_repeats, found ", out.max_repeats, " and ",
                   out.min_repeats);
  return out;
}

v1::Candidate to_proto(const Candidate& candidate) {
  v1::Candidate out;
  out.set_trial(candidate.trial);
  out.set_plan(candidate.plan);
  *out.mutable_source() = to_proto(candidate.source);
  return out;
}

absl::StatusOr<Candidate> convert(const v1::Candidate& in) {
  Candidate out;
  out.trial = in.trial();
  out.plan = in.plan();
  WL_ASSIGN_OR_RETURN(out.source, convert(in.source()));
  return out;
}

v1::Trial to_proto(const Trial& trial) {
  v1::Trial out;
  out.set_trial(trial.trial);
  out.set_plan(trial.plan);
  out.set_outcome(outcome_to_wire(trial.outcome));
  for (int64_t sample : trial.samples_ns) out.add_samples_ns(sample);
  out.set_hopeless(trial.hopeless);
  out.set_max_error(trial.max_error);
  out.set_bound(trial.bound);
  out.set_message(message_for_wire(trial.message));
  out.set_compile_s(trial.compile_s);
  out.set_check_s(trial.check_s);
  out.set_measure_s(trial.measure_s);
  out.set_object_sha256(trial.object_sha256);
  if (trial.code.registers > 0) out.set_code(code_text(trial.code));
  out.set_clock_mhz(trial.clock_mhz);
  for (int64_t mhz : trial.clocks_mhz) out.add_clocks_mhz(mhz);
  return out;
}

absl::StatusOr<Trial> convert(const v1::Trial& in) {
  Trial out;
  out.trial = in.trial();
  out.plan = in.plan();
  WL_ASSIGN_OR_RETURN(out.outcome, outcome_from_wire(in.outcome()));
  out.samples_ns.assign(in.samples_ns().begin(), in.samples_ns().end());
  out.hopeless = in.hopeless();
  out.max_error = in.max_error();
  out.bound = in.bound();
  out.message = in.message();
  out.compile_s = in.compile_s();
  out.check_s = in.check_s();
  out.measure_s = in.measure_s();
  out.object_sha256 = in.object_sha256();
  if (!in.code().empty()) {
    WL_ASSIGN_OR_RETURN(out.code, parse_code(in.code()));
  }
  out.clock_mhz = in.clock_mhz();
  out.clocks_mhz.assign(in.clocks_mhz().begin(), in.clocks_mhz().end());
  return out;
}

namespace {

void chain_to_proto(const KernelChain& chain, v1::KernelChain* out) {
  out->set_trial(chain.trial);
  out->set_plan(chain.plan);
  for (int64_t bytes : chain.intermediates) out->add_intermediates(bytes);
  for (const ChainStep& step : chain.steps) {
    v1::KernelChain::Step* item = out->add_steps();
    item->set_kernel(step.kernel);
    for (int argument : step.arguments) item->add_arguments(argument);
  }
}

// Converts a chain of a batch with `buffers` buffers and `kernels` candidates.
absl::StatusOr<KernelChain> chain_from_proto(const v1::KernelChain& in, int64_t buffers, int64_t kernels) {
  KernelChain out;
  out.trial = in.trial();
  out.plan = in.plan();
  out.intermediates.assign(in.intermediates().begin(), in.intermediates().end());
  const int64_t values = buffers + in.intermediates_size();
  if (in.steps().empty()) return invalid("message KernelChain \"", in.plan(), "\": expected steps, found none");
  for (const v1::KernelChain::Step& item : in.steps()) {
    ChainStep step;
    step.kernel = item.kernel();
    if (step.kernel < 0 || step.kernel >= kernels)
      return invalid("message KernelChain \"", in.plan(), "\": a step runs kernel ", step.kernel, " of ", kernels);
    for (int argument : item.arguments()) {
      if (argument < 0 || argument >= values)
        return invalid("message KernelChain \"", in.plan(), "\": a step uses value ", argument, " of ", values);
      step.arguments.push_back(argument);
    }
    out.steps.push_back(std::move(step));
  }
  return out;
}

}  // namespace

v1::Batch to_proto(const Batch& batch) {
  v1::Batch out;
  out.set_id(batch.id);
  *out.mutable_problem() = to_proto(batch.problem);
  for (const Check& check : batch.checks) *out.add_checks() = to_proto(check);
  *out.mutable_recipe() = to_proto(batch.recipe);
  // Many candidates have the same prelude, which is tens of kilobytes long. So each distinct prelude is sent once.
  for (const Candidate& candidate : batch.candidates) {
    v1::Candidate* item = out.add_candidates();
    *item = to_proto(candidate);
    item->mutable_source()->clear_prelude();
    const std::string& prelude = candidate.source.prelude;
    const auto known = std::find(out.preludes().begin(), out.preludes().end(), prelude);
    item->set_prelude(static_cast<int>(known - out.preludes().begin()));
    if (known == out.preludes().end()) out.add_preludes(prelude);
  }
  for (const KernelChain& chain : batch.chains) chain_to_proto(chain, out.add_chains());
  out.set_keep_objects(batch.keep_objects);
  out.set_phase(batch.phase);
  out.set_trace(batch.trace);
  if (batch.limits.wave > 0) *out.mutable_limits() = limits_to_proto(batch.limits);
  return out;
}

absl::StatusOr<Batch> convert(const v1::Batch& in) {
  Batch out;
  out.id = in.id();
  WL_ASSIGN_OR_RETURN(out.problem, convert(in.problem()));
  for (const v1::Check& item : in.checks()) {
    WL_ASSIGN_OR_RETURN(Check check, convert(item));
    for (const Check::Sample& sample : check.samples) {
      if (sample.buffer >= static_cast<int>(out.problem.buffers.size()) ||
          sample.index >= out.problem.buffers[sample.buffer].elements()) {
        return invalid("message Batch \"", in.id(), "\": a check samples element ", sample.index, " of buffer ",
                       sample.buffer, ", which does not exist");
      }
    }
    out.checks.push_back(std::move(check));
  }
  WL_ASSIGN_OR_RETURN(out.recipe, convert(in.recipe()));
  for (const v1::Candidate& item : in.candidates()) {
    WL_ASSIGN_OR_RETURN(Candidate candidate, convert(item));
    if (item.prelude() < 0 || item.prelude() >= in.preludes_size()) {
      return invalid("message Batch \"", in.id(), "\": candidate ", item.trial(), " names prelude ", item.prelude(),
                     " of ", in.preludes_size());
    }
    candidate.source.prelude = in.preludes(item.prelude());
    out.candidates.push_back(std::move(candidate));
  }
  for (const v1::KernelChain& item : in.chains()) {
    WL_ASSIGN_OR_RETURN(KernelChain chain, chain_from_proto(item, in.problem().buffers_size(), in.candidates_size()));
    out.chains.push_back(std::move(chain));
  }
  out.keep_objects = in.keep_objects();
  out.phase = in.phase();
  out.trace = in.trace();
  if (in.has_limits()) out.limits = limits_from_proto(in.limits());
  return out;
}

v1::Device to_proto(const Device& device) {
  v1::Device out;
  out.set_target(device.target);
  out.set_name(device.name);
  out.set_threads(device.threads);
  out.set_l1_bytes(device.l1_bytes);
  out.set_l2_bytes(device.l2_bytes);
  out.set_l3_bytes(device.l3_bytes);
  for (const std::string& compiler : device.compilers) out.add_compilers(compiler);
  out.set_compiler_versions(device.compiler_versions);
  out.set_details(device.details);
  out.set_libraries(device.libraries);
  return out;
}

absl::StatusOr<Device> convert(const v1::Device& in) {
  return Device{in.target(),
                in.name(),
                in.threads(),
                in.l1_bytes(),
                in.l2_bytes(),
                in.l3_bytes(),
                {in.compilers().begin(), in.compilers().end()},
                in.compiler_versions(),
                in.details(),
                in.libraries()};
}

}  // namespace wl
