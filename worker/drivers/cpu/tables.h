// The tables of cpu.h: CPU generations and compilers, most capable first.
#pragma once

#include <string>
#include <vector>

namespace wl {

struct CpuTarget {
  std::string name;     // name of the target, as in Source::target
  bool (*runs_here)();  // returns whether this machine can run code for the target
  // Options of the compiler. Never -march=native: a record is valid for all machines of its target.
  std::vector<std::string> flags;
  int lanes = 4;  // number of f32 elements of a vector
  // Peak number of f32 operations of a core in a clock cycle: one or two vector multiply-adds, depending on the target,
  // each of which counts as two operations per lane.
  int flops_per_clock = 8;
};

struct CpuCompiler {
  std::string name;  // name of the compiler, as in Source::compiler
  std::string program;
  std::vector<std::string> flags;
};

const std::vector<CpuTarget>& cpu_targets();
const std::vector<CpuCompiler>& cpu_compilers();

// The files of a translation unit in its folder: its text, its object file before linking, and its shared object.
inline constexpr const char *kUnitText = "unit.cpp", *kUnitCode = "unit.o", *kUnitObject = "unit.so";

// Returns the program that links objects on this machine, for every compiler: ld, or ld.lld if there is no ld.
const std::string& cpu_linker();
bool is_preferred_linker(const std::string& linker);

// Returns a script for /bin/sh that makes kUnitObject from kUnitText in the working folder. The script consists only of
// constants of the tables.
std::string build_script(const CpuCompiler& compiler, const CpuTarget& target);

// Returns the compiler options that affect the code of a kernel for a target, without those of warnings, language and
// position-independent code.
std::vector<std::string> code_flags(const CpuTarget& target);

// Returns 8 hexadecimal digits that identify the scripts by which this compiler makes objects of CPUs. They are part of
// the environment of a record, since the scripts change the bytes of objects. Scripts of simulated GPUs are not
// included, because a change of those must not have a CPU's records verified again.
std::string build_digest(const CpuCompiler& compiler);

// Whether `program --version` succeeds.
bool program_runs(const std::string& program);

}  // namespace wl
