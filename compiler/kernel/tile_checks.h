// What verify() demands of a kernel's tiles: that their layouts fit the machine, and that threads hold what they use.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// Every layout says of every element where it is (Layout::check), has no more lanes than a wave of a team and no more
// waves than a team, and, on machines without lanes, registers that follow one another along each axis.
absl::Status check_tiles(const Kernel& kernel);

// The following return what is wrong, "" where nothing is.

// Every thread holds, of a tile of layout `arg` whose axes of extent 1 broadcast, the elements that belong to those it
// holds of layout `by`: in the same element of its vectors, or in no vector, and in the register with the same repeats.
std::string read_problem(const Layout& arg, const Layout& by);

// A fold of layout `from` over axes into layout `to`: every thread keeps what is its own along the folded axes, in one
// register for those that differ along them.
std::string fold_problem(const Layout& from, const Layout& to, const std::vector<int>& axes);

// A cross of layout `from` over axes into layout `to`: vectors and lanes that move along the axes move along no other,
// and are gone; lanes of other axes stay where they are, and so do waves.
std::string cross_problem(const Layout& from, const Layout& to, const std::vector<int>& axes);

// A pack: every thread holds the elements of its words, all threads in the same registers.
std::string pack_problem(const Kernel& kernel, const Instr& pack);

// A view: the tiles have elements of one type, and what a position holds has the same place in row-major order in both.
std::string view_problem(const Kernel& kernel, const Instr& view);

// A convert between layouts of one shape. On machines with lanes, no element moves to another wave but through memory.
std::string convert_problem(const Kernel& kernel, const Instr& convert);

}  // namespace wl
