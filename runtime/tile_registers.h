// Tile registers (Intel's AMX), which the operating system gives to processes that ask for them.
#pragma once

namespace wl {

// Whether this machine multiplies matrices of bf16 and of bytes in tile registers, and this process may. The first call
// asks Linux for them (arch_prctl with ARCH_REQ_XCOMP_PERM, documented in Documentation/arch/x86/xstate.rst); all
// threads of the process have them then, and so have its children until they execute another program.
bool may_use_tile_registers();

}  // namespace wl
