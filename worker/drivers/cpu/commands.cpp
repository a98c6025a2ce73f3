// The commands that compile and link a translation unit.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/base/sha256.h"
#include "worker/drivers/cpu/tables.h"

namespace wl {
namespace {

// -fno-builtin-mem*: without it, both compilers turn a loop that copies a row into a library call, which does not use
// the chosen vector width.
constexpr const char* kCompile =
    "-std=c++17 -O2 -w -ffp-contract=fast -fno-math-errno -fno-trapping-math -fno-builtin-memcpy -fno-builtin-memset "
    "-fPIC";
// -z defs: an undefined symbol that is not in libc or libm becomes a compile error of its candidate.
constexpr const char* kLink = "-shared -s -z defs -z noexecstack -z noseparate-code --build-id=none --as-needed";

constexpr const char* kLinkers[] = {"ld", "ld.lld"};

}  // namespace

const std::string& cpu_linker() {
  static const auto* const kLinker = [] {
    for (const char* linker : kLinkers)
      if (program_runs(linker)) return new std::string(linker);
    return new std::string(kLinkers[0]);
  }();
  return *kLinker;
}

bool is_preferred_linker(const std::string& linker) {
  return linker == kLinkers[0];
}

std::string build_script(const CpuCompiler& compiler, const CpuTarget& target) {
  const std::string& linker = cpu_linker();
  // Linking by `ld` itself is faster than by the compiler driver (g++, clang++), which would start itself again for
  // each step, read the C++ libraries and add files that only executables need. The driver links only if the linker
  // does not find every symbol, for example a function of the compiler's run-time library.
  return absl::StrCat(compiler.program, " ", kCompile, " ", absl::StrJoin(target.flags, " "), " ",
                      absl::StrJoin(compiler.flags, " "), " -c -o ", kUnitCode, " ", kUnitText, " && { ", linker, " ",
                      kLink, " -o ", kUnitObject, " ", kUnitCode, " -lm -lc 2>/dev/null || exec ", compiler.program,
                      is_preferred_linker(linker) ? "" : " -fuse-ld=lld", " -fPIC -shared -s -Wl,-z,defs -o ",
                      kUnitObject, " ", kUnitCode, "; }");
}

std::vector<std::string> code_flags(const CpuTarget& target) {
  std::vector<std::string> out = target.flags;
  for (const absl::string_view flag : absl::StrSplit(kCompile, ' '))
    if (flag != "-w" && flag != "-fPIC" && !absl::StartsWith(flag, "-std=")) out.emplace_back(flag);
  return out;
}

std::string build_digest(const CpuCompiler& compiler) {
  std::string scripts;
  for (const CpuTarget& target : cpu_targets())
    if (absl::StartsWith(target.name, "cpu:")) absl::StrAppend(&scripts, build_script(compiler, target), "\n");
  return sha256_hex(scripts).substr(0, 8);
}

}  // namespace wl
