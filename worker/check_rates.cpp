// The part of --check that times a copy and multiply-adds by probes (worker/probes.h). The probes also show whether
// kernels can be compiled, loaded and run on this machine as candidates are.
#include <algorithm>
#include <fstream>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "runtime/pool.h"
#include "worker/check.h"
#include "worker/probes.h"

namespace wl {
namespace {

constexpr double kSlow = 0.5;  // a measured rate below this fraction of the nominal rate is reported as slow

// Returns the highest clock in GHz of the first CPU that this process may use (0: not known), and a remark about this
// number.
std::pair<double, std::string> cpu_clock() {
  double khz = 0;
  std::ifstream highest(cat("/sys/devices/system/cpu/cpu", allowed_cpus()[0], "/cpufreq/cpuinfo_max_freq"));
  if (highest >> khz) return {khz / 1e6, ""};
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::pair<std::string, std::string> field = absl::StrSplit(line, absl::MaxSplits(':', 1));
    double mhz = 0;
    if (absl::StripAsciiWhitespace(field.first) == "cpu MHz" && absl::SimpleAtod(field.second, &mhz))
      return {mhz / 1e3, ", its boost not counted"};
  }
  return {0, ""};
}

// Returns the f32 multiply-adds that a multiprocessor (SM or CU) completes in a clock cycle; 0: not known.
int lanes_of_unit(std::string_view target) {
#define WL_GPU(name, family, lanes, ...) \
  if (target == (name)) return lanes;
#include "compiler/base/gpus.def"
#undef WL_GPU
  return 0;
}

// Makes a finding from the clock rates of a GPU that were read after each sample. It reports whether they differ.
Finding clock_finding(const std::string& device, const std::vector<int64_t>& clocks_mhz) {
  const auto [least, most] = std::minmax_element(clocks_mhz.begin(), clocks_mhz.end());
  Finding out{device + " clock", Readiness::kOk, "", ""};
  if (*least == *most) {
    out.found = cat("held ", *most, " MHz");
    return out;
  }
  out.readiness = Readiness::kWarn;
  out.found = cat("between ", *least, " and ", *most, " MHz under load");
  out.todo = device.starts_with("cuda") ? "lock it: nvidia-smi -pm 1, then nvidia-smi -lgc MHZ below the lower figure"
                                        : "lock it: rocm-smi --setperfdeterminism MHZ below the lower figure";
  return out;
}

}  // namespace

void check_rates(const Device& device, const Gpus::Gpu* gpu, const MeasureOptions& options, MachineCheck* check) {
  const std::string name = gpu != nullptr ? gpu->name : "cpu";
  DeviceRate copy{name, "copy", 0, 0, "GB/s", "the data sheet of its memory: channels x MT/s x 8 bytes"};
  DeviceRate adds{name, "multiply-adds", 0, 0, "GFLOP/s", ""};
  if (gpu == nullptr) {
    const auto [ghz, known] = cpu_clock();
    adds.nominal = cpu_row(device).flops_per_clock * device.threads * ghz;
    adds.nominal_by = absl::StrFormat("%d threads at %.2f GHz%s", device.threads, ghz, known);
  } else {
    const auto clock =
        static_cast<double>(std::max(device_number(device, "clock_max_mhz"), device_number(device, "clock_rated_mhz")));
    const auto memory_clock = static_cast<double>(device_number(device, "memory_rated_mhz"));
    copy.nominal = 2 * memory_clock * static_cast<double>(device_number(device, "bus_bits")) / 8e3;
    copy.nominal_by = absl::StrFormat("2 x %.0f MHz x %s bits", memory_clock, device.detail("bus_bits"));
    adds.nominal = 2e-3 * lanes_of_unit(device.target) * device.threads * clock;
    adds.nominal_by = absl::StrFormat("%d units at %.0f MHz", device.threads, clock);
  }
  Finding works{name + " kernels", Readiness::kOk, "compile, run and are right", ""};
  std::vector<int64_t> clocks;
  for (DeviceRate* rate : {&copy, &adds}) {
    const bool copies = rate == &copy;
    const Probe probe = copies ? copy_probe(device, /*small=*/false) : multiply_add_probe(device);
    const absl::StatusOr<Trial> trial = measured(probe, gpu, options);
    if (trial.ok() && trial->outcome == Outcome::kCorrect) {
      const double ns = undisturbed_ns(trial->samples_ns);
      if (ns > 0) rate->measured = probe.amount / ns;
      clocks.insert(clocks.end(), trial->clocks_mhz.begin(), trial->clocks_mhz.end());
    } else {
      works.readiness = Readiness::kMissing;
      works.found = trial.ok() ? cat(kOutcomeNames[static_cast<int>(trial->outcome)], ": ", trial->message)
                               : std::string(trial.status().message());
      works.todo = cat("the ", rate->what, " kernel failed: candidates would, too");
    }
    if (rate->measured > 0 && rate->measured < kSlow * rate->nominal && works.readiness == Readiness::kOk) {
      works.readiness = Readiness::kWarn;
      works.todo = "less than half of what it should do: look for other load, power limits and throttling";
    }
    check->rates.push_back(*rate);
  }
  check->findings.push_back(std::move(works));
  if (!clocks.empty()) check->findings.push_back(clock_finding(name, clocks));
}

}  // namespace wl
