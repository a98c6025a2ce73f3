#include "bench/cpu_model/pipelining.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>

#include "absl/strings/str_format.h"
#include "bench/gpu_model/alcop.h"
#include "compiler/ir/text.h"
#include "compiler/model/cpu_cost.h"
#include "compiler/schedule/lower/lower.h"
#include "nlohmann/json.hpp"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

constexpr int64_t kLargeProduct = 4'000'000'000;  // a product with more multiplications than this is large
// The number of schedules of each kind that are timed: kFew for a large product, kMany for any other product.
constexpr size_t kFew = 6, kMany = 16;

// Kinds of schedules, by the right operand: read in place without prefetches, read in place with prefetches, copied
// into panels. The time of a kind is the least time of its schedules and of those of the kinds before it.
enum Kind : size_t { kInPlace, kPrefetched, kPacked, kKinds };
constexpr std::array<const char*, kKinds> kKindNames = {"no prefetches", "prefetches", "or packed operands"};

Kind kind_of(const Schedule& schedule) {
  return schedule[kPackB] != 0 ? kPacked : schedule[kPrefetch] != 0 ? kPrefetched : kInPlace;
}

std::string shape_name(const AlcopProduct& product) {
  std::string name = cat("pipelined_", product.name);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '^'; }, '_');
  return name;
}

// Returns for each kind the least time in ns of its schedules and of those of the kinds before it.
absl::StatusOr<std::array<double, kKinds>> least_times(const CpuShape& shape, const std::string& folder,
                                                       const Machine& machine) {
  std::ifstream file(cat(folder, "/", shape.name, ".samples"));
  const auto points = nlohmann::json::parse(file, nullptr, false);
  if (points.is_discarded()) return invalid(folder, " has no samples of ", shape.name, ": `cpu_model time` makes them");
  WL_ASSIGN_OR_RETURN(const OpenShape open, open_shape(shape, machine));
  std::array<double, kKinds> least;
  least.fill(std::numeric_limits<double>::infinity());
  for (const auto& timed : points) {
    WL_ASSIGN_OR_RETURN(const Point point, open.space.parse(timed["plan"].get<std::string>()));
    for (const int64_t ns : timed["ns"].get<std::vector<int64_t>>())
      for (size_t k = kind_of(open.space.schedule(point)); k < kKinds; ++k)
        least[k] = std::min(least[k], static_cast<double>(ns));
  }
  return least;
}

}  // namespace

std::vector<CpuShape> pipelined_shapes() {
  std::vector<CpuShape> out;
  for (const AlcopProduct& product : kAlcopProducts) {
    CpuShape shape{shape_name(product), product.graph("f32")};
    const int64_t products = int64_t{product.batch} * product.rows * product.columns * product.depth;
    shape.pipelined = products > kLargeProduct ? kFew : kMany;
    out.push_back(std::move(shape));
  }
  return out;
}

std::vector<Point> pipelined_points(const OpenShape& open) {
  const CpuCost cost = default_cpu_cost(open.machine);
  std::array<std::vector<std::pair<double, Point>>, kKinds> priced;
  open.space.enumerate([&](const Point& point) {
    const Schedule schedule = open.space.schedule(point);
    if (kind_of(schedule) == kPrefetched) return true;
    const auto kernel = lower(open.graph, open.domain, schedule, open.machine);
    if (kernel.ok()) priced[kind_of(schedule)].emplace_back(cpu_ns(cpu_work(*kernel, open.machine), cost), point);
    return true;
  });
  for (auto& kind : priced) {
    std::sort(kind.begin(), kind.end());
    kind.resize(std::min(kind.size(), open.shape.pipelined));
  }
  const auto& axes = open.space.axes;
  const auto prefetch = std::find_if(axes.begin(), axes.end(), [](const auto& a) { return a.choice == kPrefetch; });
  std::vector<Point> out;
  for (auto& [ns, point] : priced[kInPlace]) {
    const size_t values = prefetch == axes.end() ? 1 : prefetch->values.size();
    for (size_t value = 0; value < values; ++value) {
      Point twin = point;
      if (prefetch != axes.end()) twin[static_cast<size_t>(prefetch - axes.begin())] = static_cast<int>(value);
      if (open.space.is_legal(twin)) out.push_back(std::move(twin));
    }
  }
  for (auto& [ns, point] : priced[kPacked]) out.push_back(std::move(point));
  return out;
}

absl::StatusOr<std::string> pipelining_table(const std::string& folder) {
  WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(describe_cpu()));
  std::string out = cat("| product | us with ", kKindNames[kInPlace]);
  for (size_t k = 1; k < kKinds; ++k) append(&out, " | ", kKindNames[k]);
  append(&out, " |\n|---|---|---|---|\n");
  std::array<double, kKinds> logs{};
  double most = 0, least = std::numeric_limits<double>::infinity();
  const std::vector<CpuShape> shapes = pipelined_shapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    WL_ASSIGN_OR_RETURN(const auto times, least_times(shapes[i], folder, machine));
    absl::StrAppendFormat(&out, "| %s | %.1f |", kAlcopProducts[i].name, times[kInPlace] / 1000);
    for (size_t k = 0; k < kKinds; ++k) {
      const double speedup = times[kInPlace] / times[k];
      if (k > 0) absl::StrAppendFormat(&out, " %.2f |", speedup);
      logs[k] += std::log(speedup) / static_cast<double>(shapes.size());
    }
    append(&out, "\n");
    most = std::max(most, times[kInPlace] / times[kPacked]);
    least = std::min(least, times[kInPlace] / times[kPacked]);
  }
  append(&out, "\n```\n");
  constexpr std::array<const char*, kKinds> kPaperNames = {"", "(paper) shared memory", "(paper) and registers"};
  constexpr std::array<double, kKinds> kPaper = {1, kAlcopStages, kAlcopRegisters};
  for (size_t k = 0; k < kKinds; ++k) {
    append(&out, speedup_bar(kKindNames[k], std::exp(logs[k])));
    if (k > 0) append(&out, speedup_bar(kPaperNames[k], kPaper[k]));
  }
  append(&out, speedup_bar("best product", most), speedup_bar("worst product", least), "```\n");
  return out;
}

}  // namespace wl
