// The runner's side of a batch: the arguments of one problem, the loaded candidates, and the operations on them. There
// is one class for each kind of device. Used in the child process only; a session knows no expected values. A new kind
// of device needs a class and its line in open_session().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/drivers/messages.h"

namespace wl {

class Session {
 public:
  // Called between runs with the slot (candidate) that runs next; -1: none.
  using Alive = std::function<void(int64_t slot)>;

  virtual ~Session() = default;
  // messages.h documents the commands and their answers.
  virtual absl::Status setup(const SetupCommand& command) = 0;
  virtual absl::Status load(const LoadCommand& command) = 0;
  // Makes a chain of loaded candidates. Unimplemented: this kind of device runs no chains.
  virtual absl::Status assemble(const ChainCommand&) {
    return absl::UnimplementedError("this device runs no chains of kernels");
  }
  virtual absl::StatusOr<CheckAnswer> check(const CheckCommand& command) = 0;
  virtual absl::StatusOr<PeekAnswer> peek(const PeekCommand& command) = 0;
  virtual absl::StatusOr<TimeAnswer> time(const TimeCommand& command) = 0;
  virtual absl::StatusOr<CanaryAnswer> canary() = 0;

  // Writes a text such as " at byte 4100 of argument 2 (x, output, 4096 bytes)", or "" if the address is not near an
  // argument. Called by the handler of fatal signals, so it allocates nothing.
  virtual void describe_address(const void* address, char* text, size_t size) const = 0;
};

// Opens a session on a device: "cpu", "cuda:0", "hip:1". FailedPrecondition: this machine has no such device or no
// driver.
absl::StatusOr<std::unique_ptr<Session>> open_session(const std::string& device, Session::Alive alive);

}  // namespace wl
