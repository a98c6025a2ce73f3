#include "worker/drivers/gpu/describe.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/gpu_clocks.h"
#include "runtime/gpu_device.h"
#include "runtime/matmul_library.h"
#include "worker/drivers/gpu/code.h"

namespace wl {
namespace {

Device describe(const GpuApi& api, int device) {
  Device out;
  out.target = gpu_target(api, device);
  char name[256] = "";
  (void)api.device_name(name, sizeof name, device);
  out.name = name;
  out.threads = std::max(1, gpu_attribute(api, api.units, device));
  out.l1_bytes = gpu_attribute(api, api.unit_shared, device);
  out.l2_bytes = gpu_attribute(api, api.l2_bytes, device);
  out.l3_bytes = 0;
  const std::string compiler = gpu_compiler_version(out.target);
  if (!compiler.empty()) out.compilers.emplace_back(compiler.substr(0, compiler.find('=')));
  int driver = 0;
  (void)api.driver_version(&driver);
  // A driver of another major version may change what code does, so the major version is part of the environment. The
  // full version is only recorded in the details.
  const int major = api.family == "cuda" ? driver / 1000 : driver / 10'000'000;
  out.compiler_versions = absl::StrCat(compiler, compiler.empty() ? "" : "; ", api.family, "=", major);
  size_t memory = 0;
  (void)api.device_memory(&memory, device);
  out.details = absl::StrCat("memory_mib=", memory >> 20, " api=", driver,
                             " clock_rated_mhz=", gpu_attribute(api, api.clock_khz, device) / 1000,
                             " memory_rated_mhz=", gpu_attribute(api, api.memory_clock_khz, device) / 1000,
                             " bus_bits=", gpu_attribute(api, api.bus_bits, device));
  if (const std::string more = GpuClocks::of(api.family, gpu_bus(api, device)).details(); !more.empty())
    absl::StrAppend(&out.details, " ", more);
  out.libraries = matmul_library_for(api.family);
  return out;
}

}  // namespace

DescribeAnswer describe_gpus() {
  DescribeAnswer answer;
  for (const char* family : {"cuda", "hip"}) {
    const absl::StatusOr<const GpuApi*> api = gpu_api(family);
    if (!api.ok()) {
      answer.missing.emplace_back(api.status().message());
      continue;
    }
    int count = 0, device = 0;
    if ((*api)->device_count(&count) != 0 || count == 0) {
      answer.missing.push_back(absl::StrCat(family, ": the driver is installed but shows no device"));
      continue;
    }
    for (int ordinal = 0; ordinal < count; ++ordinal)
      if ((*api)->device_get(&device, ordinal) == 0)
        answer.found.push_back({absl::StrCat(family, ":", ordinal), describe(**api, device)});
  }
  return answer;
}

}  // namespace wl
