// Axes that several loop classes share, and facts about a group that decide which of their values are legal.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "compiler/schedule/space.h"

namespace wl {

Axis threads_axis(const Machine& machine);  // all, half, ... 1
Axis compiler_axis(const Machine& machine);
// `values` cut to those that `admit`; never empty: the first value stays.
Axis axis(Choice choice, std::initializer_list<int64_t> values, const std::function<bool(int64_t)>& admit = nullptr);
// The values of an axis that the space is known to have.
const std::vector<int64_t>& values_of(const Space& space, Choice choice);
// {0, 1} where streaming stores can pay: for outputs that no cache holds and whose vectors are all aligned; else {0}.
Axis stream_axis(const Graph& group, const Domain& domain, const Machine& machine);

bool has_value(const Axis& axis, int64_t value);
int64_t largest_up_to(const std::vector<int64_t>& values, int64_t wanted);  // the first value when all are larger
int64_t footprint(const Graph& group);                                      // bytes of all inputs and outputs
int64_t cache_share(const Machine& machine);                                // bytes that stay cached between runs
using Chosen = std::vector<std::pair<Choice, int64_t>>;
// The point whose axes have the chosen values and all others their first; empty when an axis lacks its value.
Point point_of(const Space& space, const Chosen& chosen);
// The point at which every axis has its value in a schedule; empty when an axis lacks it.
Point point_of(const Space& space, const Schedule& schedule);
// Gives a point another value of an axis; empties it when the space lacks the axis, or the axis the value.
void set_choice(const Space& space, Point& point, Choice choice, int64_t value);
void set_value(const Space& space, Point& point, const Axis* axis, int64_t value);
// Adds the axes of choices whose values the table itself lists for this kind of kernel.
void add_listed_axes(Space& space, const Machine& machine);
// Adds the seed for every compiler there is.
void add_seed(Space& space, const Chosen& chosen);

// Of GPUs: whether so many blocks of so many threads fit on a multiprocessor.
bool may_reside(int64_t blocks, int64_t threads, const Gpu& gpu);
// Elements along each side of the square that a block stages in shared memory, and threads of its teams.
inline constexpr int64_t kStagedSide = 32;

}  // namespace wl
