#include "worker/check.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "nlohmann/json.hpp"
#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/cpu/tables.h"
#include "worker/drivers/gpu/code.h"

namespace wl {
namespace {

constexpr int kCheckFormat = 1;
constexpr const char* kGpuAdvice =
    "install the driver (NVIDIA: libcuda.so.1; AMD: ROCm), and let this user open /dev/nvidia* or /dev/kfd and "
    "/dev/dri";

Finding runner_finding(const MeasureOptions& options) {
  Finding out{"runner", Readiness::kOk, options.runner, ""};
  if (access(options.runner.c_str(), X_OK) == 0) return out;
  out.readiness = Readiness::kMissing;
  out.todo = "it cannot be run: install warploom-runner beside this program, or name it with --runner";
  return out;
}

Finding sandbox_finding(const MeasureOptions& options) {
  const absl::Status works = sandbox_serves(options.work_dir);
  if (works.ok()) return {"sandbox", Readiness::kOk, "bubblewrap, with user namespaces", ""};
  const std::string why(works.message());
  const bool wanted = options.sandbox != Sandbox::kNone;
  return {"sandbox", wanted ? Readiness::kMissing : Readiness::kWarn, "none",
          wanted ? why : cat("candidates may read and change what this user may: ", why)};
}

std::vector<Finding> compiler_findings(const Device& cpu) {
  std::vector<Finding> out;
  for (const CpuCompiler& row : cpu_compilers()) {
    Finding finding{row.program, Readiness::kOk, "", ""};
    const bool found = std::count(cpu.compilers.begin(), cpu.compilers.end(), row.name) != 0;
    for (const absl::string_view part : absl::StrSplit(cpu.compiler_versions, "; "))
      if (absl::StartsWith(part, row.name + "=")) finding.found = std::string(part.substr(row.name.size() + 1));
    if (!found) {
      // A missing compiler is no problem if the worker has another one. But records are comparable only between
      // machines that have the same compilers.
      finding.readiness = cpu.compilers.empty() ? Readiness::kMissing : Readiness::kOk;
      finding.found = cpu.compilers.empty() ? "not on PATH" : "not on PATH; another compiler is";
      if (cpu.compilers.empty()) finding.todo = "install g++ or clang: candidates for CPUs are compiled by it";
    } else if (!is_preferred_linker(cpu_linker())) {
      finding.readiness = Readiness::kWarn;
      finding.todo = "install binutils: records of machines that have it are of another environment";
    }
    out.push_back(std::move(finding));
  }
  return out;
}

Finding library_finding() {
  std::string why;
  const std::string found = usable_library(&why);
  // A missing library is never a warning, since only jobs that allow libraries need one.
  return {"libraries", Readiness::kOk, found.empty() ? "none: " + why : found, ""};
}

// Warns if every user may read the GPU's performance counters: a worker does not need them.
void check_counters(std::vector<Finding>* findings) {
  std::ifstream file("/proc/driver/nvidia/params");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("RmProfilingAdminOnly:")) continue;
    const bool off = line.find('1') != std::string::npos;
    findings->push_back({"cuda counters", off ? Readiness::kOk : Readiness::kWarn,
                         off ? "for administrators only; a worker needs none" : "open to every user",
                         off ? "" : "option nvidia NVreg_RestrictProfilingToAdminUsers=1: nobody needs them here"});
  }
}

void check_gpu(const Gpus::Gpu& gpu, const MeasureOptions& options, MachineCheck* check) {
  const Device& device = gpu.device;
  const std::string driver = device.detail("driver"), memory = device.detail("memory_mib");
  check->findings.push_back({gpu.name, Readiness::kOk,
                             cat(device.name, ", ", device.target, ", ", memory, " MiB, driver ",
                                 driver.empty() ? device.detail("api") : driver),
                             ""});
  const std::string lacks = gpu_compiler_missing(device.target);
  Finding compiler{gpu.name + " compiler", Readiness::kOk, gpu_compiler_version(device.target), ""};
  if (!lacks.empty()) {
    compiler.readiness = Readiness::kMissing;
    compiler.found = lacks;
    compiler.todo =
        device.target.starts_with("cuda")
            ? "install NVRTC of the driver's CUDA version (libnvrtc), and have it in LD_LIBRARY_PATH or ldconfig"
            : "install clang, or hipRTC of ROCm (libhiprtc), that knows the architecture";
  }
  check->findings.push_back(compiler);
  check->findings.push_back({gpu.name + " libraries", Readiness::kOk,
                             device.libraries.empty() ? "none for --libraries" : device.libraries, ""});
  if (device.detail("mig") == "1")
    check->findings.push_back({gpu.name + " MIG", Readiness::kWarn, "on",
                               "times are those of a part of the GPU: nvidia-smi -mig 0 for those of all of it"});
  if (lacks.empty()) check_rates(device, &gpu, options, check);
}

// Checks whether the wanted devices ("all": the CPU and every GPU) exist, and examines those that do.
void check_devices(const std::vector<std::string>& wanted, const MeasureOptions& options, const Device& cpu,
                   MachineCheck* check) {
  const bool all = std::count(wanted.begin(), wanted.end(), "all") != 0;
  const auto asked = [&](const std::string& name) {
    return all || std::count(wanted.begin(), wanted.end(), name) != 0;
  };
  if (asked("cpu") && !cpu.compilers.empty()) check_rates(cpu, nullptr, options, check);
  const Gpus gpus = find_gpus(options.runner, options.sandbox);
  if (gpus.found.empty())
    check->findings.push_back({"GPUs", Readiness::kOk, cat("none: ", absl::StrJoin(gpus.missing, "; ")), ""});
  if (!gpus.found.empty()) check_counters(&check->findings);
  for (const Gpus::Gpu& gpu : gpus.found) {
    if (asked(gpu.name)) {
      check_gpu(gpu, options, check);
    } else {
      check->findings.push_back({gpu.name, Readiness::kOk, cat(gpu.device.name, ", not asked for (--devices)"), ""});
    }
  }
  for (const std::string& name : wanted) {
    const bool there =
        name == "cpu" || name == "fake" || name == "all" ||
        std::any_of(gpus.found.begin(), gpus.found.end(), [&](const auto& gpu) { return gpu.name == name; });
    if (!there) check->findings.push_back({name, Readiness::kMissing, "no such device here", kGpuAdvice});
  }
}

}  // namespace

bool MachineCheck::ready() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.readiness == Readiness::kMissing; });
}

MachineCheck check_machine(const std::vector<std::string>& devices, const MeasureOptions& options) {
  MachineCheck check;
  const Device cpu = describe_device(options.sandbox);
  check.findings.push_back({"processor", Readiness::kOk, cat(cpu.name, ", ", cpu.target), ""});
  check.findings.push_back(runner_finding(options));
  check.findings.push_back(sandbox_finding(options));
  for (Finding& finding : compiler_findings(cpu)) check.findings.push_back(std::move(finding));
  check.findings.push_back(library_finding());
  check_host(options, &check.findings);
  if (check.ready()) check_devices(devices, options, cpu, &check);
  return check;
}

std::string text_of(const MachineCheck& check) {
  size_t width = 0;
  for (const Finding& finding : check.findings) width = std::max(width, finding.what.size());
  for (const DeviceRate& rate : check.rates) width = std::max(width, rate.device.size() + 1 + rate.what.size());
  std::string out;
  for (const Finding& finding : check.findings) {
    absl::StrAppendFormat(&out, "%-8s %-*s  %s\n", kReadinessNames[static_cast<int>(finding.readiness)],
                          static_cast<int>(width), finding.what, finding.found);
    if (!finding.todo.empty())
      absl::StrAppendFormat(&out, "%-8s %-*s  -> %s\n", "", static_cast<int>(width), "", finding.todo);
  }
  for (const DeviceRate& rate : check.rates) {
    absl::StrAppendFormat(&out, "%-8s %-*s  ", "rate", static_cast<int>(width), cat(rate.device, " ", rate.what));
    append(&out, rate.measured > 0 ? absl::StrFormat("%.4g %s", rate.measured, rate.unit) : "not measured");
    if (rate.nominal > 0) {
      absl::StrAppendFormat(&out, ", of %.4g (%s): %.0f %%", rate.nominal, rate.nominal_by,
                            100 * rate.measured / rate.nominal);
    } else {
      append(&out, "; compare with ", rate.nominal_by);
    }
    out += "\n";
  }
  return out + (check.ready() ? "ready\n" : "not ready\n");
}

std::string json_of(const MachineCheck& check) {
  using Json = nlohmann::ordered_json;
  Json json = {
      {"format", kCheckFormat}, {"ready", check.ready()}, {"findings", Json::array()}, {"rates", Json::array()}};
  for (const Finding& finding : check.findings)
    json["findings"].push_back({{"what", finding.what},
                                {"readiness", kReadinessNames[static_cast<int>(finding.readiness)]},
                                {"found", finding.found},
                                {"todo", finding.todo}});
  for (const DeviceRate& rate : check.rates)
    json["rates"].push_back({{"device", rate.device},
                             {"what", rate.what},
                             {"measured", rate.measured},
                             {"nominal", rate.nominal},
                             {"unit", rate.unit},
                             {"nominal_by", rate.nominal_by}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace wl
