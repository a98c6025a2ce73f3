// Finds on this machine the library for CPUs that compiler/base/libraries.h names.
#include "compiler/base/libraries.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

// The struct to which dnnl_version() of oneDNN 2 and 3 returns a pointer.
struct OneDnnVersion {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};
constexpr int kMajor = 2;
constexpr unsigned kSequential = 1, kOpenMp = 2;  // values of oneDNN's cpu_runtime: sequential and OpenMP

// Returns oneDNN's version; "" if candidates cannot use the library, and then sets `why` to the reason.
std::string version_of_onednn(void* handle, std::string* why) {
  const auto version = reinterpret_cast<const OneDnnVersion* (*)()>(dlsym(handle, "dnnl_version"));
  const OneDnnVersion* const is = version == nullptr ? nullptr : version();
  if (is == nullptr) {
    *why = "it does not say its version";
  } else if (is->major != kMajor) {
    *why = absl::StrCat("it is of version ", is->major, ".", is->minor, "; kernels call version ", kMajor);
  } else if (is->cpu_runtime != kSequential && is->cpu_runtime != kOpenMp) {
    *why = "it is built for threads other than OpenMP's";
  } else {
    return absl::StrCat(is->major, ".", is->minor, ".", is->patch);
  }
  return "";
}

}  // namespace

std::string usable_library(std::string* why) {
  std::string reason;
  for (const Library& row : kLibraries) {
    if (row.family != "cpu") continue;
    // The library stays loaded, since its OpenMP run-time library does not survive unloading.
    void* const handle = dlopen(row.files[0], RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reason = absl::StrCat(row.files[0], " is not found; ", std::string(row.package), " has it");
      continue;
    }
    const std::string version = version_of_onednn(handle, &reason);
    if (!version.empty()) return absl::StrCat(std::string(row.name), "=", version);
    reason = absl::StrCat(row.files[0], " cannot be used: ", reason);
  }
  if (why != nullptr) *why = reason;
  return "";
}

}  // namespace wl
