// Compiled GPU kernels loaded into a device's context, and graphs of launches that are submitted at once. The runner
// measures candidates with them and the client runs bundles with them, so both have the same launch costs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "runtime/gpu_device.h"
#include "runtime/matmul_library.h"

namespace wl {

// A loaded GPU kernel, or the call of a library in place of one, unloaded on destruction. The device must outlive it.
class GpuKernel {
 public:
  // Loads `entry` from `image`, a cubin or code object. Requests dynamic shared memory beyond the default limit where
  // the launch needs it. Internal: the driver refuses the image; the message says why.
  static absl::StatusOr<GpuKernel> load(const GpuDevice& device, const std::string& image, const std::string& entry,
                                        int64_t shared_bytes);
  // `image` is the text of a MatmulCall for a library of compiler/base/libraries.h; where `library` is empty, as above.
  // Errors as MatmulKernel::load has them, with the entry before them. `work_bytes`: of the workspace that launches
  // get; InvalidArgument if the library needs a longer one.
  static absl::StatusOr<GpuKernel> load(const GpuDevice& device, const std::string& image, const std::string& entry,
                                        int64_t shared_bytes, const std::string& library, int64_t work_bytes);
  GpuKernel() = default;
  GpuKernel(GpuKernel&& other) noexcept { *this = std::move(other); }
  GpuKernel& operator=(GpuKernel&& other) noexcept;
  ~GpuKernel();

  const std::string& entry() const { return entry_; }
  // Puts a launch into the device's stream without waiting. `arguments` are the addresses of the values. A grid of 0
  // launches nothing. After the kernel's own they are those of its workspace and of the pass.
  absl::Status launch(int64_t grid, int threads, std::span<void*> arguments) const {
    return launch(grid, threads, arguments, device_->stream());
  }
  // The same into a stream of the device's context.
  absl::Status launch(int64_t grid, int threads, std::span<void*> arguments, void* stream) const;

 private:
  const GpuDevice* device_ = nullptr;
  void *module_ = nullptr, *function_ = nullptr;
  std::string entry_;
  int64_t shared_bytes_ = 0;
  std::unique_ptr<MatmulKernel> matmul_;
};

// Launches that were captured once and are submitted together. The device must outlive it.
class GpuGraph {
 public:
  // Captures what `launches` puts into the device's stream. The graph is empty if the driver cannot capture.
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

// Measures time between two points in a device's stream. The device must outlive it.
class GpuTimer {
 public:
  static absl::StatusOr<GpuTimer> create(const GpuDevice& device);
  GpuTimer() = default;
  GpuTimer(GpuTimer&& other) noexcept { *this = std::move(other); }
  GpuTimer& operator=(GpuTimer&& other) noexcept;
  ~GpuTimer();

  // Returns the nanoseconds that the work which `work` puts into the stream takes. Calls `tick` while it waits.
  absl::StatusOr<int64_t> time(const std::function<absl::Status()>& work, const std::function<void()>& tick,
                               const std::string& doing) const;

 private:
  const GpuDevice* device_ = nullptr;
  void *begin_ = nullptr, *end_ = nullptr;
};

}  // namespace wl
