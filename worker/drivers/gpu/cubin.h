// Reads the widths of a kernel's memory instructions from a cubin, without NVIDIA's tools, which many machines lack.
// From sm_70 on, an instruction has 16 bytes; the low 9 bits are the opcode, and three bits of the second half are the
// width of a lane's access. tests/unit/worker/cubin_test.cpp compares the results with nvdisasm where that is
// installed.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// Sets in `code` the widths of the widest and narrowest accesses to device memory, and compare_and_swap, of the kernel
// `entry`. InvalidArgument: the bytes are not a cubin that contains the kernel.
absl::Status read_cubin(std::string_view binary, std::string_view entry, CodeFacts& code);

// Records in `code` that a lane loads or stores `bytes` bytes of device memory at once.
void note_load(int bytes, CodeFacts& code);
void note_store(int bytes, CodeFacts& code);

}  // namespace wl
