// Checks that the launches of a program fit its kernels, before any of its code runs: check_sound() compares arguments
// with the graphs of the kernels' groups; load_bundle() compares blocks, threads, scratch and workspace with the lines
// that launch_text() wrote into each kernel's source.
#pragma once

#include <string>

#include "client/program/program.h"

namespace wl {

// Compares every call with the graph of its kernel, and the program's inputs and outputs with the program's whole
// graph. Shapes of arguments may differ, since one kernel may serve several shapes. InvalidArgument: arguments differ
// in number, dtype or number of elements; a call stores a result to a buffer that it also uses for another argument; or
// the whole graph does not have the hash that the program states. The error names the call and the argument.
absl::Status check_sound(const Program& program);

// Returns the comments that end a kernel's source in a bundle: with which grid and memory the kernel is launched, and
// on which buffers each call runs it.
std::string launch_text(const Program& program, int kernel);

}  // namespace wl
