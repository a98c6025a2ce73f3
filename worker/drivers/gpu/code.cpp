#include "worker/drivers/gpu/code.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <mutex>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "worker/drivers/gpu/amd_code.h"
#include "worker/drivers/gpu/rtc.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

constexpr size_t kMaxClangMessage = 2000;
constexpr int64_t kClangDeadline = 60'000'000'000;

// Returns the number after a key in an assembly's metadata; 0 if the key is missing.
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

// Runs clang++. Returns whether it succeeded, and its output.
absl::StatusOr<std::pair<bool, std::string>> run_clang(const std::string& folder, std::vector<std::string> arguments) {
  Process::Options options;
  options.folder = folder;
  options.inherit_environment = true;
  options.arguments = {"clang++"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  WL_ASSIGN_OR_RETURN(Process process, Process::start(options));
  Drain drain(16384);
  WL_ASSIGN_OR_RETURN(const Exit exit, process.wait(monotonic_ns() + kClangDeadline, drain));
  return std::pair(!exit.signalled && exit.code == 0, drain.text());
}

std::vector<std::string> to_assembly(const std::string& architecture, const std::string& from, const std::string& to) {
  return {"-x",
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
}

absl::StatusOr<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  return text.str();
}

// Compiles text to assembly, which is judged, and assembly to a code object, which is run.
absl::StatusOr<GpuUnit> compile_clang(const Source& source, const std::string& architecture,
                                      const std::string& folder) {
  const std::string stem = absl::StrCat(folder, "/", source.entry, ".", architecture);
  {
    std::ofstream file(stem + ".hip", std::ios::binary);
    file << source.prelude << "#line 1 \"kernel\"\n" << source.text;
    file.close();
    if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", stem, ".hip; is the disk full?"));
  }
  const int64_t begin = monotonic_ns();
  WL_ASSIGN_OR_RETURN(const auto compiled, run_clang(folder, to_assembly(architecture, stem + ".hip", stem + ".s")));
  if (!compiled.first) return absl::InvalidArgumentError(compiled.second.substr(0, kMaxClangMessage));
  GpuUnit unit;
  GpuCode code;
  WL_ASSIGN_OR_RETURN(code.assembly, read_text(stem + ".s"));
  WL_ASSIGN_OR_RETURN(const auto linked,
                      run_clang(folder, {"-target", "amdgcn-amd-amdhsa", absl::StrCat("-mcpu=", architecture),
                                         "-fuse-ld=lld", stem + ".s", "-o", stem + ".co"}));
  if (!linked.first) return absl::InvalidArgumentError(linked.second.substr(0, kMaxClangMessage));
  WL_ASSIGN_OR_RETURN(unit.binary, read_text(stem + ".co"));
  unit.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  read_clang_assembly(code);
  code.dynamic_shared = source.scratch_bytes;
  unit.kernels.push_back(std::move(code));
  return unit;
}

// Whether clang knows an architecture. Found out by compiling an empty file, once per architecture.
bool clang_knows(const std::string& architecture) {
  static std::mutex mutex;
  static auto* const kKnown = new std::vector<std::pair<std::string, bool>>;
  const std::lock_guard lock(mutex);
  for (const auto& [name, known] : *kKnown)
    if (name == architecture) return known;
  const auto result = run_clang("/", to_assembly(architecture, "/dev/null", "/dev/null"));
  kKnown->emplace_back(architecture, result.ok() && result->first);
  return kKnown->back().second;
}

std::string clang_version() {
  const auto result = run_clang("/", {"-dumpversion"});
  if (!result.ok() || !result->first) return "";
  return absl::StrCat("clang=", result->second.substr(0, result->second.find('\n')));
}

}  // namespace

std::string gpu_compiler_missing(const std::string& target) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(target, absl::MaxSplits(':', 1));
  if (parts.first == "cuda") return rtc_missing(parts.first, parts.second);
  if (parts.first != "hip") return absl::StrCat(target, " is not a GPU target");
  if (clang_knows(parts.second) || rtc_missing(parts.first, parts.second).empty()) return "";
  const std::string clang = clang_version().empty()
                                ? "clang is not installed"
                                : absl::StrCat("the installed clang does not support ", parts.second);
  return absl::StrCat(clang, ", and ", rtc_missing(parts.first, parts.second));
}

std::string gpu_compiler_version(const std::string& family) {
  const std::string rtc = rtc_version(family);
  if (family != "hip") return rtc;
  const std::string clang = clang_version();
  return clang.empty() ? rtc : rtc.empty() ? clang : absl::StrCat(clang, " ", rtc);
}

absl::StatusOr<GpuUnit> compile_gpu(std::span<const Source> sources, const std::string& folder) {
  WL_CHECK(!sources.empty(), "nothing to compile");
  const std::string& target = sources[0].target;
  if (const std::string missing = gpu_compiler_missing(target); !missing.empty())
    return absl::UnavailableError(missing);
  const std::pair<std::string, std::string> parts = absl::StrSplit(target, absl::MaxSplits(':', 1));
  if (parts.first == "cuda") return compile_rtc(sources, parts.first, parts.second);
  if (sources.size() != 1) return absl::InvalidArgumentError("a unit of HIP is one kernel");
  return clang_knows(parts.second) ? compile_clang(sources[0], parts.second, folder)
                                   : compile_rtc(sources, parts.first, parts.second);
}

}  // namespace wl
