#include "compiler/search/nearest.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/axes.h"

namespace wl {
namespace {

// A winner is proposed for another group if the distance between them, unlikeness() + target_distance(), is at most
// this. Groups at a distance of 12 differ, for example, by three ops and by a few doublings of sizes.
constexpr double kTooUnlike = 12.0;
constexpr double kSameFamily = 2.0, kOtherGpu = 4.0;

using Knobs = std::vector<std::pair<std::string_view, std::string_view>>;

// Returns the NAME=VALUE words of a plan: its target, its class and its choices.
Knobs knobs_of(std::string_view plan) {
  Knobs knobs;
  for (absl::string_view word : absl::StrSplit(absl::string_view(plan.data(), plan.size()), ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (word.size() > halves.first.size())
      knobs.push_back({{halves.first.data(), halves.first.size()}, {halves.second.data(), halves.second.size()}});
  }
  return knobs;
}

std::string_view value_of(const Knobs& knobs, std::string_view name) {
  for (const auto& [knob, value] : knobs)
    if (knob == name) return value;
  return {};
}

// Returns the index of the axis value that is nearest to `text` on a logarithmic scale; 0 if `text` is neither the name
// of a value nor a number.
int nearest_value(const Axis& axis, std::string_view text) {
  for (size_t i = 0; i < axis.values.size(); ++i)
    if (spells(axis, axis.values[i], text)) return static_cast<int>(i);
  int64_t wanted = 0;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &wanted)) return 0;
  const auto apart = [&](int64_t value) {
    const double a = static_cast<double>(std::max<int64_t>(value, 0)) + 1;
    const double b = static_cast<double>(std::max<int64_t>(wanted, 0)) + 1;
    return std::fabs(std::log(a / b));
  };
  return static_cast<int>(std::min_element(axis.values.begin(), axis.values.end(),
                                           [&](int64_t a, int64_t b) { return apart(a) < apart(b); }) -
                          axis.values.begin());
}

}  // namespace

std::string kin_of(std::string_view graph) {
  std::string kin;
  for (absl::string_view line : absl::StrSplit(absl::string_view(graph.data(), graph.size()), '\n')) {
    // The type follows the last " : ", as in `%2 = exp %1 : f32[64,32]`.
    const size_t type = line.rfind(" : ");
    const size_t open = type == line.npos ? type : line.find('[', type), close = line.find(']', open);
    if (open == line.npos || close == line.npos) {
      append(&kin, line, "\n");
      continue;
    }
    const absl::string_view extents = line.substr(open, close - open);
    append(&kin, line.substr(0, open), std::count(extents.begin(), extents.end(), ','), line.substr(close), "\n");
  }
  return kin;
}

std::optional<double> target_distance(std::string_view a, std::string_view b) {
  if (a == b) return 0;
  const std::string_view family = a.substr(0, a.find(':')), other = b.substr(0, b.find(':'));
  if (family == other) return kSameFamily;
  if (family == "cpu" || other == "cpu") return std::nullopt;
  return kOtherGpu;
}

std::optional<Point> translated(const Space& space, std::string_view plan) {
  if (absl::StatusOr<Point> same = space.parse(plan); same.ok()) return *std::move(same);
  const Knobs there = knobs_of(plan);
  if (!space.is_of_kind(plan, value_of(there, "class"))) return std::nullopt;
  Point point(space.axes.size(), 0);
  for (const auto& [name, value] : there) {
    if (name == "class" || name == "target") continue;
    const Axis* axis = space.axis_in(plan, name);
    if (axis == nullptr) return std::nullopt;
    point[static_cast<size_t>(axis - space.axes.data())] = nearest_value(*axis, value);
  }
  if (!space.is_legal(point)) return std::nullopt;
  return point;
}

double unlikeness(const Graph& a, const Graph& b) {
  std::map<int, int> ops;
  for (const Node& node : a.nodes) ++ops[static_cast<int>(node.op)];
  for (const Node& node : b.nodes) --ops[static_cast<int>(node.op)];
  double sum = 0;
  for (const auto& [op, more] : ops) sum += std::abs(more);
  // The shapes of the largest tensors of both groups are compared, from the innermost extent on.
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
  const Knobs prefix = knobs_of(space.prefix);
  const std::string_view here = value_of(prefix, "target");
  std::vector<std::pair<double, Point>> near;
  for (const KnownPlan& each : known) {
    if (each.gain < kWorthProposing) continue;
    const std::optional<double> target = target_distance(here, value_of(knobs_of(each.plan), "target"));
    if (!target) continue;
    std::optional<Point> point = translated(space, each.plan);
    if (!point) continue;
    const absl::StatusOr<Graph> graph = parse(each.graph);
    if (!graph.ok()) continue;
    const double distance = *target + unlikeness(group, *graph);
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
