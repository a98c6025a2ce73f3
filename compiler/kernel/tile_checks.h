// What verify() demands of a kernel's tiles: that their layouts fit the machine, and that threads hold the elements
// that they use.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// An internal error unless every layout says of every element where it is (Layout::check) and has no more lanes than a
// wave of a team and no more waves than a team. On machines without lanes the registers must also follow one another
// along each axis, since loops run over them.
absl::Status check_tiles(const Kernel& kernel);

// The following functions return what is wrong; "" where nothing is.

// Demands that every thread holds the elements of a tile of layout `arg` (which broadcasts along axes of extent 1) that
// belong to those it holds of layout `by`: in the same element of its vectors, or in no vector, and in the register
// with the same repeats.
std::string read_problem(const Layout& arg, const Layout& by);

// A fold of layout `from` over axes into layout `to`. Demands that vector elements, lanes and waves that move along the
// folded axes keep results of their own, and that the registers of a thread that differ along these axes become one.
std::string fold_problem(const Layout& from, const Layout& to, const std::vector<int>& axes);

// A cross of layout `from` over axes into layout `to`. Demands that vector elements and lanes that move along the axes
// move along no other axis, and are gone in `to`. Lanes along other axes, and waves, stay where they are.
std::string cross_problem(const Layout& from, const Layout& to, const std::vector<int>& axes);

// A pack. Demands that every thread holds the elements of its words, all threads in the same registers.
std::string pack_problem(const Kernel& kernel, const Instr& pack);

// A view. Demands tiles of one dtype, and that every position has the same place in row-major order in both tiles.
std::string view_problem(const Kernel& kernel, const Instr& view);

// A convert between layouts of one shape. Demands, on machines with lanes, that elements move to another wave only
// through shared memory.
std::string convert_problem(const Kernel& kernel, const Instr& convert);

}  // namespace wl
