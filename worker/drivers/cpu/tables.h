// The rows behind cpu.h: CPU generations and compilers, most capable first.
#pragma once

#include <string>
#include <vector>

namespace wl {

struct CpuTarget {
  std::string name;                // as in Source::target
  bool (*runs_here)();             // whether this machine can run it
  std::vector<std::string> flags;  // never -march=native: a record is for every machine of its row
};

struct CpuCompiler {
  std::string name;  // as in Source::compiler
  std::string program;
  std::vector<std::string> flags;
  std::vector<std::string> link;  // only when that linker is installed
};

const std::vector<CpuTarget>& cpu_targets();
const std::vector<CpuCompiler>& cpu_compilers();

// Whether `program --version` succeeds.
bool program_runs(const std::string& program);

}  // namespace wl
