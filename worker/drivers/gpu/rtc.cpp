#include "worker/drivers/gpu/rtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "worker/drivers/gpu/amd_code.h"
#include "worker/drivers/gpu/cubin.h"
#include "worker/drivers/process.h"

namespace wl {

struct RtcRow {
  const char* family;
  const char* name;    // name of the library in messages and versions
  const char* prefix;  // the common prefix of the names of the library's functions
  const char* size_of_code;
  const char* code;
  const char* libraries[6];
  std::vector<std::string> flags;  // options of the compiler, except the one for the architecture
};

namespace {

constexpr size_t kMaxRtcMessage = 2000;
constexpr const char* kDigits = "0123456789";

const std::vector<RtcRow>& rows() {
  static const auto* const kRows = new std::vector<RtcRow>{
      {"cuda",
       "nvrtc",
       "nvrtc",
       "GetCUBINSize",
       "GetCUBIN",
       {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"},
       // --minimal leaves out NVRTC's built-in headers. The kernels use none of them, and compiling takes a tenth less
       // time.
       {"--std=c++17", "--device-as-default-execution-space", "--device-int128", "-w", "--ptxas-options=-v",
        "--minimal"}},
      {"hip",
       "hiprtc",
       "hiprtc",
       "GetCodeSize",
       "GetCode",
       // Libraries are tried in the same order of versions as the drivers in runtime/gpu_tables.h. Up to ROCm 5.2,
       // libamdhip64 contained hipRTC.
       {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so", "libamdhip64.so.5",
        "/opt/rocm/lib/libhiprtc.so"},
       {"-std=c++17", "-O3", "-w", "-ffp-contract=fast"}},
  };
  return *kRows;
}

// The functions of one library. NVRTC and hipRTC have the same functions, under different prefixes.
struct Rtc {
  using Program = void*;
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const*, const char* const*);
  int (*compile)(Program, int options, const char* const*);
  int (*destroy)(Program*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*code_size)(Program, size_t*);
  int (*code)(Program, char*);
  int (*version)(int*, int*);
  const char* (*error_string)(int);
  // Functions that only NVRTC has; the pointers are null for hipRTC.
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);
  int (*architectures)(int*);
  int (*supported)(int*);
  const RtcRow* row = nullptr;
  std::vector<std::string> known;  // the architectures that the library supports ("sm_80", "gfx90a"); empty: not known
};

// Opens the library of a row and finds its functions; null if this machine does not have it.
const Rtc* open_rtc(const RtcRow& row) {
  void* library = nullptr;
  for (const char* name : row.libraries)
    if (library == nullptr && name != nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto* const found = new Rtc;
  found->row = &row;
  bool all = true;
  const auto find = [&](auto& function, const char* name, bool needed = true) {
    const std::string symbol = absl::StrCat(row.prefix, name);
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, symbol.c_str()));
    all = all && (function != nullptr || !needed);
  };
  find(found->create, "CreateProgram");
  find(found->compile, "CompileProgram");
  find(found->destroy, "DestroyProgram");
  find(found->log_size, "GetProgramLogSize");
  find(found->log, "GetProgramLog");
  find(found->code_size, row.size_of_code);
  find(found->code, row.code);
  find(found->version, "Version");
  find(found->error_string, "GetErrorString");
  find(found->ptx_size, "GetPTXSize", false);
  find(found->ptx, "GetPTX", false);
  find(found->architectures, "GetNumSupportedArchs", false);
  find(found->supported, "GetSupportedArchs", false);
  if (!all) return nullptr;
  int count = 0;
  if (found->architectures != nullptr && found->supported != nullptr && found->architectures(&count) == 0) {
    std::vector<int> numbers(static_cast<size_t>(std::max(count, 0)));
    if (count == 0 || found->supported(numbers.data()) != 0) return nullptr;
    for (const int number : numbers) found->known.push_back(absl::StrCat("sm_", number));
  }
  if (std::string_view(row.family) == "hip") found->known = comgr_architectures();
  return found;
}

const Rtc* rtc_of(const std::string& family) {
  static const Rtc* const kCuda = open_rtc(rows()[0]);
  static const Rtc* const kHip = open_rtc(rows()[1]);
  return family == "cuda" ? kCuda : kHip;
}

std::string text_of(int (*size)(Rtc::Program, size_t*), int (*get)(Rtc::Program, char*), Rtc::Program program) {
  size_t bytes = 0;
  if (size == nullptr || size(program, &bytes) != 0 || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (get(program, text.data()) != 0) return "";
  return text;
}

// Returns the number before `words` in `text`; 0: the words are missing.
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

// Returns the part of `text` that begins with `head` followed by `name` and ends before the next `head`; empty: there
// is none.
std::string_view part_of(std::string_view text, std::string_view head, std::string_view name) {
  const std::string wanted = absl::StrCat(std::string(head), std::string(name));
  const size_t begin = text.find(wanted);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find(head, begin + wanted.size()) - begin);
}

// Reads the figures that ptxas logs for a kernel. Access widths are read from the cubin instead.
void read_ptxas(std::string_view log, GpuCode& code) {
  code.registers = static_cast<int>(number_before(log, "registers"));
  code.stack_bytes = number_before(log, "bytes stack frame");
  code.static_shared = number_before(log, "bytes smem");
  code.spill_bytes = number_before(log, "bytes spill stores") + number_before(log, "bytes spill loads");
}

// Returns the number after a key such as ".vgpr_count" in the notes of an AMD code object, which are MessagePack; 0:
// the key is missing.
int64_t note_after(std::string_view object, std::string_view key) {
  const size_t at = object.find(key);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = object.substr(at + key.size());
  const auto byte = [&](size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0u; };
  if (byte(0) < 0x80) return byte(0);
  int64_t value = 0;
  const int bytes = byte(0) == 0xcc ? 1 : byte(0) == 0xcd ? 2 : byte(0) == 0xce ? 4 : 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | byte(1 + static_cast<size_t>(i));
  return value;
}

}  // namespace

std::string rtc_missing(const std::string& family, const std::string& architecture) {
  const Rtc* library = rtc_of(family);
  const std::string name = family == "cuda" ? "NVRTC" : "hipRTC";
  if (library == nullptr)
    return absl::StrCat(name, " is not installed (no lib", family == "cuda" ? "nvrtc" : "hiprtc", ")");
  // hipRTC ends the process if it does not know an architecture, so hipRTC is used only for architectures that the code
  // object manager lists.
  if (library->known.empty())
    return family == "cuda" ? "" : absl::StrCat(name, " is installed, but no libamd_comgr says what it compiles for");
  // NVRTC reports architectures without suffix: "sm_90" also stands for "sm_90a".
  const std::string wanted =
      architecture.substr(0, family == "cuda" ? architecture.find_last_of(kDigits) + 1 : SIZE_MAX);
  const bool known = std::count(library->known.begin(), library->known.end(), wanted) != 0;
  return known ? ""
               : absl::StrCat("the installed ", name, " does not support ", architecture, " (it knows ",
                              absl::StrJoin(library->known, ", "), ")");
}

std::string rtc_version(const std::string& family) {
  const Rtc* library = rtc_of(family);
  int major = 0, minor = 0;
  if (library == nullptr || library->version(&major, &minor) != 0) return "";
  return absl::StrCat(library->row->name, "=", major, ".", minor);
}

std::vector<std::string> rtc_flags(const std::string& family, const std::string& architecture) {
  std::vector<std::string> flags = rows()[family == "cuda" ? 0 : 1].flags;
  flags.push_back(absl::StrCat("--gpu-architecture=", architecture));
  return flags;
}

absl::StatusOr<GpuUnit> compile_rtc(std::span<const Source> sources, const std::string& family,
                                    const std::string& architecture) {
  const Rtc& library = *rtc_of(family);
  std::string text = sources[0].prelude;
  for (const Source& source : sources) absl::StrAppend(&text, "\n#line 1 \"", source.entry, "\"\n", source.text);
  Rtc::Program program = nullptr;
  if (const int error = library.create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr); error != 0)
    return absl::UnavailableError(absl::StrCat(library.row->name, " starts no program: ", library.error_string(error),
                                               "; is there memory left?"));
  const std::vector<std::string> flags = rtc_flags(family, architecture);
  std::vector<const char*> options;
  for (const std::string& flag : flags) options.push_back(flag.c_str());
  const int64_t begin = monotonic_ns();
  const int result = library.compile(program, static_cast<int>(options.size()), options.data());
  GpuUnit unit;
  unit.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  const std::string log = text_of(library.log_size, library.log, program);
  std::string ptx;
  if (result == 0) {
    unit.binary = text_of(library.code_size, library.code, program);
    ptx = text_of(library.ptx_size, library.ptx, program);
  }
  library.destroy(&program);
  if (result != 0) {
    // The log ends with a zero byte, and may consist of that byte alone.
    const std::string message = log.substr(0, std::min(log.find('\0'), kMaxRtcMessage));
    return absl::InvalidArgumentError(
        !message.empty() ? message : absl::StrCat(library.row->name, ": ", library.error_string(result)));
  }
  if (unit.binary.empty()) return absl::InternalError(absl::StrCat(library.row->name, " made no code"));
  for (const Source& source : sources) {
    GpuCode code;
    if (family == "cuda") {
      code.assembly = std::string(sources.size() == 1 ? ptx : part_of(ptx, ".visible .entry ", source.entry));
      read_ptxas(part_of(log, "Compiling entry function '", source.entry), code);
      WL_RETURN_IF_ERROR(read_cubin(unit.binary, source.entry, code));
    } else {
      // The notes list the kernels one after another, and note_after() finds only the first, so a translation unit has
      // one kernel.
      code.registers = static_cast<int>(note_after(unit.binary, ".vgpr_count"));
      code.spill_bytes = 4 * note_after(unit.binary, ".vgpr_spill_count");
      code.stack_bytes = note_after(unit.binary, ".private_segment_fixed_size");
      code.assembly = comgr_disassembly(unit.binary, architecture);
      read_amd_assembly(code.assembly, code);
    }
    code.dynamic_shared = source.scratch_bytes;
    unit.kernels.push_back(std::move(code));
  }
  return unit;
}

}  // namespace wl
