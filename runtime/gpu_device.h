// One GPU as a device: its context and stream, memory on it, and waiting for it without wedging the caller's deadline.
// In a runner, which may be shot, or in the process of whoever runs a bundle; the worker itself never talks to a
// driver.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gpu_api.h"
#include "runtime/gpu_clocks.h"

namespace wl {

// Whether a device's name ("cuda:0") or a target's ("hip:gfx90a") is of a GPU family.
bool is_gpu_name(std::string_view name);

// What the driver says of a device, by its number; 0 or "" where it says nothing. The bus is PCI's, "0000:3b:00.0".
int gpu_attribute(const GpuApi& api, int attribute, int device);
std::string gpu_bus(const GpuApi& api, int device);
std::string gpu_target(const GpuApi& api, int device);  // "cuda:sm_90a"

// Targets of a family's devices ("cuda", "hip"), by ordinal. FailedPrecondition: no driver or no device, and why.
absl::StatusOr<std::vector<std::string>> gpu_targets(const std::string& family);

// Whether code made for `target` runs on a device of `device_target`.
bool gpu_runs(std::string_view target, std::string_view device_target);

class GpuDevice {
 public:
  // `name`: family and ordinal. FailedPrecondition: no driver, or no such device.
  static absl::StatusOr<std::unique_ptr<GpuDevice>> open(const std::string& name);

  // Makes it the calling thread's device; open() has done so for its caller.
  absl::Status use() const;

  GpuDevice() = default;
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;
  ~GpuDevice();

  const GpuApi& api() const { return *api_; }
  void* stream() const { return stream_; }
  int64_t l2_bytes() const { return l2_bytes_; }
  int clock_mhz() const { return clocks_.unit_mhz(); }  // now; 0: not known

  // `result` of an API function as a status that says what was being done.
  absl::Status check(int result, const std::string& doing) const { return gpu_error(*api_, result, doing); }
  // Until everything in the stream is done, calling `tick` meanwhile.
  absl::Status wait(const std::function<void()>& tick, const std::string& doing) const;

 private:
  const GpuApi* api_ = nullptr;
  void *context_ = nullptr, *stream_ = nullptr;
  int64_t l2_bytes_ = 0;
  GpuClocks clocks_;
};

// Device memory, released on destruction. `bytes` between two red zones of kGpuZone bytes each.
inline constexpr size_t kGpuZone = 4096;
class GpuBuffer {
 public:
  // ResourceExhausted when memory is short.
  static absl::StatusOr<GpuBuffer> create(const GpuDevice& device, int64_t bytes);
  // What kernels count in (compiler/base/records.h, Source) is zero.
  static absl::StatusOr<GpuBuffer> workspace(const GpuDevice& device, int64_t bytes);
  GpuBuffer() = default;
  GpuBuffer(GpuBuffer&& other) noexcept { *this = std::move(other); }
  GpuBuffer& operator=(GpuBuffer&& other) noexcept;
  ~GpuBuffer();

  char* data() const { return base_ + kGpuZone; }  // on the device; 256-byte aligned
  int64_t bytes() const { return bytes_; }
  // DataLoss naming the first changed byte of the red zones, relative to the data.
  absl::Status check_red_zones(const GpuDevice& device) const;

 private:
  const GpuApi* api_ = nullptr;
  char* base_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace wl
