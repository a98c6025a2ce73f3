// The runner's side of a batch: the arguments of one problem, loaded candidates, and what can be done with them; one
// class a kind of device. Runs in the child process only. Knows nothing of expected values. To add a kind: a class, and
// its line in open_session.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/drivers/messages.h"

namespace wl {

class Session {
 public:
  // Called between runs, with the slot that runs next; -1: none.
  using Alive = std::function<void(int64_t slot)>;

  virtual ~Session() = default;
  // What the commands mean is said in messages.h.
  virtual absl::Status setup(const SetupCommand& command) = 0;
  virtual absl::Status load(const LoadCommand& command) = 0;
  virtual absl::StatusOr<CheckAnswer> check(const CheckCommand& command) = 0;
  virtual absl::StatusOr<PeekAnswer> peek(const PeekCommand& command) = 0;
  virtual absl::StatusOr<TimeAnswer> time(const TimeCommand& command) = 0;
  virtual absl::StatusOr<CanaryAnswer> canary() = 0;

  // "in x, 12 bytes past its end of 4096 bytes", or "" when the address is not near an argument. For the handler of
  // fatal signals: allocates nothing.
  virtual void describe_address(const void* address, char* text, size_t size) const = 0;
};

// Of a device: "cpu", "cuda:0", "hip:1". Unavailable: there is no such device here.
absl::StatusOr<std::unique_ptr<Session>> open_session(const std::string& device, Session::Alive alive);

}  // namespace wl
