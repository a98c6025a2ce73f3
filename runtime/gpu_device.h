// A GPU, with its context and stream, memory on it, and waits that can be interrupted for the caller's deadline. Used
// in a runner, which may be killed, and in a program that runs a bundle. The worker process itself never talks to a
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

// Whether the name of a device ("cuda:0") or a target ("hip:gfx90a") belongs to a GPU family.
bool is_gpu_name(std::string_view name);

// Return what the driver reports of a device; 0 or "" if it reports nothing. `device` is the driver's number of the
// device. gpu_bus() returns the PCI bus id, "0000:3b:00.0".
int gpu_attribute(const GpuApi& api, int attribute, int device);
std::string gpu_bus(const GpuApi& api, int device);
std::string gpu_target(const GpuApi& api, int device);  // returns the target of a device, e.g. "cuda:sm_90a"

// Returns the targets of all devices of a family ("cuda", "hip"), in the order of their ordinals. FailedPrecondition,
// with the reason: there is no driver or no device.
absl::StatusOr<std::vector<std::string>> gpu_targets(const std::string& family);

// Whether code compiled for `target` runs on a device whose target is `device_target`.
bool gpu_runs(std::string_view target, std::string_view device_target);

class GpuDevice {
 public:
  // Opens a device by its name, which is family and ordinal ("cuda:0"). FailedPrecondition: there is no driver, or no
  // such device.
  static absl::StatusOr<std::unique_ptr<GpuDevice>> open(const std::string& name);

  // Makes the device current on the calling thread. open() also does this for its caller.
  absl::Status use() const;

  GpuDevice() = default;
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;
  ~GpuDevice();

  const GpuApi& api() const { return *api_; }
  void* stream() const { return stream_; }
  int64_t l2_bytes() const { return l2_bytes_; }
  int clock_mhz() const { return clocks_.unit_mhz(); }  // returns the GPU's current clock in MHz; 0: not known

  // Converts the result of an API function to a status. `doing` describes the operation.
  absl::Status check(int result, const std::string& doing) const { return gpu_error(*api_, result, doing); }
  // Waits until all work in the stream is done. Meanwhile calls `tick` every few milliseconds, unless it is empty.
  absl::Status wait(const std::function<void()>& tick, const std::string& doing) const;

 private:
  const GpuApi* api_ = nullptr;
  void *context_ = nullptr, *stream_ = nullptr;
  int64_t l2_bytes_ = 0;
  GpuClocks clocks_;
};

// Device memory that is released on destruction. Its data lies between two red zones of kGpuZone bytes each.
inline constexpr size_t kGpuZone = 4096;
class GpuBuffer {
 public:
  // Allocates device memory. ResourceExhausted: memory is short.
  static absl::StatusOr<GpuBuffer> create(const GpuDevice& device, int64_t bytes);
  // Creates a workspace whose counters (compiler/base/records.h, Source) are zero.
  static absl::StatusOr<GpuBuffer> workspace(const GpuDevice& device, int64_t bytes);
  GpuBuffer() = default;
  GpuBuffer(GpuBuffer&& other) noexcept { *this = std::move(other); }
  GpuBuffer& operator=(GpuBuffer&& other) noexcept;
  ~GpuBuffer();

  char* data() const { return base_ + kGpuZone; }  // returns the device address of the data, 256-byte aligned
  int64_t bytes() const { return bytes_; }
  // Checks the red zones. DataLoss: a red zone was written; the message gives the position of its first changed byte,
  // relative to the data.
  absl::Status check_red_zones(const GpuDevice& device) const;

 private:
  const GpuApi* api_ = nullptr;
  char* base_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace wl
