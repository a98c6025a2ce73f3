// `warploom-worker --check`: what a worker of this machine has and lacks, and how fast its devices are beside what they
// are said to be.
#pragma once

#include <string>
#include <vector>

#include "worker/measure.h"

namespace wl {

// kMissing: a worker cannot work without it. kWarn: it works, but what it measures may vary or be slow.
enum class Readiness : uint8_t { kOk, kWarn, kMissing };
inline constexpr const char* kReadinessNames[] = {"ok", "warn", "missing"};

struct Finding {
  std::string what;  // a word or two: "compiler", "cuda:0 clock"
  Readiness readiness = Readiness::kOk;
  std::string found;  // what there is
  std::string todo;   // what to do about it; empty where it is ok
};

// A rate of a device, by a kernel that was compiled, checked and timed as a candidate is.
struct DeviceRate {
  std::string device, what;      // "cpu" or "cuda:0"; "copy" or "multiply-adds"
  double measured = 0;           // in units of `unit`; 0: it could not be measured
  double nominal = 0;            // what the device is said to do at most; 0: not known here
  std::string unit, nominal_by;  // "GB/s" or "GFLOP/s"; where the nominal rate is from
};

struct MachineCheck {
  std::vector<Finding> findings;
  std::vector<DeviceRate> rates;
  bool ready() const;  // nothing is missing
};

// Checks this machine for a worker that offers these devices ("cpu", "cuda:0", ...; "all"). Compiles and runs kernels,
// which takes some seconds.
MachineCheck check_machine(const std::vector<std::string>& devices, const MeasureOptions& options);

std::string text_of(const MachineCheck& check);  // at most 100 columns where names are short
std::string json_of(const MachineCheck& check);  // documented in deploy/README.md

// The parts of a check (for its files).
// CPU, memory, governor, hardware threads, limits of control groups and of this process, load, and the folder for
// candidates.
void check_host(const MeasureOptions& options, std::vector<Finding>* findings);
// What keeps kernels from being compiled and loaded here, and what to do about it: "; WHAT FOUND: TODO" of the work
// folder, the limits of this process and memory, each where something is wrong with it.
std::string remedies(const MeasureOptions& options);
// Times a copy and multiply-adds on a device: the CPU where `gpu` is null. One finding says whether they were right.
void check_rates(const Device& device, const Gpus::Gpu* gpu, const MeasureOptions& options, MachineCheck* check);

}  // namespace wl
