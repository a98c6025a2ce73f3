// What is known of machine code for AMD's GPUs: from its assembly, which clang writes, or from its instructions as
// AMD's code object manager (libamd_comgr) prints them. That library is the compiler inside hipRTC and is on every
// machine that has hipRTC; it is opened by name at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

// Fills in the widest and narrowest accesses to device memory and compare_and_swap from assembly, one instruction a
// line.
void read_amd_assembly(std::string_view assembly, CodeFacts& code);

// Returns the architectures that hipRTC compiles for on this machine ("gfx90a"); empty: there is no library that says
// so. Asking hipRTC itself is no way to know, since it ends the process for an architecture that it does not know.
const std::vector<std::string>& comgr_architectures();

// Returns the instructions of a code object's kernels up to the last end of a program, one a line; "": there is no
// library that prints them, it does not know `architecture`, or the bytes are no such object.
std::string comgr_disassembly(std::string_view object, const std::string& architecture);

}  // namespace wl
