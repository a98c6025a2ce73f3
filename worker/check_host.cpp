// The part of --check about the machine itself: processors, memory, limits and folders, as the system reports them.
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "runtime/pool.h"
#include "worker/calls.h"
#include "worker/check.h"

namespace wl {
namespace {

constexpr double kGb = 1e9, kLeastMemoryGb = 2, kLeastDiskGb = 1;
constexpr double kMostLoad = 0.5;  // load average, in threads, above which the check warns

// Returns the first line of a file; "" if it cannot be read.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

std::string cpu_file(int cpu, const std::string& name) {
  return line_of(cat("/sys/devices/system/cpu/cpu", cpu, "/", name));
}

// Returns the number of different cores to which the hardware threads `cpus` belong.
size_t cores_of(const std::vector<int>& cpus) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const std::string core = cpu_file(cpu, "topology/core_id");
    cores.insert(core.empty() ? cat("cpu ", cpu) : cat(cpu_file(cpu, "topology/physical_package_id"), " ", core));
  }
  return cores.size();
}

Finding threads_finding() {
  const std::vector<int> cpus = allowed_cpus();
  const size_t cores = cores_of(cpus);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  Finding out{"processors", Readiness::kOk, cat(cpus.size(), " of ", online, " hardware threads on ", cores, " cores"),
              ""};
  if (cores < cpus.size()) {
    out.readiness = Readiness::kWarn;
    out.todo =
        "hardware threads share cores: start the worker on one of each (taskset -c, or nosmt), so that kernels of few "
        "threads are not disturbed";
  }
  return out;
}

Finding governor_finding() {
  std::set<std::string> governors;
  for (const int cpu : allowed_cpus())
    if (const std::string one = cpu_file(cpu, "cpufreq/scaling_governor"); !one.empty()) governors.insert(one);
  Finding out{"clock governor", Readiness::kOk, "", ""};
  for (const std::string& one : governors) append(&out.found, out.found.empty() ? "" : ", ", one);
  if (governors.empty()) out.found = "not shown here, as in most virtual machines";
  if (governors.empty() || (governors.size() == 1 && governors.contains("performance"))) return out;
  out.readiness = Readiness::kWarn;
  out.todo = "cpupower frequency-set -g performance: times vary with the clock";
  return out;
}

// Returns the first line of a control group's file (version 2), for this process's group and for all groups that
// contain it, the innermost first.
std::vector<std::string> group_values(const std::string& file) {
  std::vector<std::string> values;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    for (std::string folder = line.substr(3);; folder = folder.substr(0, folder.rfind('/'))) {
      if (std::string value = line_of(cat("/sys/fs/cgroup", folder, "/", file)); !value.empty())
        values.push_back(std::move(value));
      if (folder.empty() || folder == "/") break;
    }
  }
  return values;
}

Finding quota_finding() {
  const auto threads = static_cast<double>(allowed_cpus().size());
  double quota = threads;
  for (const std::string& value : group_values("cpu.max")) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(value, absl::MaxSplits(' ', 1));
    double most = 0, period = 0;
    if (absl::SimpleAtod(parts.first, &most) && absl::SimpleAtod(parts.second, &period) && period > 0)
      quota = std::min(quota, most / period);
  }
  const std::string old = line_of("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  double most = 0, period = 0;
  if (absl::SimpleAtod(old, &most) && most > 0 &&
      absl::SimpleAtod(line_of("/sys/fs/cgroup/cpu/cpu.cfs_period_us"), &period) && period > 0)
    quota = std::min(quota, most / period);
  if (quota >= threads) return {"processor limit", Readiness::kOk, "none by control groups", ""};
  return {"processor limit", Readiness::kWarn, absl::StrFormat("%.3g of %.3g hardware threads", quota, threads),
          "a process over its quota is stopped in the middle of a kernel: give the worker whole processors (cpuset) "
          "instead"};
}

Finding memory_finding() {
  double available = 0, total = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double kib = 0;
    words >> name >> kib;
    if (name == "MemTotal:") total = kib * 1024;
    if (name == "MemAvailable:") available = kib * 1024;
  }
  for (const std::string& value : group_values("memory.max")) {
    double most = 0;
    if (absl::SimpleAtod(value, &most)) available = std::min(available, most);
  }
  Finding out{"memory", Readiness::kOk, absl::StrFormat("%.1f of %.1f GB", available / kGb, total / kGb), ""};
  if (available < kLeastMemoryGb * kGb) {
    out.readiness = Readiness::kWarn;
    out.todo = cat("large graphs need more than ", kLeastMemoryGb, " GB; raise the limit, or end what takes it");
  }
  return out;
}

// Checks the resource limits of this process, which its compilers inherit.
Finding limits_finding() {
  struct Row {
    __rlimit_resource_t resource;
    const char *name, *flag;
    // `least`: the check warns if the limit is below this number of bytes or items. `unit`: how many of them one unit
    // of the shell's ulimit command is.
    double least, unit;
  };
  constexpr Row kRows[] = {{RLIMIT_AS, "address space", "-v", kLeastMemoryGb * kGb, 1024},
                           {RLIMIT_DATA, "data", "-d", kLeastMemoryGb * kGb, 1024},
                           {RLIMIT_FSIZE, "size of a file", "-f", 1e8, 1024},
                           {RLIMIT_NOFILE, "open files", "-n", 256, 1},
                           {RLIMIT_NPROC, "processes of this user", "-u", 256, 1},
                           {RLIMIT_CPU, "seconds of a process", "-t", 3600, 1}};
  Finding out{"process limits", Readiness::kOk, "", ""};
  for (const Row& row : kRows) {
    rlimit limit{};
    if (getrlimit(row.resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    const auto most = static_cast<double>(limit.rlim_cur);
    if (most >= row.least) continue;
    append(&out.found, out.found.empty() ? "" : ", ", row.name, " ", absl::StrFormat("%.0f", most));
    append(&out.todo, out.todo.empty() ? "compilers and kernels need more: ulimit " : ", ulimit ", row.flag, " ",
           absl::StrFormat("%.0f", row.least / row.unit), " or more");
  }
  if (out.found.empty()) {
    out.found = "none that is low";
  } else {
    out.readiness = Readiness::kWarn;
  }
  return out;
}

Finding load_finding() {
  double load = 0;
  (void)getloadavg(&load, 1);
  Finding out{"other load", Readiness::kOk, absl::StrFormat("%.2f in the last minute", load), ""};
  if (load > kMostLoad) {
    out.readiness = Readiness::kWarn;
    out.todo = "what else runs here makes kernels look slow: measure on a machine that does nothing else";
  }
  return out;
}

Finding folder_finding(const std::string& folder) {
  Finding out{"work folder", Readiness::kOk, folder, ""};
  struct statvfs about = {};
  std::string made = folder + "/warploom-check-XXXXXX";
  const bool writable = mkdtemp(made.data()) != nullptr && rmdir(made.c_str()) == 0;
  if (!writable || statvfs(folder.c_str(), &about) != 0) {
    out.readiness = Readiness::kMissing;
    out.todo = "candidates are compiled there: make it writable, or name another by TMPDIR or a worker's --work-dir";
    return out;
  }
  const double free = static_cast<double>(about.f_bavail) * static_cast<double>(about.f_frsize);
  append(&out.found, absl::StrFormat(", %.1f GB free", free / kGb));
  if ((about.f_flag & ST_NOEXEC) != 0) {
    out.readiness = Readiness::kMissing;
    out.todo =
        "it is mounted noexec, so no candidate can be loaded from it: name another by TMPDIR or a worker's --work-dir";
  } else if (free < kLeastDiskGb * kGb) {
    out.readiness = Readiness::kWarn;
    out.todo = cat("candidates need up to ", kLeastDiskGb,
                   " GB: make room, or name another by TMPDIR or a worker's --work-dir");
  }
  return out;
}

Finding identity_finding() {
  if (!own_machine().empty()) return {"identity", Readiness::kOk, "known by its boot id", ""};
  return {
      "identity", Readiness::kWarn, "the kernel does not tell its boot id",
      "what is measured here is confirmed by no other worker: mount /proc, or have a row `machine NAME CALLER` in the "
      "file of the coordinator's --callers"};
}

}  // namespace

void check_host(const MeasureOptions& options, std::vector<Finding>* findings) {
  for (Finding& finding :
       std::vector<Finding>{threads_finding(), quota_finding(), governor_finding(), load_finding(), memory_finding(),
                            limits_finding(), folder_finding(options.work_dir), identity_finding()})
    findings->push_back(std::move(finding));
}

std::string remedies(const MeasureOptions& options) {
  std::string out;
  for (const Finding& finding : {folder_finding(options.work_dir), limits_finding(), memory_finding()})
    if (!finding.todo.empty()) append(&out, "; ", finding.what, " ", finding.found, ": ", finding.todo);
  return out;
}

}  // namespace wl
