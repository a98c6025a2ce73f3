// Axes that several kinds of search space have in common, facts about a group that decide which values of these axes
// are legal, and functions that make points and seeds of a space.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "compiler/schedule/space.h"

namespace wl {

// The axis of thread counts: all threads of the machine, half of them, ..., 1.
Axis threads_axis(const Machine& machine);
Axis compiler_axis(const Machine& machine);  // the axis of compilers, with one value for each compiler of the machine
// Returns an axis with those of `values` for which admit() is true. The axis always has the first value, so it is not
// empty.
Axis axis(Choice choice, std::initializer_list<int64_t> values, const std::function<bool(int64_t)>& admit = nullptr);
// The values of the axis of a choice. Aborts if the space has no such axis.
const std::vector<int64_t>& values_of(const Space& space, Choice choice);
// The axis stream_stores: {0, 1} if the target has streaming stores and the outputs whose vectors are all aligned take
// at least 256 KiB and at least an eighth of the last-level cache; else {0}.
Axis stream_axis(const Graph& group, const Domain& domain, const Machine& machine);

bool has_value(const Axis& axis, int64_t value);
// Returns the largest of `values` that is at most `wanted`, or the first of them if all are larger.
int64_t largest_up_to(const std::vector<int64_t>& values, int64_t wanted);
int64_t footprint(const Graph& group);        // the bytes of a group's inputs and outputs
int64_t cache_share(const Machine& machine);  // how many bytes of data stay in the CPU's caches between launches
using Chosen = std::vector<std::pair<Choice, int64_t>>;
// Returns the point with the chosen values, and with the first value on all other axes; an empty point if the space
// lacks an axis or an axis lacks its value.
Point point_of(const Space& space, const Chosen& chosen);
// Returns the point with the values of a schedule, and with the first value on axes for which the schedule has none; an
// empty point if an axis lacks its value.
Point point_of(const Space& space, const Schedule& schedule);
// Set the value of one axis in a point. The point becomes empty if the space lacks the axis (for set_value: if `axis`
// is null), or if the axis lacks the value.
void set_choice(const Space& space, Point& point, Choice choice, int64_t value);
void set_value(const Space& space, Point& point, const Axis* axis, int64_t value);
// Adds an axis for each choice that kernels of the kind space.kind may have and whose values are listed in choices.def.
void add_listed_axes(Space& space, const Machine& machine);
// Adds seeds: the point with the chosen values, once for every compiler. Adds nothing if an axis lacks its value.
void add_seed(Space& space, const Chosen& chosen);

// Whether a GPU's multiprocessor can hold `blocks` blocks of `threads` threads at once. True if `blocks` is 0, which
// sets no condition.
bool may_reside(int64_t blocks, int64_t threads, const Gpu& gpu);
// Adds the effect of min_blocks: on HIP, numbers of blocks with equally many waves on a SIMD unit give one kernel,
// unless blocks are persistent. `threads`: the threads of a block under a schedule.
void add_residency_effect(Space& space, const Machine& machine, std::function<int64_t(const Schedule&)> threads);
// The side, in elements, of the square that a block of a GPU transposes in shared memory. Each team of the block has as
// many threads as the square has columns.
inline constexpr int64_t kStagedSide = 32;

}  // namespace wl
