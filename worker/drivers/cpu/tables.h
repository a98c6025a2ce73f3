// The tables of cpu.h: CPU generations and compilers, most capable first.
#pragma once

#include <string>
#include <vector>

namespace wl {

struct CpuTarget {
  std::string name;                // name of the target, as in Source::target
  bool (*runs_here)();             // returns whether this machine can run the target
  std::vector<std::string> flags;  // never -march=native, since a record is valid for every machine of its row
  int lanes = 4;                   // f32 elements of a vector
  int flops_per_clock = 8;  // of f32, of a core at most: two units of multiply-adds of vectors, where there are such
};

struct CpuCompiler {
  std::string name;  // name of the compiler, as in Source::compiler
  std::string program;
  std::vector<std::string> flags;
  std::string linker;             // preferred linker; "ld" is used where it is not installed
  std::vector<std::string> link;  // flags that choose it
};

const std::vector<CpuTarget>& cpu_targets();
const std::vector<CpuCompiler>& cpu_compilers();

// The linker that the compiler uses on this machine.
std::string linker_of(const CpuCompiler& compiler);

// Whether `program --version` succeeds.
bool program_runs(const std::string& program);

}  // namespace wl
