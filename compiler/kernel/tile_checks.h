// The checks of a kernel's tiles in verify(): that their layouts fit the machine, and that threads hold the elements
// that they use.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// Returns an internal error unless every layout gives each element a place (Layout::check), and has no more lanes than
// a wave of a team and no more waves than a team. On machines without lanes the registers must also follow one another
// along each axis, because loops run over them.
absl::Status check_tiles(const Kernel& kernel);

// Each of the following functions checks an instruction and returns what is wrong with it; "" if nothing is.

// Checks that an argument with layout `arg`, which broadcasts along axes of extent 1, fits a result with layout `by`:
// for each element of the result that a thread holds, it must hold the argument's element, at the same index of its
// vector (or in no vector) and in the register with the same repeat numbers.
std::string read_problem(const Layout& arg, const Layout& by);

// Checks a fold from layout `from` over `axes` into layout `to`: vector elements, lanes and waves that move along the
// folded axes must keep separate results, and a thread's registers that differ along these axes must become one.
std::string fold_problem(const Layout& from, const Layout& to, const std::vector<int>& axes);

// Checks a cross from layout `from` over `axes` into layout `to`: vector elements and lanes that move along `axes`
// must move along no other axis, and `to` may have none along `axes`. Lanes along other axes, and all waves, must be
// the same in both layouts.
std::string cross_problem(const Layout& from, const Layout& to, const std::vector<int>& axes);

// Checks a pack: every thread must hold the elements of its own words, and all threads must hold them in the same
// registers.
std::string pack_problem(const Kernel& kernel, const Instr& pack);

// Checks a view: both tiles must have the same dtype, and every position must hold the same element in row-major order.
std::string view_problem(const Kernel& kernel, const Instr& view);

// Checks a convert between layouts of the same shape: on machines with lanes, elements may move to another wave only
// through shared memory.
std::string convert_problem(const Kernel& kernel, const Instr& convert);

}  // namespace wl
