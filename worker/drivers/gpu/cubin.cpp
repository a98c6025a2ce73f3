#include "worker/drivers/gpu/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "compiler/base/status.h"

namespace wl {
namespace {

// kCopyToShared is LDGSTS, a load from global to shared memory.
constexpr uint64_t kLoadGlobal = 0x181, kStoreGlobal = 0x186, kCompareAndSwap = 0x1a9, kCopyToShared = 0x1ae;
constexpr int kWidths[8] = {1, 1, 2, 2, 4, 8, 16, 16};

void note_access(int bytes, int& widest, int& narrowest) {
  widest = std::max(widest, bytes);
  narrowest = narrowest == 0 ? bytes : std::min(narrowest, bytes);
}

// Copies the T at offset `at`; false when the bytes end before it does.
template <typename T>
bool read_at(std::string_view bytes, uint64_t at, T* out) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) return false;
  std::memcpy(out, bytes.data() + at, sizeof(T));
  return true;
}

std::string_view bytes_of(std::string_view bytes, uint64_t at, uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return {};
  return bytes.substr(at, size);
}

// Returns the number of the architecture: 80 for sm_80. Its position in the flags depends on the version of the tools.
unsigned architecture_of(const Elf64_Ehdr& head) {
  const unsigned low = head.e_flags & 0xff;
  return low >= 0x30 ? low : head.e_flags >> 8 & 0xff;
}

// From sm_100 on the width of a copy has two bits.
int copy_bytes(uint64_t high, unsigned architecture) {
  return architecture >= 100 ? 4 << (high >> 10 & 3) : kWidths[high >> 9 & 7];
}

void read_instructions(std::string_view text, unsigned architecture, CodeFacts& code) {
  for (uint64_t at = 0; at + 16 <= text.size(); at += 16) {
    uint64_t low = 0, high = 0;
    (void)read_at(text, at, &low);
    (void)read_at(text, at + 8, &high);
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
  constexpr uint16_t kCuda = 190;
  Elf64_Ehdr head;
  if (!read_at(binary, 0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_machine != kCuda)
    return absl::InvalidArgumentError("not a cubin");
  const auto section = [&](uint64_t number, Elf64_Shdr* out) {
    return number < head.e_shnum && read_at(binary, head.e_shoff + number * sizeof(Elf64_Shdr), out);
  };
  Elf64_Shdr names{};
  if (!section(head.e_shstrndx, &names)) return absl::InvalidArgumentError("a cubin without section names");
  const std::string_view strings = bytes_of(binary, names.sh_offset, names.sh_size);
  bool found = false;
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr at{};
    if (!section(i, &at) || at.sh_name >= strings.size()) continue;
    const std::string_view name = strings.substr(at.sh_name, strings.find('\0', at.sh_name) - at.sh_name);
    constexpr std::string_view kText = ".text.";
    if (!name.starts_with(kText) || name.substr(kText.size()) != entry) continue;
    const std::string_view text = bytes_of(binary, at.sh_offset, at.sh_size);
    found = !text.empty();
    read_instructions(text, architecture_of(head), code);
  }
  if (!found) return invalid("the cubin has no kernel ", entry);
  return absl::OkStatus();
}

}  // namespace wl
