#include "compiler/search/nearest.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/ir/text.h"

namespace wl {
namespace {

constexpr double kWorth = 1.02;      // gain from which a winner says something
constexpr double kTooUnlike = 12.0;  // e.g. three other ops and sizes a few doublings apart

}  // namespace

double unlikeness(const Graph& a, const Graph& b) {
  std::map<int, int> ops;
  for (const Node& node : a.nodes) ++ops[static_cast<int>(node.op)];
  for (const Node& node : b.nodes) --ops[static_cast<int>(node.op)];
  double sum = 0;
  for (const auto& [op, more] : ops) sum += std::abs(more);
  // Extents of the largest value of each, innermost against innermost.
  const auto largest = [](const Graph& graph) {
    const Node* node = nullptr;
    for (const Node& each : graph.nodes)
      if (node == nullptr || elements(each.shape) > elements(node->shape)) node = &each;
    return node == nullptr ? std::vector<int64_t>() : node->shape;
  };
  const std::vector<int64_t> of_a = largest(a), of_b = largest(b);
  for (size_t i = 1; i <= std::max(of_a.size(), of_b.size()); ++i) {
    const auto extent = [i](const std::vector<int64_t>& shape) {
      return i <= shape.size() ? static_cast<double>(std::max<int64_t>(1, shape[shape.size() - i])) : 1.0;
    };
    sum += std::fabs(std::log2(extent(of_a) / extent(of_b)));
  }
  return sum;
}

std::vector<Point> nearest_winners(const Graph& group, const Space& space, std::span<const KnownPlan> known, int most) {
  std::vector<std::pair<double, Point>> near;
  for (const KnownPlan& each : known) {
    if (each.gain < kWorth || !each.plan.starts_with(space.prefix)) continue;
    absl::StatusOr<Point> point = space.parse(each.plan);
    if (!point.ok()) continue;
    const absl::StatusOr<Graph> graph = parse(each.graph);
    if (!graph.ok()) continue;
    const double distance = unlikeness(group, *graph);
    if (distance <= kTooUnlike) near.emplace_back(distance, *std::move(point));
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Point> out;
  for (const auto& [distance, point] : near)
    if (static_cast<int>(out.size()) < most && std::find(out.begin(), out.end(), point) == out.end())
      out.push_back(point);
  return out;
}

}  // namespace wl
