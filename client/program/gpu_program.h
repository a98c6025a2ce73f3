// A Program of GPU kernels on a device: its kernels in the driver's hands and all its buffers in device memory, the
// intermediates in one arena. The Executor keeps the host's side of the buffers and says what moves when. Several of
// one model share device and weights.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/program/program.h"
#include "runtime/gpu_kernel.h"

namespace wl {

// Whether its kernels run on a GPU's driver (sim:cuda and sim:hip run on CPUs).
bool is_for_gpu(const Program& program);

struct GpuShared {
  std::string name;  // of the device, "cuda:0"
  std::shared_ptr<GpuDevice> device;
  std::map<std::string, std::shared_ptr<GpuBuffer>> weights;  // by name
};

// Any thread, one at a time. Its Program must outlive it.
class GpuProgram {
 public:
  // `device`: "cuda:1", or "": the first whose driver runs the kernels. Errors: Unavailable when there is no
  // such device, or none for these kernels, with what there is; ResourceExhausted. `shared` may be null.
  static absl::StatusOr<std::unique_ptr<GpuProgram>> load(const Program& program, const std::string& device,
                                                          GpuShared* shared);

  const std::string& device() const { return shared_.name; }
  // All bytes of a buffer, to and from the host.
  absl::Status write(int buffer, const void* from) const;
  absl::Status read(int buffer, void* to) const;
  // Launches all steps, or one, and waits.
  absl::Status run();
  absl::Status run_step(int step) const;
  // ns of each of `repeats` runs, by the device's clock, after two that are not timed.
  absl::StatusOr<std::vector<int64_t>> time(int repeats);
  // ns of one launch of a step, by the device's clock.
  absl::StatusOr<int64_t> time_step(int step);

 private:
  GpuProgram() = default;
  absl::Status allocate();
  absl::Status launch(int step) const;
  absl::Status launch_all();

  const Program* program_ = nullptr;
  GpuShared shared_;
  std::vector<std::shared_ptr<GpuBuffer>> buffers_;  // keeps what addresses_ point to
  std::vector<char*> addresses_;                     // of every buffer, on the device
  GpuBuffer work_;                                   // the workspace of kernels of several passes
  std::vector<GpuKernel> kernels_;
  GpuTimer timer_;
  GpuGraph graph_;  // of all steps, from the second run on
  int runs_ = 0;
};

}  // namespace wl
