// Axes that several loop classes share, and facts about a group that decide which of their values are legal.
#pragma once

#include <initializer_list>
#include <string_view>

#include "compiler/schedule/space.h"

namespace wl {

Axis threads_axis(const Machine& machine);   // all, half, ... 1
Axis compiler_axis(const Machine& machine);  // 0 = gcc, 1 = clang
// `values` cut to those that `admit`; never empty: the first value stays.
Axis axis_of(std::string_view name, std::initializer_list<int64_t> values,
             const std::function<bool(int64_t)>& admit = nullptr);
// Streaming stores pay only past the caches and only where every vector is aligned: {0, 1} or {0}.
Axis stream_axis(const Graph& group, const Domain& domain, const Machine& machine);

bool has_value(const Axis& axis, int64_t value);
int64_t largest_up_to(const Axis& axis, int64_t wanted);  // the first value when all are larger
int64_t footprint(const Graph& group);                    // bytes of all inputs and outputs
int64_t cache_share(const Machine& machine);              // bytes that stay cached between runs
// The point whose named axes have these values and all others their first; empty when an axis lacks one.
Point point_of(const Space& space, std::initializer_list<std::pair<std::string_view, int64_t>> knobs);
Point point_of(const Space& space, const std::vector<std::pair<std::string, int64_t>>& knobs);
// Gives a point another value of an axis; empties it when the axis lacks that.
void set_knob(const Space& space, Point& point, std::string_view name, int64_t value);
// Adds the seed for every compiler there is.
void add_seed(Space& space, std::initializer_list<std::pair<std::string_view, int64_t>> knobs);

// Of GPUs. Occupancy: blocks that a multiprocessor is to have registers for, 0: as many as the compiler's choice
// leaves; and whether so many blocks of so many threads can be.
Axis blocks_axis();
bool may_reside(int64_t blocks, int64_t threads, const Gpu& gpu);
// Elements along each side of the square that a block stages in shared memory, and threads of its teams.
inline constexpr int64_t kStagedSide = 32;

}  // namespace wl
