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
};

const std::vector<CpuTarget>& cpu_targets();
const std::vector<CpuCompiler>& cpu_compilers();

// The files of a unit, in its folder: its text, its code before it is linked, and its object.
inline constexpr const char *kUnitText = "unit.cpp", *kUnitCode = "unit.o", *kUnitObject = "unit.so";

// The program that links objects on this machine, for every compiler: ld, or ld.lld where there is no ld.
const std::string& cpu_linker();
bool is_preferred_linker(const std::string& linker);

// The script of /bin/sh that makes kUnitObject of kUnitText in the working folder. It consists of constants alone.
std::string build_script(const CpuCompiler& compiler, const CpuTarget& target);

// The options that decide what code any compiler makes of a kernel for a target.
std::vector<std::string> code_flags(const CpuTarget& target);

// Names how objects are made of sources by this compiler: 8 digits that differ where a script differs. They are part of
// the environment, since they change the bytes of an object.
std::string build_digest(const CpuCompiler& compiler);

// Whether `program --version` succeeds.
bool program_runs(const std::string& program);

}  // namespace wl
