// Facts about machine code for AMD's GPUs: from the assembly that clang writes, or from the instructions as AMD's code
// object manager (libamd_comgr) prints them. That library is the compiler inside hipRTC, so every machine with hipRTC
// has it. It is opened by name at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

// Reads assembly with one instruction per line. Sets in `code` the widths of the widest and narrowest accesses to
// device memory, and compare_and_swap.
void read_amd_assembly(std::string_view assembly, CodeFacts& code);

// Returns the architectures that hipRTC compiles for on this machine ("gfx90a"), as AMD's code object manager lists
// them; empty: it is not installed or lists none. hipRTC itself cannot be asked, since it ends the process for an
// architecture that it does not know.
const std::vector<std::string>& comgr_architectures();

// Returns the instructions of a code object's kernels, one per line, up to the last s_endpgm (end of a program). "":
// the code object manager is not installed or does not know `architecture`, or the bytes are not a code object.
std::string comgr_disassembly(std::string_view object, const std::string& architecture);

}  // namespace wl
