// Checks that the launches of a program fit its kernels, before any of its code runs: check_sound() compares arguments
// with the graphs of the kernels' groups; load_bundle() compares blocks, threads, scratch and workspace with the lines
// that launch_text() wrote into each kernel's source.
#pragma once

#include <string>

#include "client/program/program.h"

namespace wl {

// Compares calls with the graphs of their kernels, and inputs and outputs with the whole graph. InvalidArgument, with
// the call and the argument: they differ in number, dtype or number of elements (not in shape: a kernel may serve
// several); a result is also another argument of the same call; or the graph has another hash than the program says.
absl::Status check_sound(const Program& program);

// Returns the comments at the end of a kernel's source in a bundle: how it is launched, and on which buffers.
std::string launch_text(const Program& program, int kernel);

}  // namespace wl
