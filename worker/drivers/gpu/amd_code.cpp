#include "worker/drivers/gpu/amd_code.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "worker/drivers/gpu/cubin.h"
#include "worker/drivers/gpu/elf_sections.h"

namespace wl {
namespace {

constexpr uint16_t kAmdGpu = 224;                         // the ELF machine number EM_AMDGPU
constexpr const char* kIsaStart = "amdgcn-amd-amdhsa--";  // prefix of an architecture in the names that comgr uses
constexpr absl::string_view kEndOfProgram = "s_endpgm";   // whatever follows a kernel's last s_endpgm is padding
constexpr const char* kComgrs[] = {"libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so",
                                   "/opt/rocm/lib/libamd_comgr.so"};

// The functions of AMD's code object manager (libamd_comgr), from version 2.0 (ROCm 3.9) on. All return 0 on success.
// Their handles are structs of one 64-bit number, which the calling convention passes like the number.
struct Comgr {
  using ReadMemory = uint64_t(uint64_t from, char* to, uint64_t size, void* user);
  using PrintInstruction = void(const char* text, void* user);
  using PrintAddress = void(uint64_t address, void* user);
  int (*isa_count)(size_t*) = nullptr;
  int (*isa_name)(size_t number, const char**) = nullptr;
  int (*create)(const char* isa, ReadMemory*, PrintInstruction*, PrintAddress*, uint64_t* handle) = nullptr;
  int (*destroy)(uint64_t handle) = nullptr;
  int (*disassemble)(uint64_t handle, uint64_t address, void* user, uint64_t* size) = nullptr;
};

// Opens the code object manager: the library that hipRTC has loaded already, otherwise the first one of kComgrs that
// exists; null: there is none.
void* open_library() {
  for (const int mode : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL})
    for (const char* name : kComgrs)
      if (void* const library = dlopen(name, mode); library != nullptr) return library;
  return nullptr;
}

// Returns the functions of the code object manager; all are null if the library or one of them is missing.
Comgr open_comgr() {
  void* const library = open_library();
  if (library == nullptr) return {};
  Comgr found;
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    all = all && function != nullptr;
  };
  find(found.isa_count, "amd_comgr_get_isa_count");
  find(found.isa_name, "amd_comgr_get_isa_name");
  find(found.create, "amd_comgr_create_disassembly_info");
  find(found.destroy, "amd_comgr_destroy_disassembly_info");
  find(found.disassemble, "amd_comgr_disassemble_instruction");
  return all ? found : Comgr{};
}

const Comgr& comgr() {
  static const Comgr kComgr = open_comgr();
  return kComgr;
}

// The state of a disassembly. `code`: the machine code, in which addresses are offsets. `text`: the instructions that
// have been printed so far.
struct Walk {
  std::string_view code;
  std::string text;
};

uint64_t read_code(uint64_t from, char* to, uint64_t size, void* user) {
  const std::string_view code = static_cast<const Walk*>(user)->code;
  if (from >= code.size()) return 0;
  const uint64_t bytes = std::min<uint64_t>(size, code.size() - from);
  std::memcpy(to, code.data() + from, bytes);
  return bytes;
}

void print_instruction(const char* text, void* user) {
  absl::StrAppend(&static_cast<Walk*>(user)->text, text, "\n");
}

void print_address(uint64_t, void*) {}

std::vector<std::string> ask_for_architectures() {
  std::vector<std::string> out;
  size_t count = 0;
  if (comgr().isa_count == nullptr || comgr().isa_count(&count) != 0) return out;
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    if (comgr().isa_name(i, &name) != 0 || name == nullptr) continue;
    // In the names that the code object manager returns, features may follow the architecture: "gfx90a:xnack+".
    const std::vector<std::string> parts = absl::StrSplit(name, kIsaStart);
    if (parts.size() != 2) continue;
    std::string architecture = parts[1].substr(0, parts[1].find_first_of(":+"));
    if (std::count(out.begin(), out.end(), architecture) == 0) out.push_back(std::move(architecture));
  }
  return out;
}

}  // namespace

// The names of instructions contain the widths: "global_load_dwordx4" moves 16 bytes.
void read_amd_assembly(std::string_view assembly, CodeFacts& code) {
  static constexpr std::pair<std::string_view, int> kKinds[] = {
      {"dwordx4", 16}, {"dwordx3", 12}, {"dwordx2", 8}, {"dword", 4}, {"short", 2}, {"ushort", 2},
      {"b128", 16},    {"b96", 12},     {"b64", 8},     {"b32", 4},   {"sbyte", 1}, {"ubyte", 1},
      {"byte", 1},     {"u16", 2},      {"u8", 1},      {"b16", 2},   {"b8", 1}};
  for (absl::string_view line : absl::StrSplit(absl::string_view(assembly.data(), assembly.size()), '\n')) {
    if (line.find("global_atomic_cmpswap") != absl::string_view::npos) code.compare_and_swap = true;
    for (const bool load : {true, false}) {
      const absl::string_view name = load ? "global_load_" : "global_store_";
      const size_t at = line.find(name);
      if (at == absl::string_view::npos) continue;
      const absl::string_view kind = line.substr(at + name.size());
      for (const auto& [word, bytes] : kKinds) {
        if (kind.substr(0, word.size()) != absl::string_view(word.data(), word.size())) continue;
        load ? note_load(bytes, code) : note_store(bytes, code);
        break;
      }
    }
  }
}

const std::vector<std::string>& comgr_architectures() {
  static const auto* const kArchitectures = new std::vector<std::string>(ask_for_architectures());
  return *kArchitectures;
}

std::string comgr_disassembly(std::string_view object, const std::string& architecture) {
  const std::optional<ElfSections> sections = ElfSections::of(object, kAmdGpu);
  uint64_t handle = 0;
  if (!sections || comgr().create == nullptr ||
      comgr().create(absl::StrCat(kIsaStart, architecture).c_str(), read_code, print_instruction, print_address,
                     &handle) != 0)
    return "";
  Walk walk{sections->named(".text"), ""};
  for (uint64_t at = 0, size = 0; at < walk.code.size(); at += size)
    if (comgr().disassemble(handle, at, &walk, &size) != 0 || size == 0) break;
  (void)comgr().destroy(handle);
  const size_t end = walk.text.rfind(std::string(kEndOfProgram));
  return end == std::string::npos ? "" : walk.text.substr(0, walk.text.find('\n', end) + 1);
}

}  // namespace wl
