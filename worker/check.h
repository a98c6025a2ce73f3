// `warploom-worker --check`: says what this machine has and lacks as a worker, and compares the measured rates of its
// devices with the nominal ones.
#pragma once

#include <string>
#include <vector>

#include "worker/measure.h"

namespace wl {

// The result of checking one requirement of a worker. kMissing: the worker cannot work here. kWarn: the worker works,
// but its times may vary or be too long.
enum class Readiness : uint8_t { kOk, kWarn, kMissing };
inline constexpr const char* kReadinessNames[] = {"ok", "warn", "missing"};

struct Finding {
  std::string what;  // subject of the finding, in a word or two: "compiler", "cuda:0 clock"
  Readiness readiness = Readiness::kOk;
  std::string found;  // what the check found, as text
  std::string todo;   // what the user should do about the finding; empty: nothing
};

// A rate of a device, measured by a kernel that is compiled, checked and timed like a candidate.
struct DeviceRate {
  // The device, such as "cpu" or "cuda:0", and what the rate counts: "copy" or "multiply-adds".
  std::string device, what;
  double measured = 0;           // the device's measured rate in `unit`; 0: it could not be measured
  double nominal = 0;            // the device's nominal peak rate in `unit`; 0: this program does not know it
  std::string unit, nominal_by;  // the unit of both rates, "GB/s" or "GFLOP/s", and the source of the nominal rate
};

struct MachineCheck {
  std::vector<Finding> findings;
  std::vector<DeviceRate> rates;
  bool ready() const;  // returns whether the machine can serve as a worker, that is, whether no finding is kMissing
};

// Checks this machine for a worker that offers these devices ("cpu", "cuda:0", ...; "all"). Compiles and runs kernels,
// which takes some seconds.
MachineCheck check_machine(const std::vector<std::string>& devices, const MeasureOptions& options);

std::string text_of(const MachineCheck& check);  // returns text for people: a line for each finding and rate
std::string json_of(const MachineCheck& check);  // returns the check as JSON, which deploy/README.md documents

// The parts of a check, called by check_machine(). check_host: processors, memory, clock governor, limits, load, work
// folder and identity of the machine.
void check_host(const MeasureOptions& options, std::vector<Finding>* findings);
// Returns what may keep kernels from being compiled and loaded here, and what to do about it. For each problem with the
// work folder, the process limits or the memory, the text has "; WHAT FOUND: TODO".
std::string remedies(const MeasureOptions& options);
// Times a copy and multiply-adds on a device: the CPU if `gpu` is null. Adds the rates, a finding that says whether the
// kernels worked, and one about a GPU's clock.
void check_rates(const Device& device, const Gpus::Gpu* gpu, const MeasureOptions& options, MachineCheck* check);

}  // namespace wl
