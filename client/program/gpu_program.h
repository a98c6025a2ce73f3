// A Program of GPU kernels on a device: kernels loaded into the driver and all buffers in device memory, intermediates
// in one arena. The Executor keeps the host's copies of the buffers and decides when they are transferred. Programs of
// one model share the device and the weights.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/program/program.h"
#include "runtime/gpu_kernel.h"

namespace wl {

// Whether the program's kernels need a GPU driver (sim:cuda and sim:hip run on CPUs).
bool is_for_gpu(const Program& program);

struct GpuShared {
  std::string name;  // name of the GPU, e.g. "cuda:0"
  std::shared_ptr<GpuDevice> device;
  std::map<std::string, std::shared_ptr<GpuBuffer>> weights;  // for each name of a weight, its device memory
};

// Any thread may call the functions, but only one at a time. The Program must outlive this object.
class GpuProgram {
 public:
  // Loads the kernels and allocates device memory. `device`: "cuda:1", or "": the first that runs the kernels.
  // `shared`: the device and weights of the model, to which this function adds what is missing; may be null. If
  // `shared` has a device, that one is used, whatever `device` says. Unavailable: there is no such device, or none for
  // these kernels; the message lists the devices. ResourceExhausted: memory is short.
  static absl::StatusOr<std::unique_ptr<GpuProgram>> load(const Program& program, const std::string& device,
                                                          GpuShared* shared);

  const std::string& device() const { return shared_.name; }
  // Copy all bytes of a buffer from host memory (write) or to it (read), and wait.
  absl::Status write(int buffer, const void* from) const;
  absl::Status read(int buffer, void* to) const;
  // Makes later launches use the caller's device memory for a buffer; null: the program's own memory is used again.
  void bind(int buffer, void* memory);
  bool is_bound(int buffer) const { return addresses_[buffer] != own_[buffer]; }
  // Enqueues all steps in a stream of the device's context without waiting.
  absl::Status launch_on(void* stream) const;
  // Enqueues a copy of a buffer to device memory in a stream; without a stream, waits until the copy is complete.
  absl::Status copy(int buffer, void* to, std::optional<void*> stream) const;
  // Launch all steps, or one step, and wait for the end.
  absl::Status run();
  absl::Status run_step(int step) const;
  // Returns the ns of each of `repeats` runs by the device's clock, after two untimed ones.
  absl::StatusOr<std::vector<int64_t>> time(int repeats);
  // Returns the ns of one launch of a step by the device's clock.
  absl::StatusOr<int64_t> time_step(int step);

 private:
  GpuProgram() = default;
  void* stream() const { return shared_.device->stream(); }
  absl::Status allocate();
  absl::Status launch(int step, void* stream) const;
  absl::Status launch_all_on(void* stream) const;
  absl::Status launch_all();  // launches all steps in this program's stream, by the captured graph if there is one

  const Program* program_ = nullptr;
  GpuShared shared_;
  std::vector<std::shared_ptr<GpuBuffer>> buffers_;  // owners of the device memory that addresses_ points to
  // For each index of a buffer, the device address of the program's own memory for it.
  std::vector<void*> own_;
  // For each index of a buffer, the address that kernels get: the program's own or bound memory.
  std::vector<void*> addresses_;
  GpuBuffer work_;  // the workspace, which kernels with several passes share
  std::vector<GpuKernel> kernels_;
  GpuTimer timer_;
  GpuGraph graph_;  // the launches of all steps, captured at the second run of the program
  int runs_ = 0;
};

}  // namespace wl
