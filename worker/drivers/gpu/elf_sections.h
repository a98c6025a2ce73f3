// The sections of a file of machine code in memory (ELF, 64 bits): a cubin, or a code object for AMD's GPUs. Any bytes
// are harmless: what lies beyond their end is not there.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace wl {

class ElfSections {
 public:
  // nullopt: not such a file for `machine` (EM_*), or its sections have no names. The bytes must outlive the result.
  static std::optional<ElfSections> of(std::string_view bytes, uint16_t machine);

  uint32_t flags() const { return head_.e_flags; }
  // Returns the bytes of the first section of this name; empty: there is none, or nothing in it.
  std::string_view named(std::string_view name) const;

 private:
  ElfSections() = default;
  bool row(uint64_t number, Elf64_Shdr* out) const;
  std::string_view content(const Elf64_Shdr& row) const;

  std::string_view bytes_, names_;
  Elf64_Ehdr head_ = {};
};

}  // namespace wl
