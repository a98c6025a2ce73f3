#include "worker/drivers/gpu_code.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

constexpr size_t kMostMessage = 2000;
constexpr int64_t kClangDeadline = 60'000'000'000;

// NVRTC's C interface, as far as it is used; see its manual.
struct Nvrtc {
  using Program = void*;
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const*, const char* const*);
  int (*compile)(Program, int options, const char* const*);
  int (*destroy)(Program*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);
  int (*architectures)(int*);
  int (*supported)(int*);
  std::vector<int> known;  // 75, 80, ...
};

// Null when this machine has none.
const Nvrtc* nvrtc() {
  static const Nvrtc* const kNvrtc = []() -> const Nvrtc* {
    void* library = nullptr;
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto* const found = new Nvrtc;
    bool all = true;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      all = all && function != nullptr;
    };
    find(found->create, "nvrtcCreateProgram");
    find(found->compile, "nvrtcCompileProgram");
    find(found->destroy, "nvrtcDestroyProgram");
    find(found->log_size, "nvrtcGetProgramLogSize");
    find(found->log, "nvrtcGetProgramLog");
    find(found->cubin_size, "nvrtcGetCUBINSize");
    find(found->cubin, "nvrtcGetCUBIN");
    find(found->ptx_size, "nvrtcGetPTXSize");
    find(found->ptx, "nvrtcGetPTX");
    find(found->architectures, "nvrtcGetNumSupportedArchs");
    find(found->supported, "nvrtcGetSupportedArchs");
    int count = 0;
    if (!all || found->architectures(&count) != 0) return nullptr;
    found->known.resize(count);
    if (count == 0 || found->supported(found->known.data()) != 0) return nullptr;
    return found;
  }();
  return kNvrtc;
}

std::string text_of(int (*size)(Nvrtc::Program, size_t*), int (*get)(Nvrtc::Program, char*), Nvrtc::Program program) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0 || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (get(program, text.data()) != 0) return "";
  return text;
}

// The number before `words` in `text`, 0 when they are not there.
int64_t number_before(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string_view::npos || at == 0) return 0;
  size_t begin = at;
  while (begin > 0 && text[begin - 1] == ' ') --begin;
  const size_t end = begin;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1]))) --begin;
  int64_t value = 0;
  std::from_chars(text.data() + begin, text.data() + end, value);
  return value;
}
int64_t number_after(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = text.substr(at + words.size());
  while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  int64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

void note_access(int bytes, int& widest, int& narrowest) {
  widest = std::max(widest, bytes);
  narrowest = narrowest == 0 ? bytes : std::min(narrowest, bytes);
}

// "ld.global.nc.v4.u32" moves 16 bytes.
void read_ptx(GpuCode& code) {
  for (absl::string_view line : absl::StrSplit(code.assembly, '\n')) {
    if (line.find("atom.global.cas") != absl::string_view::npos || line.find("atom.cas") != absl::string_view::npos)
      code.compare_and_swap = true;
    const size_t load = line.find("ld.global"), store = line.find("st.global");
    const size_t at = std::min(load, store);
    if (at == absl::string_view::npos) continue;
    const absl::string_view word = line.substr(at, line.find_first_of(" \t", at) - at);
    const int lanes = word.find(".v4") != absl::string_view::npos   ? 4
                      : word.find(".v2") != absl::string_view::npos ? 2
                                                                    : 1;
    const size_t digits = word.find_last_not_of("0123456789") + 1;
    int bits = 0;
    std::from_chars(word.data() + digits, word.data() + word.size(), bits);
    if (bits == 0) continue;
    if (at == load)
      note_access(lanes * bits / 8, code.widest_load, code.narrowest_load);
    else
      note_access(lanes * bits / 8, code.widest_store, code.narrowest_store);
  }
}

absl::StatusOr<GpuCode> compile_cuda(const Source& source, const std::string& architecture) {
  const Nvrtc& library = *nvrtc();
  const std::string text = absl::StrCat(source.prelude, "#line 1 \"kernel\"\n", source.text);
  Nvrtc::Program program = nullptr;
  if (library.create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0)
    return absl::UnavailableError("NVRTC does not start a program; is there memory left?");
  const std::string gpu = absl::StrCat("--gpu-architecture=", architecture);
  const char* const options[] = {gpu.c_str(),       "--std=c++17", "--device-as-default-execution-space",
                                 "--device-int128", "-w",          "--ptxas-options=-v"};
  const int64_t begin = monotonic_ns();
  const int result = library.compile(program, std::size(options), options);
  GpuCode code;
  code.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  const std::string log = text_of(library.log_size, library.log, program);
  if (result == 0) {
    code.binary = text_of(library.cubin_size, library.cubin, program);
    code.assembly = text_of(library.ptx_size, library.ptx, program);
  }
  library.destroy(&program);
  if (result != 0) return absl::InvalidArgumentError(log.substr(0, kMostMessage));
  if (code.binary.empty()) return absl::InternalError("NVRTC made no cubin");
  code.registers = static_cast<int>(number_after(log, "Used "));
  code.stack_bytes = number_before(log, "bytes stack frame");
  code.spill_bytes = number_before(log, "bytes spill stores") + number_before(log, "bytes spill loads");
  read_ptx(code);
  return code;
}

// "global_load_dwordx4" moves 16 bytes.
void read_amdgpu(GpuCode& code) {
  static constexpr std::pair<std::string_view, int> kWidths[] = {
      {"dwordx4", 16}, {"dwordx3", 12}, {"dwordx2", 8}, {"dword", 4}, {"short", 2}, {"ushort", 2},
      {"b128", 16},    {"b96", 12},     {"b64", 8},     {"b32", 4},   {"sbyte", 1}, {"ubyte", 1},
      {"byte", 1},     {"u16", 2},      {"u8", 1},      {"b16", 2},   {"b8", 1}};
  for (absl::string_view line : absl::StrSplit(code.assembly, '\n')) {
    if (line.find("global_atomic_cmpswap") != absl::string_view::npos) code.compare_and_swap = true;
    for (const bool load : {true, false}) {
      const absl::string_view name = load ? "global_load_" : "global_store_";
      const size_t at = line.find(name);
      if (at == absl::string_view::npos) continue;
      const absl::string_view kind = line.substr(at + name.size());
      for (const auto& [word, bytes] : kWidths) {
        if (kind.substr(0, word.size()) != absl::string_view(word.data(), word.size())) continue;
        note_access(bytes, load ? code.widest_load : code.widest_store,
                    load ? code.narrowest_load : code.narrowest_store);
        break;
      }
    }
  }
  code.registers = static_cast<int>(number_after(code.assembly, ".vgpr_count:"));
  code.spill_bytes = 4 * number_after(code.assembly, ".vgpr_spill_count:");
  code.stack_bytes = number_after(code.assembly, ".private_segment_fixed_size:");
}

// Runs clang on a file of HIP; its exit and what it said.
absl::StatusOr<std::pair<bool, std::string>> run_clang(const std::string& architecture, const std::string& folder,
                                                       const std::string& from, const std::string& to) {
  Process::Options options;
  options.folder = folder;
  options.inherit_environment = true;
  options.arguments = {"clang++",
                       "-x",
                       "hip",
                       "--cuda-device-only",
                       "-nogpuinc",
                       "-nogpulib",
                       "-std=c++17",
                       "-O3",
                       "-w",
                       "-ffp-contract=fast",
                       absl::StrCat("--offload-arch=", architecture),
                       "-S",
                       from,
                       "-o",
                       to};
  WL_ASSIGN_OR_RETURN(Process process, Process::start(options));
  Drain drain(16384);
  WL_ASSIGN_OR_RETURN(const Exit exit, process.wait(monotonic_ns() + kClangDeadline, drain));
  return std::pair(!exit.signalled && exit.code == 0, drain.text());
}

absl::StatusOr<GpuCode> compile_hip(const Source& source, const std::string& architecture, const std::string& folder) {
  const std::string stem = absl::StrCat(folder, "/", source.entry);
  {
    std::ofstream file(stem + ".hip", std::ios::binary);
    file << source.prelude << "#line 1 \"kernel\"\n" << source.text;
    file.close();
    if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", stem, ".hip; is the disk full?"));
  }
  const int64_t begin = monotonic_ns();
  WL_ASSIGN_OR_RETURN(const auto result, run_clang(architecture, folder, stem + ".hip", stem + ".s"));
  if (!result.first) return absl::InvalidArgumentError(result.second.substr(0, kMostMessage));
  GpuCode code;
  code.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  std::ifstream file(stem + ".s", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  code.assembly = text.str();
  read_amdgpu(code);
  return code;
}

// Whether clang knows an architecture: it compiles an empty file for it.
bool clang_knows(const std::string& architecture) {
  const auto result = run_clang(architecture, "/", "/dev/null", "/dev/null");
  return result.ok() && result->first;
}

}  // namespace

std::string gpu_compiler_missing(const std::string& target) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(target, absl::MaxSplits(':', 1));
  if (parts.first == "cuda") {
    if (nvrtc() == nullptr) return "NVRTC is not installed (no libnvrtc)";
    const int wanted = static_cast<int>(number_after(parts.second, "sm_"));
    if (std::count(nvrtc()->known.begin(), nvrtc()->known.end(), wanted) == 0)
      return absl::StrCat("NVRTC here does not know ", parts.second);
    return "";
  }
  if (parts.first == "hip") {
    static std::mutex mutex;
    static auto* const kKnown = new std::vector<std::pair<std::string, bool>>;
    const std::lock_guard lock(mutex);
    auto at =
        std::find_if(kKnown->begin(), kKnown->end(), [&](const auto& entry) { return entry.first == parts.second; });
    if (at == kKnown->end()) at = kKnown->insert(kKnown->end(), {parts.second, clang_knows(parts.second)});
    return at->second ? "" : absl::StrCat("clang here does not know ", parts.second);
  }
  return absl::StrCat(target, " is no GPU that code is compiled for");
}

absl::StatusOr<GpuCode> compile_gpu(const Source& source, const std::string& folder) {
  if (const std::string missing = gpu_compiler_missing(source.target); !missing.empty())
    return absl::UnavailableError(missing);
  const std::string architecture = source.target.substr(source.target.find(':') + 1);
  return source.target.starts_with("cuda:") ? compile_cuda(source, architecture)
                                            : compile_hip(source, architecture, folder);
}

}  // namespace wl
