// The sections of a 64-bit ELF file in memory: a cubin, or a code object for AMD's GPUs. Reads are bounds-checked, so
// any bytes are safe; a section that extends beyond their end counts as empty.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace wl {

class ElfSections {
 public:
  // Reads the sections. nullopt: the bytes are not an ELF file for `machine` (EM_*), or have no section with names. The
  // bytes must outlive the result.
  static std::optional<ElfSections> of(std::string_view bytes, uint16_t machine);

  uint32_t flags() const { return head_.e_flags; }
  // Returns the bytes of the first section of this name; empty: there is no such section, or it is empty.
  std::string_view named(std::string_view name) const;

 private:
  ElfSections() = default;
  bool row(uint64_t number, Elf64_Shdr* out) const;
  std::string_view content(const Elf64_Shdr& row) const;

  std::string_view bytes_, names_;
  Elf64_Ehdr head_ = {};
};

}  // namespace wl
