// Compiled GPU kernels that are loaded into a device's context, and graphs of launches that are submitted with one
// call. The runner measures candidates with this code and the client runs bundles with it, so launches cost the same in
// both.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "runtime/gpu_device.h"
#include "runtime/matmul_library.h"

namespace wl {

// A loaded GPU kernel, or a library call in place of a kernel. It is unloaded on destruction. The device must outlive
// the kernel.
class GpuKernel {
 public:
  // Loads `entry` from `image`, a cubin or code object. If `shared_bytes` exceeds the default limit, requests that much
  // dynamic shared memory. Internal, with the reason: the driver refuses the image.
  static absl::StatusOr<GpuKernel> load(const GpuDevice& device, const std::string& image, const std::string& entry,
                                        int64_t shared_bytes);
  // If `library` is empty, loads `entry` as the load() without `library` does. Otherwise loads a library call:
  // `library` is a row of compiler/base/libraries.h, `image` is the text of a MatmulCall, and `work_bytes` is the size
  // of the workspace that launches get. InvalidArgument: the library needs a larger workspace. Other errors are those
  // of MatmulKernel::load; their messages begin with the entry.
  static absl::StatusOr<GpuKernel> load(const GpuDevice& device, const std::string& image, const std::string& entry,
                                        int64_t shared_bytes, const std::string& library, int64_t work_bytes);
  GpuKernel() = default;
  GpuKernel(GpuKernel&& other) noexcept { *this = std::move(other); }
  GpuKernel& operator=(GpuKernel&& other) noexcept;
  ~GpuKernel();

  const std::string& entry() const { return entry_; }
  // Enqueues a launch of `grid` blocks of `threads` threads in the device's stream, and does not wait for it.
  // `arguments` has the addresses of the argument values: those of the kernel's own arguments, of the pointer to its
  // workspace, and of the number of the pass. A grid of 0 launches nothing.
  absl::Status launch(int64_t grid, int threads, std::span<void*> arguments) const {
    return launch(grid, threads, arguments, device_->stream());
  }
  // Enqueues the launch in another stream of the device's context.
  absl::Status launch(int64_t grid, int threads, std::span<void*> arguments, void* stream) const;

 private:
  const GpuDevice* device_ = nullptr;
  void *module_ = nullptr, *function_ = nullptr;
  std::string entry_;
  int64_t shared_bytes_ = 0;
  std::unique_ptr<MatmulKernel> matmul_;
};

// A graph of launches, which are captured once and then submitted together. The device must outlive the graph.
class GpuGraph {
 public:
  // Captures the launches that the function `launches` enqueues in the device's stream. The graph is empty if the
  // driver cannot capture them. Errors are those of `launches`.
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

// Measures the time between two points in a device's stream. The device must outlive the timer.
class GpuTimer {
 public:
  static absl::StatusOr<GpuTimer> create(const GpuDevice& device);
  GpuTimer() = default;
  GpuTimer(GpuTimer&& other) noexcept { *this = std::move(other); }
  GpuTimer& operator=(GpuTimer&& other) noexcept;
  ~GpuTimer();

  // Returns the time that the work enqueued by `work` takes on the device, in nanoseconds and at least 1. Waits for
  // that work, and calls `tick` meanwhile.
  absl::StatusOr<int64_t> time(const std::function<absl::Status()>& work, const std::function<void()>& tick,
                               const std::string& doing) const;

 private:
  const GpuDevice* device_ = nullptr;
  void *begin_ = nullptr, *end_ = nullptr;
};

}  // namespace wl
