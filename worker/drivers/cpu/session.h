// The session on the CPU. Candidates are shared objects that run on pinned threads in this process.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/runtime.h"
#include "worker/drivers/session.h"

namespace wl {

class CpuSession final : public Session {
 public:
  explicit CpuSession(Alive alive) : alive_(std::move(alive)) {}

  absl::Status setup(const SetupCommand& command) override;
  absl::Status load(const LoadCommand& command) override;
  absl::Status assemble(const ChainCommand& command) override;
  absl::StatusOr<CheckAnswer> check(const CheckCommand& command) override;
  absl::StatusOr<PeekAnswer> peek(const PeekCommand& command) override;
  absl::StatusOr<TimeAnswer> time(const TimeCommand& command) override;
  absl::StatusOr<CanaryAnswer> canary() override;

  void describe_address(const void* address, char* text, size_t size) const override;

 private:
  struct Step {
    Launch launch;
    std::vector<ChainCommand::Argument> arguments;
  };
  // A loaded kernel, or a chain of loaded kernels.
  struct Candidate {
    SharedObject object;
    Launch launch;
    std::vector<Step> steps;  // the kernels that a chain runs, in order; empty for a single kernel
  };
  using Arguments = std::vector<Buffer>;  // buffers of the problem, followed by the arena if there is one

  absl::Status allocate(const SetupCommand& command);
  absl::Status fill();
  // Calls f(thread, begin, end) for ranges of elements that cover every `of_pages`-th page (4096 bytes) of a buffer.
  // The calls run on all threads of the pool.
  template <typename F>
  void each_page(const BufferSpec& spec, int64_t of_pages, F&& f);
  void poison_outputs(Arguments& arguments, bool other, int64_t of_pages);
  absl::StatusOr<Candidate*> slot(int64_t number);
  void run(const Candidate& candidate, const Arguments& arguments);
  void run_steps(const Candidate& chain, const Arguments& arguments);
  std::string name_of(size_t argument) const;
  int64_t timed(const Candidate& candidate, int64_t calls);
  void evict();
  int64_t output_bytes() const;
  std::string damage() const;
  std::vector<CheckAnswer::Unwritten> unwritten(const Candidate& candidate, int64_t of_pages);

  Alive alive_;
  std::unique_ptr<Pool> pool_;
  SetupCommand problem_;
  // Copies of the arguments. There are several if runs are cold, so that no run finds its arguments in a cache.
  std::vector<Arguments> clones_;
  // `next_clone_`: the copy of the arguments that the next cold run uses. `judged_`: the copy that peek() reads.
  size_t next_clone_ = 0, judged_ = 0;
  std::map<int64_t, Candidate> slots_;
  // the pointers to the arguments of a launch; a member, so that a timed call allocates nothing
  std::vector<void*> pointers_;
  std::vector<char> eviction_, canary_;
  bool filled_ = false;  // whether the inputs hold values generated from the problem's seed
  bool sealed_ = false;  // whether seal() was called; this happens before the first candidate is loaded
};

}  // namespace wl
