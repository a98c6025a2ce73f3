// Whether what is said of a program's launches is what its kernels are: a launch touches what the graph of its group
// says, in the blocks, scratch and workspace that its kernel was made for. Nothing of a program runs before that.
#pragma once

#include <string>

#include "client/program/program.h"

namespace wl {

// InvalidArgument, which names the call and the argument: a kernel's graph has other arguments than its calls, or of
// another type or number of elements; a result is an argument of its own call; inputs or outputs are not those of the
// whole graph, or that is not the graph of the program's hash. One kernel may serve shapes of the same bytes.
absl::Status check_sound(const Program& program);

// The lines with which the source of a kernel ends in a bundle: how it is launched, and on which buffers.
std::string launch_text(const Program& program, int kernel);

}  // namespace wl
