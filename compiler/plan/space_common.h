// Axes that several loop classes share, and facts about a group that decide which of their values are legal.
#pragma once

#include <initializer_list>
#include <string_view>

#include "compiler/plan/space.h"

namespace wl {

Axis threads_axis(const Machine& machine);   // all, half, ... 1
Axis compiler_axis(const Machine& machine);  // 0 = gcc, 1 = clang
// `values` cut to those that `admit`; never empty: the first value stays.
Axis axis_of(std::string_view name, std::initializer_list<int64_t> values,
             const std::function<bool(int64_t)>& admit = nullptr);
// Streaming stores pay only past the caches and only where every vector is aligned: {0, 1} or {0}.
Axis stream_axis(const Graph& group, const Domain& domain, const Machine& machine);

const Axis* axis_named(const std::vector<Axis>& axes, std::string_view name);  // null when there is none
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

}  // namespace wl
