// The session on a GPU, for CUDA and HIP. Candidates are kernels in loaded modules, arguments lie in device memory
// between red zones, and events around captured graphs take the times. An error that corrupts the context (an illegal
// address, a trap, a failed launch) is returned by its command; the worker then starts a fresh process.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/gpu_kernel.h"
#include "runtime/pool.h"
#include "worker/drivers/session.h"

namespace wl {

class GpuSession final : public Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> open(const std::string& device, Alive alive);

  absl::Status setup(const SetupCommand& command) override;
  absl::Status load(const LoadCommand& command) override;
  absl::StatusOr<CheckAnswer> check(const CheckCommand& command) override;
  absl::StatusOr<PeekAnswer> peek(const PeekCommand& command) override;
  absl::StatusOr<TimeAnswer> time(const TimeCommand& command) override;
  absl::StatusOr<CanaryAnswer> canary() override;
  void describe_address(const void*, char* text, size_t) const override { text[0] = 0; }

 private:
  struct Candidate {
    GpuKernel kernel;
    int64_t grid = 1;
    int threads = 1, passes = 1;
    GpuGraph graph;  // captured graph of `graph_calls` launches of the candidate
    // Number of launches in `graph`, which use the copies of the arguments in turn; -1: the driver cannot capture
    // graphs.
    int64_t graph_calls = 0;
  };
  using Arguments = std::vector<GpuBuffer>;

  absl::Status allocate();
  absl::Status fill();
  absl::Status poison_outputs();
  absl::StatusOr<std::string> damage();
  absl::StatusOr<std::vector<CheckAnswer::Unwritten>> unwritten(Candidate& candidate);
  absl::StatusOr<Candidate*> slot(int64_t number);
  absl::Status launch(const Candidate& candidate, size_t clone);
  absl::Status launches(const Candidate& candidate, int64_t calls);
  absl::Status make_graph(Candidate& candidate, int64_t calls);
  absl::Status run_once(const Candidate& candidate, const std::string& doing);
  // Returns the nanoseconds that `calls` calls take on the device.
  absl::StatusOr<int64_t> timed(Candidate& candidate, int64_t calls);
  absl::Status ramp_clock();
  absl::Status read(const GpuBuffer& buffer, int64_t offset, int64_t bytes, void* to);
  absl::Status compute_canary();

  GpuSession() = default;
  std::unique_ptr<GpuDevice> device_;  // declared first, because the device must outlive the other members
  Alive alive_;
  SetupCommand problem_;
  // Copies of the arguments. There are several if runs are cold, so that no launch finds its arguments in the L2.
  std::vector<Arguments> clones_;
  std::map<int64_t, Candidate> slots_;
  GpuTimer timer_;
  GpuBuffer work_;  // the workspace, which all candidates that need one share
  GpuBuffer canary_;
  GpuKernel canary_kernel_;
  bool ramped_ = false;
};

}  // namespace wl
