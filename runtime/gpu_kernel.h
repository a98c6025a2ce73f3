// A compiled GPU kernel loaded into a device's context, and launches of kernels put together into one submission. The
// runner measures candidates with them and the client runs bundles with them, so both see the same launch.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>

#include "runtime/gpu_device.h"

namespace wl {

// Unloaded on destruction. Its device must outlive it.
class GpuKernel {
 public:
  // `image`: a cubin or code object that has `entry`. Larger dynamic shared memory than a launch may have by default is
  // asked for here. Internal: the driver refuses it, and why.
  static absl::StatusOr<GpuKernel> load(const GpuDevice& device, const std::string& image, const std::string& entry,
                                        int64_t shared_bytes);
  GpuKernel() = default;
  GpuKernel(GpuKernel&& other) noexcept { *this = std::move(other); }
  GpuKernel& operator=(GpuKernel&& other) noexcept;
  ~GpuKernel();

  const std::string& entry() const { return entry_; }
  // Into the device's stream, without waiting. `arguments`: addresses of the values. A grid of 0 is no launch.
  absl::Status launch(int64_t grid, int threads, std::span<void*> arguments) const;

 private:
  const GpuDevice* device_ = nullptr;
  void *module_ = nullptr, *function_ = nullptr;
  std::string entry_;
  int64_t shared_bytes_ = 0;
};

// Launches that were captured once and are submitted at once. Its device must outlive it.
class GpuGraph {
 public:
  // Captures what `launches` puts into the device's stream. Empty where the driver captures nothing.
  static absl::StatusOr<GpuGraph> capture(const GpuDevice& device, const std::function<absl::Status()>& launches);
  GpuGraph() = default;
  GpuGraph(GpuGraph&& other) noexcept { *this = std::move(other); }
  GpuGraph& operator=(GpuGraph&& other) noexcept;
  ~GpuGraph();

  bool empty() const { return runnable_ == nullptr; }
  absl::Status launch(const std::string& doing) const;

 private:
  const GpuDevice* device_ = nullptr;
  void* runnable_ = nullptr;
};

// Time between two places in a device's stream, which must outlive it.
class GpuTimer {
 public:
  static absl::StatusOr<GpuTimer> create(const GpuDevice& device);
  GpuTimer() = default;
  GpuTimer(GpuTimer&& other) noexcept { *this = std::move(other); }
  GpuTimer& operator=(GpuTimer&& other) noexcept;
  ~GpuTimer();

  // ns that what `work` puts into the stream takes; calls `tick` while it waits.
  absl::StatusOr<int64_t> time(const std::function<absl::Status()>& work, const std::function<void()>& tick,
                               const std::string& doing) const;

 private:
  const GpuDevice* device_ = nullptr;
  void *begin_ = nullptr, *end_ = nullptr;
};

}  // namespace wl
