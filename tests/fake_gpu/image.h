// Images of fake machine code, which the fake NVRTC and hipRTC make and the fake driver runs. An image has the form of
// a cubin or of a code object for AMD's GPUs, so that readers of these formats accept it. In both forms, the
// instructions are NVIDIA's. The section .wl.object is a shared object for this machine, compiled from the kernel's
// text with the simulator's prelude. The section .wl.kernels has one line per kernel: "ENTRY ARGUMENTS NUMBERED FAULT"
// (struct Kernel of nvrtc.cpp and driver.cpp).
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace fake_gpu {

using Sections = std::vector<std::pair<std::string, std::string>>;

constexpr unsigned short kCuda = 190, kAmdGpu = 224;  // ELF machine numbers: EM_CUDA and EM_AMDGPU

inline std::string make_image(const Sections& sections, unsigned short machine = kCuda) {
  std::string names(1, '\0'), body(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> table(1);
  const auto add = [&](const std::string& name, const std::string& bytes) {
    Elf64_Shdr row{};
    row.sh_name = static_cast<Elf64_Word>(names.size());
    row.sh_type = SHT_PROGBITS;
    row.sh_offset = body.size();
    row.sh_size = bytes.size();
    names += name + '\0';
    body += bytes;
    table.push_back(row);
  };
  for (const auto& [name, bytes] : sections) add(name, bytes);
  names += std::string(".shstrtab") + '\0';
  Elf64_Shdr last{};
  last.sh_name = static_cast<Elf64_Word>(names.size() - 10);
  last.sh_offset = body.size();
  last.sh_size = names.size();
  table.push_back(last);
  body += names;
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_machine = machine;
  head.e_shoff = body.size();
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<Elf64_Half>(table.size());
  head.e_shstrndx = static_cast<Elf64_Half>(table.size() - 1);
  std::memcpy(body.data(), &head, sizeof head);
  body.append(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(Elf64_Shdr));
  return body;
}

// Returns the contents of a section of an image that make_image() made; "" if the image has no such section.
inline std::string section_of(const char* image, const std::string& name) {
  Elf64_Ehdr head;
  std::memcpy(&head, image, sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return "";
  const auto row = [&](unsigned number) {
    Elf64_Shdr out;
    std::memcpy(&out, image + head.e_shoff + number * sizeof out, sizeof out);
    return out;
  };
  const char* names = image + row(head.e_shstrndx).sh_offset;
  for (unsigned i = 1; i < head.e_shnum; ++i)
    if (name == names + row(i).sh_name) return std::string(image + row(i).sh_offset, row(i).sh_size);
  return "";
}

}  // namespace fake_gpu
