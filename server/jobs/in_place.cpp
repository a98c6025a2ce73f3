#include "server/jobs/in_place.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

// Programs whose times differ by less than this factor count as equally fast.
constexpr double kSlower = 1.01;

// Whether the buffers of a graph's inputs and outputs are those of a result.
bool has_ends_of(const Graph& graph, const JobResult& result) {
  const std::vector<BufferSpec> named = buffers_of(graph);
  if (named.size() != result.inputs.size() + result.outputs.size()) return false;
  size_t number = 0;
  const auto suit = [&](const Binding& binding) {
    const BufferSpec& spec = named[number++];
    const auto buffer = static_cast<size_t>(binding.buffer);
    return buffer < result.buffers.size() && spec.dtype == result.buffers[buffer].dtype &&
           spec.shape == result.buffers[buffer].shape;
  };
  return std::all_of(result.inputs.begin(), result.inputs.end(), suit) &&
         std::all_of(result.outputs.begin(), result.outputs.end(), suit);
}

const Trial* trial_of(const TimedProgram& program, const char* chain) {
  const auto at = std::find_if(program.trials.begin(), program.trials.end(),
                               [&](const Trial& trial) { return trial.plan == chain; });
  return at == program.trials.end() ? nullptr : &*at;
}

}  // namespace

absl::StatusOr<ProgramBatch> both_ways(const ProgramOfJob& program, const KernelRecord& before) {
  if (!has_ends_of(program.graph, program.result))
    return absl::FailedPreconditionError("the graph has other inputs or outputs than its answer");
  WholeCover now{.name = kAfterChain, .plan = {}, .result = program.result};
  now.plan.graph = program.graph;
  now.plan.device = program.result.device;
  now.plan.machine = program.machine;
  bool runs = false;
  for (GroupResult& group : now.result.groups) {
    const auto record = program.records.find(group.key);
    if (record == program.records.end())
      return absl::FailedPreconditionError(cat("the kernel of key ", group.key, " is no longer in the store"));
    group.record_digest = record->second.digest;
    runs |= group.key == before.key;
    WL_ASSIGN_OR_RETURN(Graph graph, parse(group.graph));
    now.plan.groups.push_back(planned_group(std::move(graph), group.key));
  }
  if (!runs) return absl::FailedPreconditionError("no step runs the kernel");
  WholeCover then = now;
  then.name = kBeforeChain;
  then.other.emplace(before.key, before);
  for (GroupResult& group : then.result.groups)
    if (group.key == before.key) group.record_digest = before.digest;
  const std::vector<WholeCover> covers = {std::move(then), std::move(now)};
  TuneOptions options;
  options.cold = program.cold;
  return ProgramBatch{chains_of(covers, program.records, options), floor_of(covers)};
}

InPlaceVerdict judge_in_place(const std::vector<TimedProgram>& programs) {
  InPlaceVerdict out;
  double logs = 0;
  int timed = 0;
  for (const TimedProgram& program : programs) {
    const Trial *before = trial_of(program, kBeforeChain), *after = trial_of(program, kAfterChain);
    const bool ran = before != nullptr && before->outcome == Outcome::kCorrect && !before->samples_ns.empty();
    const auto say = [&](const std::string& what) { append(&out.message, out.message.empty() ? "" : "; ", what); };
    if (!ran || after == nullptr) {
      say(cat(program.name, ": not timed"));
      continue;
    }
    out.tried = true;
    if (after->outcome != Outcome::kCorrect || after->samples_ns.empty()) {
      out.slower = true;
      say(cat(program.name, ": fails with the new kernel: ", after->message));
      continue;
    }
    const double old_ns = undisturbed_ns(before->samples_ns), new_ns = undisturbed_ns(after->samples_ns);
    out.before_ns += old_ns;
    out.after_ns += new_ns;
    out.calls += static_cast<int64_t>(before->samples_ns.size() + after->samples_ns.size());
    logs += std::log(new_ns / old_ns);
    ++timed;
    say(absl::StrFormat("%s: %.4g us before, %.4g us after", program.name, old_ns / 1e3, new_ns / 1e3));
  }
  out.slower |= timed > 0 && std::exp(logs / timed) > kSlower;
  return out;
}

}  // namespace wl
