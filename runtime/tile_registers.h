// Tile registers (Intel's AMX), which Linux allows only to processes that ask for them.
#pragma once

namespace wl {

// Whether the CPU multiplies matrices of bf16 and of bytes in tile registers, and this process may use them. The first
// call asks Linux for the permission (arch_prctl with ARCH_REQ_XCOMP_PERM, documented in
// Documentation/arch/x86/xstate.rst). The permission holds for all threads of the process, and for its children until
// they execute another program.
bool may_use_tile_registers();

}  // namespace wl
