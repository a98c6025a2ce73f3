#include "compiler/schedule/axes.h"

#include <algorithm>

#include "compiler/plan/group.h"

namespace wl {
namespace {

// An output that is smaller, or a smaller share of the last level, is read back from cache sooner than it would be
// written around it. Timed alone a kernel does not show that: on a Xeon (260 MB of L3) 4 to 16 MB are written 1.15
// to 1.25 times as fast around the cache and, the next reader included, take 1.15 to 1.25 times as long; from 32 to 64
// MB on both are faster.
constexpr int64_t kSmallOutput = 256 << 10, kSmallShare = 8;

bool aligned(const Access& access, const Domain& domain, int lanes) {
  if (domain.vector < 0 || access.strides[domain.vector] != 1 || access.offset % lanes != 0) return false;
  if (domain.atoms[domain.vector].extent % lanes != 0) return false;
  for (size_t atom = 0; atom < access.strides.size(); ++atom)
    if (static_cast<AtomId>(atom) != domain.vector && access.strides[atom] % lanes != 0) return false;
  return true;
}

}  // namespace

Axis threads_axis(const Machine& machine) {
  Axis axis{"threads", {}};
  for (int threads = machine.threads; threads > 1; threads = (threads + 1) / 2) axis.values.push_back(threads);
  axis.values.push_back(1);
  return axis;
}

Axis compiler_axis(const Machine& machine) {
  Axis axis{"compiler", {}};
  if (machine.gcc) axis.values.push_back(0);
  if (machine.clang) axis.values.push_back(1);
  return axis;
}

Axis axis_of(std::string_view name, std::initializer_list<int64_t> values, const std::function<bool(int64_t)>& admit) {
  Axis axis{std::string(name), {}};
  for (int64_t value : values)
    if (axis.values.empty() || !admit || admit(value)) axis.values.push_back(value);
  return axis;
}

Axis stream_axis(const Graph& group, const Domain& domain, const Machine& machine) {
  int64_t bytes = 0;
  for (const Domain::Store& store : domain.stores) {
    const NodeId node = group.outputs[store.output].node;
    if (aligned(store.access, domain, machine.target->lanes)) bytes += group.bytes(node);
  }
  const bool pays = machine.target->streaming_stores && bytes >= std::max(kSmallOutput, machine.l3_bytes / kSmallShare);
  return axis_of("stream", {0, 1}, [pays](int64_t value) { return value == 0 || pays; });
}

bool has_value(const Axis& axis, int64_t value) {
  return std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end();
}

int64_t largest_up_to(const Axis& axis, int64_t wanted) {
  int64_t best = axis.values[0];
  for (int64_t value : axis.values)
    if (value <= wanted && (value > best || best > wanted)) best = value;
  return best;
}

int64_t footprint(const Graph& group) {
  return bytes_moved(group);
}

int64_t cache_share(const Machine& machine) {
  return machine.l2_bytes * machine.threads + machine.l3_bytes / 2;
}

void set_knob(const Space& space, Point& point, std::string_view name, int64_t value) {
  const Axis* axis = axis_named(space.axes, name);
  if (point.empty() || axis == nullptr) return point.clear();
  const auto at = std::find(axis->values.begin(), axis->values.end(), value);
  if (at == axis->values.end()) return point.clear();
  point[axis - space.axes.data()] = static_cast<int>(at - axis->values.begin());
}

Point point_of(const Space& space, std::initializer_list<std::pair<std::string_view, int64_t>> knobs) {
  return point_of(space, std::vector<std::pair<std::string, int64_t>>(knobs.begin(), knobs.end()));
}

Point point_of(const Space& space, const std::vector<std::pair<std::string, int64_t>>& knobs) {
  Point point(space.axes.size(), 0);
  for (const auto& [name, value] : knobs) set_knob(space, point, name, value);
  return point;
}

void add_seed(Space& space, std::initializer_list<std::pair<std::string_view, int64_t>> knobs) {
  const Point point = point_of(space, knobs);
  if (point.empty()) return;
  for (size_t i = 0; i < space.axes.size(); ++i) {
    if (space.axes[i].name != "compiler") continue;
    for (size_t value = 0; value < space.axes[i].values.size(); ++value) {
      Point other = point;
      other[i] = static_cast<int>(value);
      space.seeds.push_back(std::move(other));
    }
  }
}

Axis blocks_axis() {
  return axis_of("blocks", {0, 2, 4, 8, 16, 1});
}

bool may_reside(int64_t blocks, int64_t threads, const Gpu& gpu) {
  constexpr int64_t kLeastRegisters = 24;
  return blocks == 0 || (blocks <= gpu.unit_blocks && blocks * threads <= gpu.unit_threads &&
                         blocks * threads * kLeastRegisters <= gpu.unit_registers);
}

}  // namespace wl
