#include "compiler/schedule/axes.h"

#include <algorithm>

#include "compiler/domain/group.h"

namespace wl {
namespace {

// Streaming stores are offered only for outputs of at least kSmallOutput bytes and 1/kSmallShare of the last-level
// cache. Smaller outputs are better left in the cache for the kernel that reads them next, a gain that measurements of
// one kernel alone do not show. On a Xeon with 260 MB of L3, streaming stores of 4 to 16 MB are 1.15 to 1.25 times as
// fast, but the store and the next reader together take 1.15 to 1.25 times as long; from 32 to 64 MB on, both together
// are faster as well.
constexpr int64_t kSmallOutput = 256 << 10, kSmallShare = 8;

// Whether an access along the vectorised axis is contiguous and made of whole, aligned vectors.
bool aligned(const Access& access, const Domain& domain, int lanes) {
  if (domain.vector < 0 || access.strides[domain.vector] != 1 || access.offset % lanes != 0) return false;
  if (domain.atoms[domain.vector].extent % lanes != 0) return false;
  for (size_t atom = 0; atom < access.strides.size(); ++atom)
    if (static_cast<AtomId>(atom) != domain.vector && access.strides[atom] % lanes != 0) return false;
  return true;
}

}  // namespace

Axis threads_axis(const Machine& machine) {
  Axis axis(kThreads, {});
  for (int threads = machine.threads; threads > 1; threads = (threads + 1) / 2) axis.values.push_back(threads);
  axis.values.push_back(1);
  return axis;
}

Axis compiler_axis(const Machine& machine) {
  Axis axis(kCompiler, {});
  if (machine.gcc) axis.values.push_back(kGcc);
  if (machine.clang) axis.values.push_back(kClang);
  return axis;
}

Axis axis(Choice choice, std::initializer_list<int64_t> values, const std::function<bool(int64_t)>& admit) {
  Axis axis(choice, {});
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
  return axis(kStreamStores, {0, 1}, [pays](int64_t value) { return value == 0 || pays; });
}

bool has_value(const Axis& axis, int64_t value) {
  return std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end();
}

const std::vector<int64_t>& values_of(const Space& space, Choice choice) {
  const Axis* axis = axis_of(space.axes, choice);
  WL_CHECK(axis != nullptr, "the space has no ", name_of(choice));
  return axis->values;
}

int64_t largest_up_to(const std::vector<int64_t>& values, int64_t wanted) {
  int64_t best = values[0];
  for (int64_t value : values)
    if (value <= wanted && (value > best || best > wanted)) best = value;
  return best;
}

int64_t footprint(const Graph& group) {
  int64_t bytes = 0;
  for (NodeId input : group.inputs()) bytes += group.bytes(input);
  for (const Output& output : group.outputs) bytes += group.bytes(output.node);
  return bytes;
}

int64_t cache_share(const Machine& machine) {
  return machine.l2_bytes * machine.threads + machine.l3_bytes / 2;
}

void set_value(const Space& space, Point& point, const Axis* axis, int64_t value) {
  if (point.empty() || axis == nullptr) return point.clear();
  const auto at = std::find(axis->values.begin(), axis->values.end(), value);
  if (at == axis->values.end()) return point.clear();
  point[static_cast<size_t>(axis - space.axes.data())] = static_cast<int>(at - axis->values.begin());
}

void set_choice(const Space& space, Point& point, Choice choice, int64_t value) {
  set_value(space, point, axis_of(space.axes, choice), value);
}

Point point_of(const Space& space, const Chosen& chosen) {
  Point point(space.axes.size(), 0);
  for (const auto& [choice, value] : chosen) set_choice(space, point, choice, value);
  return point;
}

Point point_of(const Space& space, const Schedule& schedule) {
  Point point(space.axes.size(), 0);
  for (const Axis& axis : space.axes) set_value(space, point, &axis, schedule.find(axis).value_or(axis.values[0]));
  return point;
}

void add_listed_axes(Space& space, const Machine& machine) {
  for (size_t i = 0; i < kChoices; ++i) {
    const auto choice = static_cast<Choice>(i);
    if (!info(choice).values.empty() && belongs_to(choice, space.kind, machine.target->is_gpu()))
      space.axes.emplace_back(choice, info(choice).values);
  }
}

void add_seed(Space& space, const Chosen& chosen) {
  const Point point = point_of(space, chosen);
  if (point.empty()) return;
  for (const int64_t compiler : values_of(space, kCompiler)) {
    Point other = point;
    set_choice(space, other, kCompiler, compiler);
    space.seeds.push_back(std::move(other));
  }
}

void add_residency_effect(Space& space, const Machine& machine, std::function<int64_t(const Schedule&)> threads) {
  const Target& target = *machine.target;
  space.add_effect(kMinBlocks, [&target, threads = std::move(threads)](const Schedule& s, int64_t blocks) {
    if (blocks == 0 || s[kPersistent] > 0) return blocks;
    return residency_bound(target.name, target.gpu.wave, blocks, threads(s));
  });
}

bool may_reside(int64_t blocks, int64_t threads, const Gpu& gpu) {
  constexpr int64_t kLeastRegisters = 24;
  return blocks == 0 || (blocks <= gpu.unit_blocks && blocks * threads <= gpu.unit_threads &&
                         blocks * threads * kLeastRegisters <= gpu.unit_registers);
}

}  // namespace wl
