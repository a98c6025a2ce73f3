#include "worker/drivers/gpu/cubin.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"
#include "worker/drivers/gpu/elf_sections.h"

namespace wl {
namespace {

constexpr uint16_t kCudaMachine = 190;  // the ELF machine number EM_CUDA
// kCopyToShared is LDGSTS, a load from global to shared memory.
constexpr uint64_t kLoadGlobal = 0x181, kStoreGlobal = 0x186, kCompareAndSwap = 0x1a9, kCopyToShared = 0x1ae;
constexpr int kWidths[8] = {1, 1, 2, 2, 4, 8, 16, 16};

void note_access(int bytes, int& widest, int& narrowest) {
  widest = std::max(widest, bytes);
  narrowest = narrowest == 0 ? bytes : std::min(narrowest, bytes);
}

// Returns the number of the architecture: 80 for sm_80. Its position in the ELF flags depends on the version of the
// toolkit.
unsigned architecture_of(uint32_t flags) {
  const unsigned low = flags & 0xff;
  return low >= 0x30 ? low : flags >> 8 & 0xff;
}

// Returns the bytes that a lane copies. From sm_100 on, two bits encode the width; before that, three bits.
int copy_bytes(uint64_t high, unsigned architecture) {
  return architecture >= 100 ? 4 << (high >> 10 & 3) : kWidths[high >> 9 & 7];
}

void read_instructions(std::string_view text, unsigned architecture, CodeFacts& code) {
  for (uint64_t at = 0; at + 16 <= text.size(); at += 16) {
    uint64_t low = 0, high = 0;
    std::memcpy(&low, text.data() + at, sizeof low);
    std::memcpy(&high, text.data() + at + 8, sizeof high);
    const int bytes = kWidths[high >> 9 & 7];
    if ((low & 0x1ff) == kLoadGlobal) note_load(bytes, code);
    if ((low & 0x1ff) == kCopyToShared) note_load(copy_bytes(high, architecture), code);
    if ((low & 0x1ff) == kStoreGlobal) note_store(bytes, code);
    if ((low & 0x1ff) == kCompareAndSwap) code.compare_and_swap = true;
  }
}

}  // namespace

void note_load(int bytes, CodeFacts& code) {
  note_access(bytes, code.widest_load, code.narrowest_load);
}

void note_store(int bytes, CodeFacts& code) {
  note_access(bytes, code.widest_store, code.narrowest_store);
}

absl::Status read_cubin(std::string_view binary, std::string_view entry, CodeFacts& code) {
  const std::optional<ElfSections> cubin = ElfSections::of(binary, kCudaMachine);
  if (!cubin) return absl::InvalidArgumentError("not a cubin");
  const std::string_view text = cubin->named(absl::StrCat(".text.", absl::string_view(entry.data(), entry.size())));
  if (text.empty()) return invalid("the cubin has no kernel ", entry);
  read_instructions(text, architecture_of(cubin->flags()), code);
  return absl::OkStatus();
}

}  // namespace wl
