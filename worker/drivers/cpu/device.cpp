#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "runtime/pool.h"
#include "runtime/tile_registers.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/cpu/tables.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

bool always() {
  return true;
}
bool never() {
  return false;
}

#if defined(__x86_64__)
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_avx512_vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512vnni");
}
bool has_avx512_bf16() {
  return has_avx512_vnni() && __builtin_cpu_supports("avx512bf16");
}
bool has_amx() {
  return has_avx512_bf16() && may_use_tile_registers();
}
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
constexpr auto kHasNeon = never;
#else
constexpr auto has_avx512 = never;
constexpr auto has_avx512_vnni = never;
constexpr auto has_avx512_bf16 = never;
constexpr auto has_amx = never;
constexpr auto has_avx2 = never;
#if defined(__aarch64__)
constexpr auto kHasNeon = always;
#else
constexpr auto kHasNeon = never;
#endif
#endif

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> field = absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(field.first);
    if (key == "model name" || key == "Hardware") return std::string(absl::StripAsciiWhitespace(field.second));
  }
  return "unknown CPU";
}

// Converts a text such as "1024K" to bytes; 0: the text is not a size.
int64_t parse_size(const std::string& text) {
  std::istringstream in(text);
  int64_t value = 0;
  char unit = 0;
  if (!(in >> value)) return 0;
  in >> unit;
  return unit == 'K' ? value << 10 : unit == 'M' ? value << 20 : unit == 'G' ? value << 30 : value;
}

void read_caches(int cpu, Device& device) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/cache/index", index, "/");
    if (first_line_of(folder + "type") == "Instruction") continue;
    const int64_t bytes = parse_size(first_line_of(folder + "size"));
    if (bytes <= 0) continue;
    const std::string level = first_line_of(folder + "level");
    if (level == "1") device.l1_bytes = bytes;
    if (level == "2") device.l2_bytes = bytes;
    if (level == "3") device.l3_bytes = bytes;
  }
}

// Returns the first line of `program --version`; empty: the program does not run.
std::string version_of(const std::string& program) {
  Process::Options options;
  options.arguments = {program, "--version"};
  options.inherit_environment = true;
  absl::StatusOr<Process> process = Process::start(options);
  if (!process.ok()) return "";
  Drain drain(4096);
  const absl::StatusOr<Exit> exit = process->wait(monotonic_ns() + 10'000'000'000, drain);
  if (!exit.ok() || exit->signalled || exit->code != 0) return "";
  return drain.text().substr(0, drain.text().find('\n'));
}

}  // namespace

const std::vector<CpuTarget>& cpu_targets() {
  static const auto* const kTargets = new std::vector<CpuTarget>{
      {"cpu:amx",
       has_amx,
       {"-march=x86-64-v4", "-mavx512vnni", "-mavx512bf16", "-mamx-tile", "-mamx-bf16", "-mamx-int8",
        "-mprefer-vector-width=512"},
       16,
       64},
      {"cpu:avx512_bf16",
       has_avx512_bf16,
       {"-march=x86-64-v4", "-mavx512vnni", "-mavx512bf16", "-mprefer-vector-width=512"},
       16,
       64},
      {"cpu:avx512_vnni", has_avx512_vnni, {"-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"}, 16, 64},
      {"cpu:avx512", has_avx512, {"-march=x86-64-v4", "-mprefer-vector-width=512"}, 16, 64},
      {"cpu:avx2", has_avx2, {"-march=x86-64-v3"}, 8, 32},
      {"cpu:neon", kHasNeon, {"-march=armv8-a"}, 4, 16},
      {"cpu:generic", always, {}, 4, 8},
      // Simulated GPUs, whose threads are fibers. Every machine can run them, and describe_cpu() never chooses them.
      // Their kernels compute little, so that compiling would take most of the time if the code were optimised.
      {"sim:cuda", always, {"-O0", "-fwrapv"}},
      {"sim:hip", always, {"-O0", "-fwrapv"}},
  };
  return *kTargets;
}

const std::vector<CpuCompiler>& cpu_compilers() {
  static const auto* const kCompilers = new std::vector<CpuCompiler>{
      // The kernel text is vectorised already. The compiler's own vectoriser would take a fifth of the compile time and
      // find nothing.
      {"gcc", "g++", {"-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-pipe"}},
      {"clang", "clang++", {"-fno-vectorize", "-fno-slp-vectorize"}},
  };
  return *kCompilers;
}

bool cpu_runs(std::string_view target) {
  for (const CpuTarget& row : cpu_targets())
    if (row.name == target) return row.runs_here();
  return false;
}

bool program_runs(const std::string& program) {
  return !version_of(program).empty();
}

int64_t last_level_cache_bytes() {
  Device device;
  device.l1_bytes = device.l2_bytes = device.l3_bytes = 0;
  read_caches(allowed_cpus()[0], device);
  const int64_t largest = std::max({device.l1_bytes, device.l2_bytes, device.l3_bytes});
  return largest > 0 ? largest : int64_t{32} << 20;
}

Device describe_cpu() {
  Device device;
  for (const CpuTarget& row : cpu_targets()) {
    if (!row.runs_here()) continue;
    device.target = row.name;
    break;
  }
  const std::vector<int> cpus = allowed_cpus();
  device.name = cpu_name();
  device.threads = static_cast<int>(cpus.size());
  read_caches(cpus[0], device);
  for (const CpuCompiler& row : cpu_compilers()) {
    const std::string version = version_of(row.program);
    if (version.empty()) continue;
    device.compilers.emplace_back(row.name);
    // The linker's version and the digest of the flags are part of the environment, since both change the bytes of
    // objects.
    absl::StrAppend(&device.compiler_versions, device.compiler_versions.empty() ? "" : "; ", row.name, "=", version,
                    ", ", version_of(cpu_linker()), ", build ", build_digest(row));
  }
  device.libraries = usable_library();
  return device;
}

}  // namespace wl
