// The runner's side of a batch: the arguments of one problem, loaded candidates, and what can be done with them. Runs
// in the child process only. Knows nothing of expected values.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/runtime.h"
#include "worker/drivers/messages.h"

namespace wl {

class Session {
 public:
  // `alive` is called between runs, with the slot that runs next.
  explicit Session(std::function<void(int64_t slot)> alive) : alive_(std::move(alive)) {}

  absl::Status setup(const SetupCommand& command);
  absl::Status load(const LoadCommand& command);
  absl::StatusOr<CheckAnswer> check(const CheckCommand& command);
  absl::StatusOr<PeekAnswer> peek(const PeekCommand& command) const;
  absl::StatusOr<TimeAnswer> time(const TimeCommand& command);
  absl::StatusOr<CanaryAnswer> canary();

  // "in x, 12 bytes past its end of 4096 bytes", or "" when the address is not near an argument. For the handler of
  // fatal signals: allocates nothing.
  void describe_address(const void* address, char* text, size_t size) const;

 private:
  struct Candidate {
    SharedObject object;
    Launch launch;
  };
  using Arguments = std::vector<Buffer>;

  absl::Status allocate(const SetupCommand& command);
  absl::Status fill();
  // f(thread, begin, end) for the element ranges of every `of_pages`-th 4096-byte page.
  template <typename F>
  void each_page(const BufferSpec& spec, int64_t of_pages, F&& f);
  void poison_outputs(Arguments& arguments, bool other, int64_t of_pages);
  absl::StatusOr<Candidate*> slot(int64_t number);
  void run(const Candidate& candidate, const Arguments& arguments);
  int64_t timed(const Candidate& candidate, int64_t calls);
  void evict();
  int64_t output_bytes() const;
  std::string damage() const;
  std::vector<CheckAnswer::Unwritten> unwritten(const Candidate& candidate, int64_t of_pages);

  std::function<void(int64_t)> alive_;
  std::unique_ptr<Pool> pool_;
  SetupCommand problem_;
  std::vector<Arguments> clones_;  // several when cold: no run finds its data in a cache
  size_t next_clone_ = 0;
  std::map<int64_t, Candidate> slots_;
  std::vector<char> eviction_, canary_;
};

}  // namespace wl
