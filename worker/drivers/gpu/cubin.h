// What stands in a cubin, read without NVIDIA's tools (which many machines lack): the widths of a kernel's memory
// instructions. From sm_70 on an instruction is 16 bytes; its low 9 bits say which it is and three bits of its second
// half how much a lane moves. tests/unit/worker/cubin_test.cpp compares with nvdisasm where that is installed.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// Fills widest and narrowest accesses and compare_and_swap of the kernel `entry`. InvalidArgument: the
// bytes are no cubin that holds it.
absl::Status read_cubin(std::string_view binary, std::string_view entry, CodeFacts& code);

// Notes one access of a lane to device memory.
void note_load(int bytes, CodeFacts& code);
void note_store(int bytes, CodeFacts& code);

}  // namespace wl
