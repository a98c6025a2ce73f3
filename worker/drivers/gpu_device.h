// One GPU as a device: its context and stream, its description, and waiting for it without wedging the caller's
// deadline. In a runner only: the worker itself never talks to a driver.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/drivers/gpu_api.h"
#include "worker/drivers/gpu_clocks.h"
#include "worker/drivers/messages.h"

namespace wl {

// Whether a device's name ("cuda:0") or a target's ("hip:gfx90a") is of a GPU family.
bool is_gpu_name(std::string_view name);

// Every GPU that the drivers of this machine show, and for each family without one the reason.
DescribeAnswer describe_gpus();

class GpuDevice {
 public:
  // `name`: family and ordinal. FailedPrecondition: no driver, or no such device.
  static absl::StatusOr<std::unique_ptr<GpuDevice>> open(const std::string& name);

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
  void* stream_ = nullptr;
  int64_t l2_bytes_ = 0;
  GpuClocks clocks_;
};

// Device memory, released on destruction. `bytes` between two red zones of kGpuZone bytes each.
inline constexpr size_t kGpuZone = 4096;
class GpuBuffer {
 public:
  // ResourceExhausted when memory is short.
  static absl::StatusOr<GpuBuffer> create(const GpuDevice& device, int64_t bytes);
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
