#include "compiler/search/analytic_seeds.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "compiler/kernel/verify.h"
#include "compiler/model/cpu_cost.h"
#include "compiler/model/gpu_cost.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {
namespace {

constexpr size_t kSeeds = 8;  // maximum number of a space's seeds after a cost model has chosen them
// Coordinate descents start from this many of the seeds that rules of thumb have made.
constexpr int kStarts = 3;
constexpr int kRounds = 2;  // maximum number of rounds of a coordinate descent; each round covers all axes
constexpr double kWorst = 1e300;

// The expected costs of a space's points. Each cost is computed once; kWorst stands for illegal points and unknown
// costs.
class Prices {
 public:
  Prices(const Space& space, std::function<double(const Point&)> price) : space_(space), price_(std::move(price)) {}

  double of(const Point& point) {
    const auto [at, fresh] = known_.try_emplace(point, kWorst);
    if (fresh && space_.is_legal(point)) at->second = price_(point);
    return at->second;
  }
  // Returns all points whose cost is known, cheapest first.
  std::vector<Point> ranked() const {
    std::vector<std::pair<double, Point>> order;
    for (const auto& [point, ns] : known_)
      if (ns < kWorst) order.emplace_back(ns, point);
    std::sort(order.begin(), order.end());
    std::vector<Point> out;
    for (auto& [ns, point] : order) out.push_back(std::move(point));
    return out;
  }

 private:
  const Space& space_;
  const std::function<double(const Point&)> price_;
  std::map<Point, double> known_;
};

// Coordinate descent from a point. Each round finds the best combination of values of the first two axes, then the
// best value of the second axis and of each later one alone. The first two are chosen together because some of their
// values only pay together, as the height and the width of a micro-kernel do.
void walk(const Space& space, Point point, Prices& prices) {
  for (int round = 0; round < kRounds; ++round) {
    const Point before = point;
    for (size_t axis = 0; axis < space.axes.size(); ++axis) {
      const bool pair = axis == 0 && space.axes.size() > 1;
      Point best = point;
      for (int value = 0; value < static_cast<int>(space.axes[axis].values.size()); ++value)
        for (int other = 0; other < (pair ? static_cast<int>(space.axes[1].values.size()) : 1); ++other) {
          Point next = point;
          next[axis] = value;
          if (pair) next[1] = other;
          if (prices.of(next) < prices.of(best)) best = std::move(next);
        }
      point = std::move(best);
    }
    if (point == before) return;
  }
}

// Returns the kind of a schedule: the values of the choices in which schedules of one kind agree. These are the
// micro-kernel and the packing on CPUs, and the tiles, the copies and the matrix instruction on GPUs.
std::vector<int64_t> kind_of(const Space& space, const Point& point) {
  std::vector<int64_t> kind;
  const Schedule s = space.schedule(point);
  for (const Choice choice :
       {kMr, kNv, kPackA, kPackB, kCopyImage, kTurnTiles, kTileRows, kTileColumns, kAsyncCopies, kMatrix, kWiden})
    if (s.has(choice)) kind.push_back(s[choice]);
  return kind;
}

using Lowered = std::function<absl::StatusOr<Kernel>(const Point&)>;

Lowered lowered_in(const Graph& group, const Domain& domain, const Machine& machine, const Space& space) {
  return [&](const Point& point) { return lower(group, domain, space.schedule(point), machine); };
}

// Replaces the seeds of a space by the cheapest point of each kind. The last `own_kept` of kSeeds places are reserved
// for the space's former seeds. All new seeds have different kernels. (Different points may have equal kernels, for
// example if tiles have more rows than the result.)
void order_by(Prices prices, const Lowered& lowered, Space& space, size_t own_kept = 1) {
  for (const Point& seed : space.seeds) prices.of(seed);
  std::vector<Point> starts = prices.ranked();
  starts.resize(std::min<size_t>(starts.size(), kStarts));
  for (Point& start : starts) walk(space, std::move(start), prices);
  const std::vector<Point> ranked = prices.ranked();
  std::vector<Point> seeds;
  std::set<std::vector<int64_t>> kinds;
  std::set<std::string> texts;
  const auto is_new = [&](const Point& point) {
    const auto kernel = lowered(point);
    return texts.insert(kernel.ok() ? print(*kernel) : space.text(point)).second;
  };
  for (const Point& point : ranked) {
    if (seeds.size() + own_kept == kSeeds) break;
    if (kinds.insert(kind_of(space, point)).second && is_new(point)) seeds.push_back(point);
  }
  for (const Point& own : space.seeds)
    if (seeds.size() < kSeeds && is_new(own)) seeds.push_back(own);
  space.seeds = std::move(seeds);
}

bool is_cpu_contraction(const Domain& domain, const Machine& machine, const Space&) {
  return domain.cls == LoopClass::kContract && !machine.target->is_gpu();
}

// Prices of points by their kernels.
Prices kernel_prices(const Space& space, const Lowered& lowered, const std::function<double(const Kernel&)>& price) {
  return Prices(space, [lowered, price](const Point& point) {
    const auto kernel = lowered(point);
    return kernel.ok() ? price(*kernel) : kWorst;
  });
}
Prices gpu_prices(const Space& space, const Lowered& lowered, const Machine& machine) {
  return kernel_prices(space, lowered, [&](const Kernel& kernel) { return gpu_time(kernel, machine).ns; });
}

void order_by_cpu_cost(const Graph& group, const Domain& domain, const Machine& machine, Space& space) {
  const CpuCost cost = default_cpu_cost(machine);
  const Lowered lowered = lowered_in(group, domain, machine, space);
  order_by(kernel_prices(space, lowered, [&](const Kernel& kernel) { return cpu_ns(cpu_work(kernel, machine), cost); }),
           lowered, space);
}

// Until a device has been measured, the model's rates come from data sheets. So half of the kSeeds places are
// reserved for the space's former seeds.
void order_gpu_products(const Graph& group, const Domain& domain, const Machine& machine, Space& space) {
  const Lowered lowered = lowered_in(group, domain, machine, space);
  order_by(gpu_prices(space, lowered, machine), lowered, space, kSeeds / 2);
}

// The model was held against schedules like the former seeds, so these are put in its order and come first. The one
// that it finds from the best of them is the second, if `walks`.
void order_gpu_seeds(const Graph& group, const Domain& domain, const Machine& machine, Space& space, bool walks) {
  const Lowered lowered = lowered_in(group, domain, machine, space);
  Prices prices = gpu_prices(space, lowered, machine);
  std::stable_sort(space.seeds.begin(), space.seeds.end(),
                   [&](const Point& a, const Point& b) { return prices.of(a) < prices.of(b); });
  if (walks && !space.seeds.empty()) {
    walk(space, space.seeds[0], prices);
    const std::vector<Point> ranked = prices.ranked();
    if (!ranked.empty() && std::find(space.seeds.begin(), space.seeds.end(), ranked[0]) == space.seeds.end())
      space.seeds.insert(space.seeds.begin() + 1, ranked[0]);
  }
  if (space.seeds.size() > kSeeds) space.seeds.resize(kSeeds);
}

bool is_on_gpu(const Machine& machine, const Domain& domain, std::initializer_list<LoopClass> classes) {
  return machine.target->is_gpu() && std::find(classes.begin(), classes.end(), domain.cls) != classes.end();
}

constexpr SeedModel kSeedModels[] = {
    {"ranker", "contractions on CPUs, by what the learned model expects",
     [](const Domain& domain, const Machine& machine, const Space& space) {
       return space.expected_log_ns && is_cpu_contraction(domain, machine, space);
     },
     [](const Graph& group, const Domain& domain, const Machine& machine, Space& space) {
       order_by(Prices(space, space.expected_log_ns), lowered_in(group, domain, machine, space), space);
     }},
    {"cpu_cost", "contractions on CPUs, by reuse of their data and what a step of each micro-kernel takes",
     is_cpu_contraction, order_by_cpu_cost},
    {"gpu_products", "contractions on GPUs, by what their blocks move, compute and wait for",
     [](const Domain& domain, const Machine& machine, const Space&) {
       return is_on_gpu(machine, domain, {LoopClass::kContract});
     },
     order_gpu_products},
    {"gpu_nests", "loop nests on GPUs, by the same model",
     [](const Domain& domain, const Machine& machine, const Space&) {
       return is_on_gpu(machine, domain, {LoopClass::kMap, LoopClass::kRows, LoopClass::kColumns});
     },
     [](const Graph& group, const Domain& domain, const Machine& machine, Space& space) {
       order_gpu_seeds(group, domain, machine, space, /*walks=*/true);
     }},
    {"gpu_stitched", "stitched groups on GPUs, by the same model; their own first schedules only",
     [](const Domain& domain, const Machine& machine, const Space&) {
       return is_on_gpu(machine, domain, {LoopClass::kStitched});
     },
     [](const Graph& group, const Domain& domain, const Machine& machine, Space& space) {
       order_gpu_seeds(group, domain, machine, space, /*walks=*/false);
     }},
};

}  // namespace

std::span<const SeedModel> seed_models() {
  return kSeedModels;
}

void order_seeds(const Graph& group, const Domain& domain, const Machine& machine, Space& space,
                 std::span<const std::string_view> without) {
  for (const SeedModel& row : kSeedModels) {
    if (std::find(without.begin(), without.end(), row.name) != without.end() || !row.applies(domain, machine, space))
      continue;
    return row.order(group, domain, machine, space);
  }
}

}  // namespace wl
