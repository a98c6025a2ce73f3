// A fake of AMD's code object manager, for the fake hipRTC: it knows only the architecture for which the fake hipRTC
// compiles, and disassembles the code that it makes (nvrtc.cpp, instructions()) as AMD's instructions.
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

enum Status { kOk = 0, kError = 1, kInvalidArgument = 2 };

constexpr const char* kIsa = "amdgcn-amd-amdhsa--gfx90a";

using ReadMemory = uint64_t(uint64_t from, char* to, uint64_t size, void* user);
using PrintInstruction = void(const char* text, void* user);

struct Info {
  ReadMemory* read;
  PrintInstruction* print;
};

struct Row {
  unsigned opcode;
  const char* text;
};
constexpr Row kRows[] = {{0x981, "\tglobal_load_dwordx4 v[0:3], v4, s[0:1]"},
                         {0x986, "\tglobal_store_dwordx4 v4, v[0:3], s[2:3]"},
                         {0x94d, "\ts_endpgm"}};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): names of AMD's library
extern "C" {

int amd_comgr_get_isa_count(size_t* count) {
  *count = 1;
  return kOk;
}
int amd_comgr_get_isa_name(size_t number, const char** name) {
  *name = kIsa;
  return number == 0 ? kOk : kInvalidArgument;
}
int amd_comgr_create_disassembly_info(const char* isa, ReadMemory* read, PrintInstruction* print,
                                      void (*)(uint64_t address, void* user), uint64_t* handle) {
  if (std::strcmp(isa, kIsa) != 0) return kInvalidArgument;
  *handle = reinterpret_cast<uint64_t>(new Info{read, print});
  return kOk;
}
int amd_comgr_destroy_disassembly_info(uint64_t handle) {
  delete reinterpret_cast<Info*>(handle);
  return kOk;
}
int amd_comgr_disassemble_instruction(uint64_t handle, uint64_t address, void* user, uint64_t* size) {
  const Info& info = *reinterpret_cast<Info*>(handle);
  uint64_t words[2] = {};
  *size = info.read(address, reinterpret_cast<char*>(words), sizeof words, user);
  for (const Row& row : kRows) {
    if (*size != sizeof words || (words[0] & 0xfff) != row.opcode) continue;
    info.print(row.text, user);
    return kOk;
  }
  return kError;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
