// From records to the answer of a job.
#include <algorithm>

#include "server/job_plan.h"

namespace wl {
namespace {

// Parts must win by more than noise before a fused group is taken apart.
constexpr double kSplitGain = 0.97;

double best_of(const KernelRecord& record) {
  return median_of(record.samples_ns);
}
double default_of(const KernelRecord& record) {
  return median_of(record.default_samples_ns);
}

class Chooser {
 public:
  Chooser(const JobPlan& plan, const Records& records) : plan_(plan), records_(records) {
    available_.assign(plan.graph.nodes.size(), false);
    for (NodeId input : plan.graph.inputs()) available_[input] = true;
  }

  absl::StatusOr<std::vector<int>> choose() {
    for (size_t f = 0; f < plan_.fused.size(); ++f) {
      const KernelRecord* fused = record_of(plan_.fused[f]);
      const double parts_ns = parts_time(f);
      const bool split = parts_ns >= 0 && (fused == nullptr || parts_ns < kSplitGain * best_of(*fused));
      if (split && run_parts(f)) continue;
      if (fused == nullptr) return whole_default();
      launches_.push_back(static_cast<int>(f));
      for (NodeId value : plan_.fused[f].stores) available_[value] = true;
    }
    return launches_;
  }

 private:
  const KernelRecord* record_of(const Launch& launch) const {
    const auto found = records_.find(plan_.groups[launch.group].key);
    return found == records_.end() ? nullptr : &found->second;
  }

  // Time of the parts of a fused launch; negative when it is one itself or some part has no record.
  double parts_time(size_t fused) const {
    const std::vector<int>& parts = plan_.parts_of[fused];
    if (parts.empty() || (parts.size() == 1 && plan_.parts[parts[0]].group == plan_.fused[fused].group)) return -1;
    double sum = 0;
    for (int p : parts) {
      const KernelRecord* record = record_of(plan_.parts[p]);
      if (record == nullptr) return -1;
      sum += best_of(*record);
    }
    return sum;
  }

  // Parts may read a value that the fused neighbours never store; then they cannot stand in.
  bool run_parts(size_t fused) {
    std::vector<bool> available = available_;
    for (int p : plan_.parts_of[fused]) {
      const Launch& part = plan_.parts[p];
      for (NodeId value : part.arguments) {
        const bool stored_here = std::find(part.stores.begin(), part.stores.end(), value) != part.stores.end();
        if (!stored_here && !available[value]) return false;
      }
      for (NodeId value : part.stores) available[value] = true;
    }
    for (NodeId value : plan_.fused[fused].stores) {
      if (!available[value]) return false;
    }
    available_ = std::move(available);
    for (int p : plan_.parts_of[fused]) launches_.push_back(~p);
    return true;
  }

  absl::StatusOr<std::vector<int>> whole_default() const {
    std::vector<int> launches;
    for (size_t p = 0; p < plan_.parts.size(); ++p) {
      if (record_of(plan_.parts[p]) == nullptr) {
        return absl::NotFoundError(
            cat("no correct kernel was found for the group\n", plan_.groups[plan_.parts[p].group].text));
      }
      launches.push_back(~static_cast<int>(p));
    }
    return launches;
  }

  const JobPlan& plan_;
  const Records& records_;
  std::vector<bool> available_;
  std::vector<int> launches_;
};

const Launch& launch_of(const JobPlan& plan, int number) {
  return number >= 0 ? plan.fused[number] : plan.parts[~number];
}

class Assembler {
 public:
  Assembler(const JobPlan& plan, const Records& records, const std::set<std::string>& searched,
            const std::set<std::string>& transferred)
      : plan_(plan), records_(records), searched_(searched), transferred_(transferred) {
    buffer_of_.assign(plan.graph.nodes.size(), -1);
  }

  absl::StatusOr<JobResult> run() {
    WL_ASSIGN_OR_RETURN(std::vector<int> launches, choose_launches(plan_, records_));
    for (NodeId input : plan_.graph.inputs()) {
      const int buffer = add_buffer(input, plan_.graph.nodes[input].text, ResultBuffer::Kind::kInput);
      result_.inputs.push_back({plan_.graph.nodes[input].text, buffer});
    }
    name_outputs();
    for (int number : launches) add_step(number);
    for (const Output& output : plan_.graph.outputs) {
      WL_CHECK(buffer_of_[output.node] >= 0, "no launch stores output ", output.name);
      result_.outputs.push_back({output.name, buffer_of_[output.node]});
    }
    add_totals();
    return std::move(result_);
  }

 private:
  int add_buffer(NodeId value, std::string name, ResultBuffer::Kind kind) {
    const Node& node = plan_.graph.nodes[value];
    buffer_of_[value] = static_cast<int>(result_.buffers.size());
    result_.buffers.push_back({std::move(name), node.dtype, node.shape, kind});
    return buffer_of_[value];
  }

  // Outputs keep their names; the first name wins where several share a value.
  void name_outputs() {
    for (const Output& output : plan_.graph.outputs) {
      if (buffer_of_[output.node] < 0) add_buffer(output.node, output.name, ResultBuffer::Kind::kOutput);
    }
  }

  void add_step(int number) {
    const Launch& launch = launch_of(plan_, number);
    Step step;
    step.group = group_result(launch.group, number);
    for (NodeId value : launch.arguments) {
      if (buffer_of_[value] < 0) {
        add_buffer(value, cat("t", intermediates_++), ResultBuffer::Kind::kIntermediate);
      }
      step.arguments.push_back(buffer_of_[value]);
    }
    result_.steps.push_back(std::move(step));
    ++result_.groups[result_.steps.back().group].count;
  }

  int group_result(int group, int number) {
    const auto [known, is_new] = result_of_.try_emplace(group, static_cast<int>(result_.groups.size()));
    if (!is_new) return known->second;
    const PlannedGroup& planned = plan_.groups[group];
    const KernelRecord& record = records_.at(planned.key);
    GroupResult out;
    out.key = planned.key;
    out.graph = planned.text;
    out.ops = planned.ops;
    out.source = transferred_.contains(planned.key) ? "transferred"
                 : searched_.contains(planned.key)  ? "searched"
                                                    : "cached";
    out.bytes = planned.bytes;
    out.flops = planned.flops;
    out.best_ns = best_of(record);
    out.samples_ns = record.samples_ns;
    out.trials = record.outcomes;
    out.max_error = record.max_error;
    out.bound = record.bound;
    out.plan = record.plan;
    out.record_digest = record.digest;
    std::vector<int> parts = number >= 0 ? plan_.parts_of[number] : std::vector<int>{~number};
    for (int p : parts) {
      const PlannedGroup& part = plan_.groups[plan_.parts[p].group];
      ++out.kernels_default;
      out.bytes_default += part.bytes;
      if (const auto found = records_.find(part.key); found != records_.end())
        out.default_ns += default_of(found->second);
    }
    if (parts.empty()) {
      out.kernels_default = 1;
      out.bytes_default = planned.bytes;
      out.default_ns = default_of(record);
    }
    result_.groups.push_back(std::move(out));
    return known->second;
  }

  void add_totals() {
    JobResult& out = result_;
    for (const GroupResult& group : out.groups) {
      out.kernels_default += group.count * group.kernels_default;
      out.kernels += group.count * group.kernels;
      out.bytes_default += group.count * group.bytes_default;
      out.bytes += group.count * group.bytes;
      out.default_ns += static_cast<double>(group.count) * group.default_ns;
      out.best_ns += static_cast<double>(group.count) * group.best_ns;
    }
    for (const PlannedGroup& group : plan_.groups) {
      const auto found = records_.find(group.key);
      if (found == records_.end()) continue;
      for (int64_t count : found->second.outcomes) out.trials += count;
      out.compile_s += found->second.compile_s;
      out.check_s += found->second.check_s;
      out.measure_s += found->second.measure_s;
    }
    out.graph_hash = plan_.graph_hash;
    out.enumerate_s = plan_.enumerate_s;
    out.device = plan_.device;
    out.environment = environment_of(plan_.device);
    out.warploom_version = WARPLOOM_VERSION;
  }

  const JobPlan& plan_;
  const Records& records_;
  const std::set<std::string>& searched_;
  const std::set<std::string>& transferred_;
  JobResult result_;
  std::vector<int> buffer_of_;
  std::map<int, int> result_of_;
  int intermediates_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<int>> choose_launches(const JobPlan& plan, const Records& records) {
  return Chooser(plan, records).choose();
}

std::set<std::string> parts_in_use(const JobPlan& plan, const std::vector<int>& launches) {
  std::set<std::string> keys;
  for (int number : launches) {
    if (number < 0) keys.insert(plan.groups[plan.parts[~number].group].key);
  }
  return keys;
}

absl::StatusOr<JobResult> assemble(const JobPlan& plan, const Records& records, const std::set<std::string>& searched,
                                   const std::set<std::string>& transferred) {
  return Assembler(plan, records, searched, transferred).run();
}

}  // namespace wl
