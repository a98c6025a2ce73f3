// Calls that stay open, such as watches and long polls. Their callers were checked when they began, but may lose their
// token, certificate or row meanwhile, so each call is checked again every half second.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"

namespace wl {

class OpenCalls {
 public:
  using Check = std::function<absl::Status()>;  // an error: the call must end
  using End = std::function<void(const absl::Status&)>;

  OpenCalls() = default;
  ~OpenCalls();  // No call may be held any more.
  OpenCalls(const OpenCalls&) = delete;
  OpenCalls& operator=(const OpenCalls&) = delete;

  // Holds a call for as long as it lives. Its destructor waits until a running `end` has returned, unless `end` itself
  // destroys it.
  class Held;
  // Runs `check` every half second, on a thread of its own. When it returns an error, calls `end` with it on that
  // thread, once. `check` may still run once after the result is destroyed.
  std::unique_ptr<Held> hold(Check check, End end);

 private:
  struct Entry {
    std::recursive_mutex mutex;  // guards `end`; recursive because `end` may destroy the Held
    Check check;
    End end;  // null: the call is over
  };
  using Entries = std::list<std::shared_ptr<Entry>>;
  void look();

  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  Entries entries_;
  bool stopping_ = false;
  std::thread thread_;  // started by the first hold()
};

class OpenCalls::Held {
 public:
  Held(OpenCalls* of, Entries::iterator at) : of_(of), at_(at) {}
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  OpenCalls* const of_;
  const Entries::iterator at_;
};

}  // namespace wl
