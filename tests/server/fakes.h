// A compiler and a worker that compute nothing. Their answers follow from the text of a plan, so that a test can
// predict the answers.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/sha256.h"
#include "compiler/cover/cover.h"
#include "compiler/ir/eval.h"
#include "server/coordinator.h"
#include "server/jobs/compiler.h"
#include "worker/agent.h"

namespace wl {

inline uint64_t number_of(const std::string& text) {
  return std::stoull(sha256_hex(text).substr(0, 12), nullptr, 16);
}

class FakeGroup : public GroupCompiler {
 public:
  explicit FakeGroup(const Graph& graph, bool known_plans = false)
      : known_plans_(known_plans), buffers_(buffers_of(graph)), ops_(static_cast<int>(graph.nodes.size())) {}
  std::vector<std::string> seeds() const override { return {plan(0), plan(1)}; }
  // The proposals depend on every trial, so that any change of the order or outcome of trials changes all later
  // proposals.
  std::vector<std::string> propose(const std::string& strategy, const std::vector<PlanOutcome>& trials, int n,
                                   uint64_t seed) const override {
    std::string history = cat(strategy, seed);
    for (const PlanOutcome& trial : trials) append(&history, trial.plan, trial.correct, trial.ns);
    std::vector<std::string> plans;
    for (int i = 0; i < n; ++i) plans.push_back(plan(2 + number_of(cat(history, i)) % 100'000));
    return plans;
  }
  // Returns this group's plan with the same number as the first of the `known` winners; no plan if there is none.
  std::vector<std::string> nearest(const std::vector<KnownPlan>& known, int) const override {
    if (!known_plans_ || known.empty()) return {};
    return {cat("plan ops=", ops_, known[0].plan.substr(known[0].plan.rfind(' ')))};
  }
  absl::StatusOr<Source> generate(const std::string& text) const override {
    if (number_of(text) % 11 == 0 && text != plan(0)) return unimplemented("does not fit");
    Source source;
    source.target = "cpu:avx2";
    source.text = text;
    source.entry = cat("k", number_of(text));
    return source;
  }
  absl::StatusOr<Check> check(uint64_t seed, Work* work) const override {
    if (checking) checking(work);
    if (absl::Status status = ended(work); !status.ok()) return status;
    return Check{seed, {}};
  }
  std::string space_text() const override { return "100000 points"; }
  absl::StatusOr<std::string> kernel_text(const std::string& text) const override { return cat("kernel ", text); }

  std::function<void(Work*)> checking;  // called by check() if it is set

 private:
  std::string plan(uint64_t number) const { return cat("plan ops=", ops_, " number=", number); }
  bool known_plans_;
  std::vector<BufferSpec> buffers_;
  int ops_;
};

class FakeCompiler : public Compiler {
 public:
  absl::StatusOr<Graph> simplify(const Graph& graph) const override { return graph; }
  // Returns up to three covers: one kernel for all ops, one for each pair of ops (if `halves`), one for each op. If
  // `refining`, kernels for pairs replace the kernel for all ops once times are measured. The simpler covers "fused"
  // and "single" have one kernel for all ops and one for each op. While `stuck`, covers() returns only if `work` ends.
  absl::StatusOr<std::vector<Cover>> covers(const Graph& graph, const Machine&, const std::string& cover,
                                            const CoverPrices& prices, Work* work) const override {
    ++planning;
    while (stuck && graph.nodes.size() > stuck_beyond && go_on(work, 1)) {
    }
    --planning;
    WL_RETURN_IF_ERROR(ended(work));
    if (cover == "fused") return std::vector<Cover>{fused_cover(graph), default_cover(graph)};
    if (cover == "single") return std::vector<Cover>{default_cover(graph), default_cover(graph)};
    std::vector<Cover> covers = {fused_cover(graph), default_cover(graph)};
    if (halves) covers.insert(covers.begin() + 1, pairs(covers.back()));
    if (refining && !prices.measured.empty()) covers.front() = pairs(covers.back());
    const std::lock_guard lock(mutex_);
    priced_.emplace_back(prices.measured.size(), prices.otherwise);
    return covers;
  }
  bool refines(const std::string&) const override { return refining; }
  std::vector<std::string> simpler(const std::string&, bool relaid) const override {
    return relaid ? relaid_covers : simpler_covers;
  }
  static Cover default_cover(const Graph& graph) {
    Cover cover;
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      const Node& node = graph.nodes[id];
      if (class_of(node.op) == OpClass::kLeaf) continue;
      Group group{{static_cast<NodeId>(id)}, {}, {static_cast<NodeId>(id)}};
      for (NodeId operand : node.operands) {
        if (std::find(group.reads.begin(), group.reads.end(), operand) == group.reads.end())
          group.reads.push_back(operand);
      }
      cover.groups.push_back(std::move(group));
    }
    return cover;
  }
  static Cover pairs(const Cover& parts) {
    Cover cover;
    for (size_t i = 0; i < parts.groups.size(); i += 2) {
      Group both = parts.groups[i];
      if (i + 1 < parts.groups.size()) {
        const Group& next = parts.groups[i + 1];
        both.ops.insert(both.ops.end(), next.ops.begin(), next.ops.end());
        for (NodeId read : next.reads)
          if (std::find(both.ops.begin(), both.ops.end(), read) == both.ops.end() &&
              std::find(both.reads.begin(), both.reads.end(), read) == both.reads.end())
            both.reads.push_back(read);
        both.stores = next.stores;
      }
      cover.groups.push_back(std::move(both));
    }
    return cover;
  }
  static Cover fused_cover(const Graph& graph) {
    Group group;
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      (class_of(graph.nodes[id].op) == OpClass::kLeaf ? group.reads : group.ops).push_back(static_cast<NodeId>(id));
    }
    for (const Output& output : graph.outputs) group.stores.push_back(output.node);
    return Cover{{group}};
  }
  absl::StatusOr<std::unique_ptr<GroupCompiler>> open(const Graph& group, const Machine&) const override {
    ++opened;
    auto made = std::make_unique<FakeGroup>(group, known_plans);
    made->checking = checking;
    return made;
  }
  absl::StatusOr<CoverExplanation> explain(const Graph&, const Machine&, const std::string&, Work*) const override {
    return CoverExplanation{};
  }
  absl::Status known_cover(const std::string&) const override { return absl::OkStatus(); }
  absl::Status known_strategy(const std::string& name) const override {
    return name == "portfolio" || name == "random" ? absl::OkStatus() : invalid("strategy: unknown \"", name, "\"");
  }
  mutable std::atomic<int> opened = 0;
  bool halves = false, refining = false;
  std::atomic<bool> stuck = false;       // whether covers() returns only when its `work` ends
  std::atomic<size_t> stuck_beyond = 0;  // number of nodes up to which graphs are planned although `stuck`
  mutable std::atomic<int> planning = 0;
  std::vector<std::string> simpler_covers, relaid_covers;
  bool known_plans = false;                  // whether nearest() proposes winners of similar groups
  std::function<void(Work*)> checking = {};  // called while a check is made, on a thread of the pool
  // Returns, for each call of covers(), how many kernels had a measured time, and how the other kernels were priced.
  std::vector<std::pair<size_t, Unmeasured>> priced() const {
    const std::lock_guard lock(mutex_);
    return priced_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<size_t, Unmeasured>> priced_;
};

// A compiler with a refined cover of two kernels, and the simpler covers "fused" of one and "single" of three kernels.
struct RefiningCompiler {
  RefiningCompiler() {
    fake.refining = true;
    fake.simpler_covers = {"fused", "single"};
  }
  FakeCompiler fake;
};

// Returns the text of a graph that is one group.
inline std::string one_op(int64_t rows, int64_t columns = 32) {
  const std::string type = cat("f32[", rows, ",", columns, "]");
  return cat("graph {\n  %0 = input \"x\" : ", type, " normal(0,1)\n  %1 = exp %0 : ", type,
             "\n  output \"y\" %1\n}\n");
}

inline Device fake_device() {
  Device device;
  device.target = "cpu:avx2";
  device.name = "fake";
  device.threads = 2;
  device.compilers = {"gcc"};
  device.compiler_versions = "gcc 12";
  return device;
}

// Returns the trial of a candidate. About one plan of 13 is wrong. A default plan takes 2000 ns, others 1000 to 1899.
// Times do not depend on the group, so a fused kernel is faster than the several kernels that it replaces.
inline Trial fake_trial(const Candidate& candidate, bool keep_object) {
  Trial trial;
  trial.trial = candidate.trial;
  trial.plan = candidate.plan;
  const uint64_t number = number_of(candidate.plan);
  const bool standard = candidate.plan.ends_with(" number=0");
  trial.outcome = number % 13 == 0 && !standard ? Outcome::kWrongResult : Outcome::kCorrect;
  if (trial.outcome == Outcome::kCorrect)
    trial.samples_ns = {static_cast<int64_t>(standard ? 2000 : 1000 + number % 900)};
  trial.bound = 1;
  trial.compile_s = 0.125;
  if (keep_object) trial.object_sha256 = sha256_hex("object of " + candidate.plan);
  return trial;
}

// Returns the trial of a chain of kernels that took this long.
inline Trial took(int64_t ns) {
  Trial trial;
  trial.outcome = Outcome::kCorrect;
  trial.samples_ns = {ns, ns};
  return trial;
}

// What a test changes of a FakeWorker. `before` is called first with every batch and may block. `judge` may change the
// trial of a candidate. `forge` may change all trials and objects of a batch before they are reported and uploaded.
struct Hooks {
  std::function<void(const Batch&)> before = {};
  std::function<void(const Batch&, Trial*)> judge = {};
  std::function<void(const Batch&, Measured*)> forge = {};
  double share = 0;                                     // as AgentOptions::share
  std::function<Trial(const KernelChain&)> whole = {};  // makes the trial of a chain; if not set: 1000 ns for each step
};

// A `forge` of a hostile worker: replaces every object by other bytes, and its digest by the digest of these bytes.
inline void forge_objects(const Batch&, Measured* measured) {
  for (Trial& trial : measured->trials) {
    if (trial.object_sha256.empty()) continue;
    std::string& object = measured->objects.at(trial.trial);
    object = "hostile " + object;
    trial.object_sha256 = sha256_hex(object);
  }
}

// A plan that a worker measured, with its batch and phase (0: a search round; above 0: a promotion or confirmation).
struct MeasuredPlan {
  std::string batch, plan;
  int64_t phase = 0;
  bool operator==(const MeasuredPlan&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const MeasuredPlan& item) {
  return out << item.batch << " " << item.plan;
}

// Returns the number of operations of a fake group: its plans name the number of its graph's nodes.
inline int64_t ops_of(const Batch& batch, const std::string& plan) {
  const int64_t inputs = static_cast<int64_t>(batch.problem.buffers.size()) - 1;
  return std::stoll(plan.substr(std::string("plan ops=").size())) - inputs;
}

// Returns hooks with these times of whole covers. Default schedules take 2000 ns for every operation, so those of all
// covers take equally long, unless `single` multiplies the times of groups of one operation.
inline Hooks by_times(std::map<std::string, Trial> times, double single = 1) {
  Hooks hooks;
  hooks.whole = [times = std::move(times)](const KernelChain& chain) { return times.at(chain.plan); };
  hooks.judge = [single](const Batch& batch, Trial* trial) {
    if (!trial->plan.ends_with(" number=0")) return;
    const int64_t ops = ops_of(batch, trial->plan);
    trial->samples_ns = {static_cast<int64_t>(static_cast<double>(2000 * ops) * (ops == 1 ? single : 1))};
  };
  return hooks;
}

// A worker in a thread. Each worker has a machine of its own, unless `machine` (a SHA-256 in hex) names one.
class FakeWorker {
 public:
  FakeWorker(std::shared_ptr<grpc::Channel> channel, std::string name, Hooks hooks = {},
             const Device& device = fake_device(), const std::string& machine = "")
      : hooks_(std::move(hooks)) {
    options_.name = std::move(name);
    static std::atomic<int> made = 0;
    options_.machine = machine.empty() ? sha256_hex(cat("machine ", ++made)) : machine;
    options_.devices = {device};
    options_.share = hooks_.share;
    options_.measure_with = [this](const Batch& batch, const MeasureOptions&) -> absl::StatusOr<Measured> {
      if (hooks_.before) hooks_.before(batch);
      Measured measured;
      if (!batch.chains.empty()) return measure_chains(batch);
      for (const Candidate& candidate : batch.candidates) {
        Trial trial = fake_trial(candidate, batch.keep_objects);
        if (hooks_.judge) hooks_.judge(batch, &trial);
        if (batch.keep_objects) measured.objects[candidate.trial] = "object of " + candidate.plan;
        measured.trials.push_back(std::move(trial));
      }
      if (hooks_.forge) hooks_.forge(batch, &measured);
      const std::lock_guard lock(mutex_);
      for (const Candidate& candidate : batch.candidates) measured_.push_back({batch.id, candidate.plan, batch.phase});
      return measured;
    };
    thread_ = std::jthread([this, channel](std::stop_token stop) { status_ = run_agent(channel, options_, stop); });
  }
  ~FakeWorker() { (void)stop(); }
  // Tells the worker to take no further lease, without waiting for its thread.
  void request_stop() { thread_.request_stop(); }
  absl::Status stop() {
    request_stop();
    if (thread_.joinable()) thread_.join();
    return status_;
  }
  // Returns the plans in the order in which they were measured.
  std::vector<MeasuredPlan> measured() {
    const std::lock_guard lock(mutex_);
    return measured_;
  }

 private:
  Measured measure_chains(const Batch& batch) {
    Measured measured;
    const std::lock_guard lock(mutex_);
    for (const KernelChain& chain : batch.chains) {
      Trial trial = hooks_.whole ? hooks_.whole(chain) : Trial{};
      trial.trial = chain.trial;
      trial.plan = chain.plan;
      if (!hooks_.whole) {
        trial.outcome = Outcome::kCorrect;
        trial.samples_ns = {static_cast<int64_t>(1000 * chain.steps.size())};
      }
      measured.trials.push_back(std::move(trial));
      measured_.push_back({batch.id, chain.plan, batch.phase});
    }
    return measured;
  }

  Hooks hooks_;
  AgentOptions options_;
  std::mutex mutex_;
  std::vector<MeasuredPlan> measured_;
  absl::Status status_;
  std::jthread thread_;
};

}  // namespace wl
