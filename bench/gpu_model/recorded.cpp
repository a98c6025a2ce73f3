// Judges the cost models of GPU kernels by plans that a device ran: for each workload of recordings of
// tools/device_check.py, how fast the plan is that a model puts first, and in which order the model puts all of them.
//
//     build/release/bin/gpu_recorded bench/results/device/h200-*.json [--plans] [--least MODEL=SHARE]
//
// Needs no GPU. Exit codes: 0 done, 1 wrong usage, 7 a first choice has less than its --least.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/device/plans.h"
#include "compiler/base/records.h"
#include "compiler/cover/stitching.h"
#include "compiler/ir/text.h"
#include "compiler/model/gpu_cost.h"
#include "compiler/model/pipeline.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {
namespace {

using Json = nlohmann::json;
constexpr size_t kLeastPlans = 3;  // workloads with fewer plans are left out

// A plan that a device ran, and what the models say of it in ns; infinity: the model does not price such kernels. Only
// the order of predictions counts.
struct Timed {
  std::string plan;
  const char* kind = "";  // of the workload
  double ns = 0;
  std::vector<double> predicted;
};

// The models, in the order of Timed::predicted: the order of the space's own seeds (other plans come last), what
// gpu_time() and gpu_contract_ns() expect.
constexpr const char* kModels[] = {"seeds", "kernel", "pipeline"};
constexpr size_t kModelCount = std::size(kModels);
constexpr double kUnpriced = std::numeric_limits<double>::infinity();

// How well a model orders the plans of a workload. first: the least time of all plans over that of the plan that the
// model puts first; the slowest of them counts where several have the least prediction. tau: Kendall's coefficient of
// rank correlation (tau-b without ties of times): pairs in the right order less those in the wrong one, over all pairs.
struct Order {
  double first = 0, tau = 0;
};

Order order_of(const std::vector<Timed>& plans, size_t model) {
  double best = kUnpriced, least = kUnpriced, chosen = 0, agreeing = 0, pairs = 0;
  for (const Timed& one : plans) {
    best = std::min(best, one.ns);
    least = std::min(least, one.predicted[model]);
  }
  for (const Timed& one : plans)
    if (one.predicted[model] == least) chosen = std::max(chosen, one.ns);
  for (size_t a = 0; a < plans.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      const double predicted = plans[a].predicted[model] - plans[b].predicted[model];
      const double measured = plans[a].ns - plans[b].ns;
      if (measured == 0) continue;
      ++pairs;
      if (predicted != 0) agreeing += (predicted > 0) == (measured > 0) ? 1 : -1;
    }
  return {best / chosen, pairs > 0 ? agreeing / pairs : 0};
}

// Returns the plans of a recorded workload that this version can lower, with their times and predictions.
std::vector<Timed> plans_of(const Json& recorded, const DeviceWorkload& workload, const Machine& machine) {
  std::vector<Timed> plans;
  const auto graph = parse(workload.graph);
  if (!graph.ok()) return plans;
  const auto domain = analyze_group(*graph, machine);
  if (!domain.ok()) return plans;
  const auto space = space_of(*graph, *domain, machine);
  if (!space.ok()) return plans;
  const bool product = domain->cls == LoopClass::kContract;
  const bool nest = !product && domain->cls != LoopClass::kStitched && domain->cls != LoopClass::kPacked;
  const char* const kind = product ? "products" : nest ? "nests" : "stitched";
  const ProductExtents extents = product ? product_extents(*graph, *domain) : ProductExtents();
  for (const Json& trial : recorded.value("trials", Json::array())) {
    const auto text = trial.value("plan", std::string());
    const auto point = space->parse(text);
    if (!point.ok()) continue;
    const Schedule schedule = space->schedule(*point);
    const auto kernel = lower(*graph, *domain, schedule, machine);
    if (!kernel.ok()) continue;
    const auto seed = std::find(space->seeds.begin(), space->seeds.end(), *point) - space->seeds.begin();
    plans.push_back({text,
                     kind,
                     trial.value("ns", 0.0),
                     {static_cast<double>(seed), gpu_time(*kernel, machine).ns,
                      product ? gpu_contract_ns(schedule, extents, machine) : kUnpriced}});
  }
  return plans;
}

// Sums of Order over workloads: logarithms of `first`, its least value, and tau.
struct Total {
  double workloads = 0, first_log = 0, least = 1, tau = 0;
  void add(const Order& order) {
    ++workloads;
    first_log += std::log(order.first);
    least = std::min(least, order.first);
    tau += order.tau;
  }
  double mean_first() const { return std::exp(first_log / std::max(1.0, workloads)); }
  void print(const std::string& name) const {
    if (workloads > 0)
      std::printf("| %s | %.0f | %.3f | %.3f | %.2f |\n", name.c_str(), workloads, mean_first(), least,
                  tau / workloads);
  }
};

class Judge {
 public:
  explicit Judge(bool prints_plans) : prints_plans_(prints_plans) {}

  absl::Status add(const std::string& path) {
    try {
      return add_recording(path);
    } catch (const Json::exception& error) {
      return absl::InvalidArgumentError(cat(path, ": not a recording of tools/device_check.py: ", error.what()));
    }
  }

  void print() const {
    std::printf(
        "\n| plans that the device ran | workloads | first choice of the best | least | Kendall's tau |\n"
        "|---|---|---|---|---|\n");
    for (const auto& [name, total] : totals_) total.print(name);
    std::printf("\n%zu plans.\n", plans_);
  }

  // Whether the first choices of a model, such as "nests, nest", have at least this share of the best plans' speed.
  bool reaches(const std::string& name, double share) const {
    const auto at = totals_.find(name);
    return at != totals_.end() && at->second.mean_first() >= share;
  }

 private:
  absl::Status add_recording(const std::string& path) {
    std::ifstream file(path);
    const Json recording = Json::parse(file);
    if (!recording.is_object() || !recording.contains("workloads"))
      return absl::InvalidArgumentError(cat(path, ": not a recording of tools/device_check.py"));
    Machine machine;
    WL_ASSIGN_OR_RETURN(machine.target, target_named(recording.value("target", std::string())));
    if (!machine.target->is_gpu()) return absl::InvalidArgumentError(cat(path, ": of a CPU"));
    const std::vector<DeviceWorkload> known = device_workloads(/*quick=*/false);
    for (const Json& recorded : recording["workloads"]) {
      const auto name = recorded.value("name", std::string());
      const auto at = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.name == name; });
      if (at != known.end()) add_workload(name, plans_of(recorded, *at, machine));
    }
    return absl::OkStatus();
  }

  void add_workload(const std::string& name, const std::vector<Timed>& plans) {
    if (plans.size() < kLeastPlans) return;
    plans_ += plans.size();
    std::printf("%s, %zu plans:", name.c_str(), plans.size());
    for (size_t model = 0; model < kModelCount; ++model) {
      if (plans[0].predicted[model] == kUnpriced) continue;
      const Order order = order_of(plans, model);
      std::printf(" %s %.3f tau %.2f", kModels[model], order.first, order.tau);
      totals_[cat(plans[0].kind, ", ", kModels[model])].add(order);
    }
    std::printf("\n");
    for (const Timed& one : plans) {
      if (!prints_plans_) break;
      std::printf("  %.1f us", one.ns / 1000);
      for (const double ns : one.predicted) std::printf(" %.1f", ns < 1000 ? ns : ns / 1000);
      std::printf(" %s\n", one.plan.c_str());
    }
  }

  bool prints_plans_;
  size_t plans_ = 0;
  std::map<std::string, Total> totals_;
};

int run(const std::vector<std::string>& paths, const std::vector<std::string>& least, bool prints_plans) {
  Judge judge(prints_plans);
  for (const std::string& path : paths)
    if (const absl::Status status = judge.add(path); !status.ok()) {
      std::fprintf(stderr, "gpu_recorded: %s\n", std::string(status.message()).c_str());
      return 1;
    }
  judge.print();
  for (const std::string& wanted : least) {
    const size_t equals = wanted.find('=');
    const double share = equals == std::string::npos ? 0 : std::strtod(wanted.c_str() + equals + 1, nullptr);
    if (share <= 0) {
      std::fprintf(stderr, "gpu_recorded: --least takes MODEL=SHARE, such as 'nests, nest=0.97', not '%s'\n",
                   wanted.c_str());
      return 1;
    }
    if (!judge.reaches(wanted.substr(0, equals), share)) {
      std::fprintf(stderr, "gpu_recorded: %s is not reached\n", wanted.c_str());
      return 7;
    }
  }
  return 0;
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  CLI::App app("Judges the cost models of GPU kernels by plans that a device ran.");
  std::vector<std::string> paths, least;
  bool plans = false;
  app.add_option("recordings", paths, "results of tools/device_check.py")->required()->check(CLI::ExistingFile);
  app.add_option("--least", least, "KIND, MODEL=SHARE: fail if the model's first choices have less of the best speed");
  app.add_flag("--plans", plans, "print each plan, its time and what the models predict, in us");
  CLI11_PARSE(app, argc, argv);
  return wl::run(paths, least, plans);
}
