#include "worker/drivers/gpu/code.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/base/matmul.h"
#include "compiler/base/status.h"
#include "files/read.h"
#include "worker/drivers/files.h"
#include "worker/drivers/gpu/amd_code.h"
#include "worker/drivers/gpu/rtc.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

constexpr size_t kMaxClangMessage = 2000;
constexpr int64_t kClangDeadline = 60'000'000'000;
constexpr const char* kVersionDigits = "0123456789";

// Returns the number after a key in an assembly's metadata; 0: the key is missing.
int64_t number_after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = text.substr(at + key.size());
  while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  int64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

void read_clang_assembly(GpuCode& code) {
  read_amd_assembly(code.assembly, code);
  code.registers = static_cast<int>(number_after(code.assembly, ".vgpr_count:"));
  code.spill_bytes = 4 * number_after(code.assembly, ".vgpr_spill_count:");
  code.stack_bytes = number_after(code.assembly, ".private_segment_fixed_size:");
}

// Runs a program. Returns whether it succeeded, and its output.
absl::StatusOr<std::pair<bool, std::string>> run_program(const std::string& folder,
                                                         std::vector<std::string> arguments) {
  Process::Options options;
  options.folder = folder;
  options.inherit_environment = true;
  options.arguments = std::move(arguments);
  WL_ASSIGN_OR_RETURN(Process process, Process::start(options));
  Drain drain(16384);
  WL_ASSIGN_OR_RETURN(const Exit exit, process.wait(monotonic_ns() + kClangDeadline, drain));
  return std::pair(!exit.signalled && exit.code == 0, drain.text());
}

std::vector<std::string> clang_flags(const std::string& architecture) {
  return {"-x",
          "hip",
          "--cuda-device-only",
          "-nogpuinc",
          "-nogpulib",
          "-std=c++17",
          "-O3",
          "-w",
          "-ffp-contract=fast",
          absl::StrCat("--offload-arch=", architecture)};
}

std::vector<std::string> to_assembly(const std::string& clang, const std::string& architecture, const std::string& from,
                                     const std::string& to) {
  std::vector<std::string> arguments = clang_flags(architecture);
  arguments.insert(arguments.begin(), clang);
  arguments.insert(arguments.end(), {"-S", from, "-o", to});
  return arguments;
}

// Returns the command that assembles and links a file; an empty file gives an empty object.
std::vector<std::string> to_code(const std::string& clang, const std::string& architecture, const std::string& from,
                                 const std::string& to) {
  return {clang,          "-target", "amdgcn-amd-amdhsa", absl::StrCat("-mcpu=", architecture),
          "-fuse-ld=lld", "-x",      "assembler",         from,
          "-o",           to};
}

absl::StatusOr<std::string> read_text(const std::string& path) {
  absl::StatusOr<std::string> text = read_file(path);
  if (!text.ok()) return absl::UnavailableError(text.status().message());
  if (text->empty()) return absl::UnavailableError(absl::StrCat("cannot read ", path, ": it is empty"));
  return text;
}

// Compiles a source by clang to assembly, from which the facts about the code are read, and the assembly to a code
// object, which the driver loads.
absl::StatusOr<GpuUnit> compile_clang(const std::string& clang, const Source& source, const std::string& architecture,
                                      const std::string& folder) {
  const std::string stem = absl::StrCat(folder, "/", source.entry, ".", architecture);
  WL_RETURN_IF_ERROR(write_parts(stem + ".hip", {source.prelude, "#line 1 \"kernel\"\n", source.text}));
  const int64_t begin = monotonic_ns();
  WL_ASSIGN_OR_RETURN(const auto compiled,
                      run_program(folder, to_assembly(clang, architecture, stem + ".hip", stem + ".s")));
  if (!compiled.first) return absl::InvalidArgumentError(compiled.second.substr(0, kMaxClangMessage));
  GpuUnit unit;
  GpuCode code;
  WL_ASSIGN_OR_RETURN(code.assembly, read_text(stem + ".s"));
  WL_ASSIGN_OR_RETURN(const auto linked, run_program(folder, to_code(clang, architecture, stem + ".s", stem + ".co")));
  if (!linked.first) return absl::InvalidArgumentError(linked.second.substr(0, kMaxClangMessage));
  WL_ASSIGN_OR_RETURN(unit.binary, read_text(stem + ".co"));
  unit.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  read_clang_assembly(code);
  code.dynamic_shared = source.scratch_bytes;
  unit.kernels.push_back(std::move(code));
  return unit;
}

// Makes the GpuUnit of a kernel that calls a library. Nothing is compiled: the text that describes the call is the
// object.
absl::StatusOr<GpuUnit> called(std::span<const Source> sources) {
  if (sources.size() != 1) return absl::InvalidArgumentError("a unit with the call of a library is one kernel");
  WL_RETURN_IF_ERROR(parse_matmul(sources[0].text).status());
  GpuUnit unit;
  unit.binary = sources[0].text;
  unit.kernels.emplace_back();
  return unit;
}

struct Clang {
  std::string program, version;  // file name and version of the compiler: "clang++-22", "22.1.8"
};

// Returns the numbers of a version, such as 22, 1 and 8, by which versions are compared.
std::vector<int> numbers_of(const std::string& version) {
  std::vector<int> out;
  for (const absl::string_view part : absl::StrSplit(version, '.')) {
    int number = 0;
    (void)absl::SimpleAtoi(part.substr(0, part.find_first_not_of(kVersionDigits)), &number);
    out.push_back(number);
  }
  return out;
}

// Whether a program of this file name is a clang: "clang++" or "clang++-22".
bool is_clang(std::string_view name) {
  constexpr std::string_view kClang = "clang++";
  if (!name.starts_with(kClang)) return false;
  const std::string_view rest = name.substr(kClang.size());
  return rest.empty() || (rest.size() > 1 && rest[0] == '-' && rest.find_first_not_of(kVersionDigits, 1) == rest.npos);
}

// Returns the clangs on PATH, one of each version, the newest first.
std::vector<Clang> find_clangs() {
  std::set<std::string> names;
  const char* const path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path != nullptr ? path : "", ':')) {
    std::error_code error;
    for (auto at = std::filesystem::directory_iterator(std::string(folder), error); at != end(at); at.increment(error))
      if (const std::string name = at->path().filename().string(); is_clang(name)) names.insert(name);
  }
  std::vector<Clang> found;
  for (const std::string& name : names) {
    const auto said = run_program("/", {name, "-dumpversion"});
    if (!said.ok() || !said->first) continue;
    const std::string version = said->second.substr(0, said->second.find('\n'));
    if (std::none_of(found.begin(), found.end(), [&](const Clang& other) { return other.version == version; }))
      found.push_back({name, version});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Clang& a, const Clang& b) { return numbers_of(a.version) > numbers_of(b.version); });
  return found;
}

const std::vector<Clang>& clangs() {
  static const auto* const kClangs = new std::vector<Clang>(find_clangs());
  return *kClangs;
}

// Returns the newest clang that, with its linker, makes code for an architecture; null: none does. Each architecture is
// tried once, with an empty file. Thread-safe.
const Clang* clang_for(const std::string& architecture) {
  static std::mutex mutex;
  static auto* const kFound = new std::map<std::string, const Clang*>;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = kFound->try_emplace(architecture, nullptr);
  if (!fresh) return at->second;
  for (const Clang& clang : clangs()) {
    const auto works = [](std::vector<std::string> arguments) {
      const auto result = run_program("/", std::move(arguments));
      return result.ok() && result->first;
    };
    if (!works(to_assembly(clang.program, architecture, "/dev/null", "/dev/null")) ||
        !works(to_code(clang.program, architecture, "/dev/null", "/dev/null")))
      continue;
    at->second = &clang;
    break;
  }
  return at->second;
}

}  // namespace

std::string gpu_compiler_missing(const std::string& target) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(target, absl::MaxSplits(':', 1));
  if (parts.first == "cuda") return rtc_missing(parts.first, parts.second);
  if (parts.first != "hip") return absl::StrCat(target, " is not a GPU target");
  if (clang_for(parts.second) != nullptr || rtc_missing(parts.first, parts.second).empty()) return "";
  std::vector<std::string> versions;
  for (const Clang& clang : clangs()) versions.push_back(clang.version);
  const std::string clang = versions.empty() ? "clang is not installed"
                                             : absl::StrCat("the installed clang (", absl::StrJoin(versions, ", "),
                                                            ") does not support ", parts.second);
  return absl::StrCat(clang, ", and ", rtc_missing(parts.first, parts.second));
}

std::vector<std::string> gpu_flags(const std::string& target) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(target, absl::MaxSplits(':', 1));
  return parts.first == "cuda" ? rtc_flags(parts.first, parts.second) : clang_flags(parts.second);
}

std::string gpu_compiler_version(const std::string& target) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(target, absl::MaxSplits(':', 1));
  const Clang* const clang = parts.first == "hip" ? clang_for(parts.second) : nullptr;
  if (clang != nullptr) return absl::StrCat("clang=", clang->version);
  return rtc_missing(parts.first, parts.second).empty() ? rtc_version(parts.first) : "";
}

absl::StatusOr<GpuUnit> compile_gpu(std::span<const Source> sources, const std::string& folder) {
  WL_CHECK(!sources.empty(), "nothing to compile");
  const std::string& target = sources[0].target;
  if (!sources[0].library.empty()) return called(sources);
  if (const std::string missing = gpu_compiler_missing(target); !missing.empty())
    return absl::UnavailableError(missing);
  const std::pair<std::string, std::string> parts = absl::StrSplit(target, absl::MaxSplits(':', 1));
  if (parts.first == "cuda") return compile_rtc(sources, parts.first, parts.second);
  if (sources.size() != 1) return absl::InvalidArgumentError("a unit of HIP is one kernel");
  const Clang* const clang = clang_for(parts.second);
  return clang != nullptr ? compile_clang(clang->program, sources[0], parts.second, folder)
                          : compile_rtc(sources, parts.first, parts.second);
}

}  // namespace wl
