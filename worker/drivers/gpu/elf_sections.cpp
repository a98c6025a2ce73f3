#include "worker/drivers/gpu/elf_sections.h"

#include <cstring>

namespace wl {
namespace {

// Copies a value of type T that begins at offset `at`. Returns false if the bytes end before the value does.
template <typename T>
bool read_at(std::string_view bytes, uint64_t at, T* out) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) return false;
  std::memcpy(out, bytes.data() + at, sizeof(T));
  return true;
}

}  // namespace

std::optional<ElfSections> ElfSections::of(std::string_view bytes, uint16_t machine) {
  ElfSections out;
  out.bytes_ = bytes;
  if (!read_at(bytes, 0, &out.head_) || std::memcmp(out.head_.e_ident, ELFMAG, SELFMAG) != 0 ||
      out.head_.e_machine != machine)
    return std::nullopt;
  Elf64_Shdr names{};
  if (!out.row(out.head_.e_shstrndx, &names)) return std::nullopt;
  out.names_ = out.content(names);
  return out;
}

std::string_view ElfSections::named(std::string_view name) const {
  for (uint64_t i = 0; i < head_.e_shnum; ++i) {
    Elf64_Shdr at{};
    if (!row(i, &at) || at.sh_name >= names_.size()) continue;
    const std::string_view found = names_.substr(at.sh_name);
    if (found.substr(0, found.find('\0')) == name) return content(at);
  }
  return {};
}

bool ElfSections::row(uint64_t number, Elf64_Shdr* out) const {
  return number < head_.e_shnum && read_at(bytes_, head_.e_shoff + number * sizeof(Elf64_Shdr), out);
}

std::string_view ElfSections::content(const Elf64_Shdr& row) const {
  if (row.sh_offset > bytes_.size() || row.sh_size > bytes_.size() - row.sh_offset) return {};
  return bytes_.substr(row.sh_offset, row.sh_size);
}

}  // namespace wl
