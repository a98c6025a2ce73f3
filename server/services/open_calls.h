// Calls that stay open, such as watches and long polls: who makes one was let in when it began, and may lose its token,
// its certificate or its row while it lasts. So it is looked again now and then whether the call may go on.
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
  using Check = std::function<absl::Status()>;  // whether the call may go on
  using End = std::function<void(const absl::Status&)>;

  OpenCalls() = default;
  ~OpenCalls();  // No call is held any more.
  OpenCalls(const OpenCalls&) = delete;
  OpenCalls& operator=(const OpenCalls&) = delete;

  // A call, for as long as this lives. Its destructor waits for `end`, unless `end` itself destroys it.
  class Held;
  // `check` is asked at most half a second after its answer changed. `end` is called once, when it is an error.
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
  std::thread thread_;  // begun with the first call
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
