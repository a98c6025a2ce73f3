// Calls that stay open, such as watches and long polls. Their callers were checked when the calls began, but may lose
// their token, certificate or row later, so each call is checked again every half second.
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
  using Check = std::function<absl::Status()>;  // returns an error if the call must end
  using End = std::function<void(const absl::Status&)>;

  OpenCalls() = default;
  ~OpenCalls();  // When the object is destroyed, no call may be held any more.
  OpenCalls(const OpenCalls&) = delete;
  OpenCalls& operator=(const OpenCalls&) = delete;

  // Holds a call for as long as the object lives. Its destructor waits until a running `end` has returned, unless `end`
  // itself destroys the object.
  class Held;
  // Runs `check` every half second, on a thread of this object. When `check` returns an error, calls `end` with that
  // error on the same thread, once. `check` may still run once after the returned Held is destroyed.
  std::unique_ptr<Held> hold(Check check, End end);

 private:
  struct Entry {
    std::recursive_mutex mutex;  // guards `end`; recursive because `end` may destroy the Held
    Check check;
    End end;  // ends the call; null: the call has ended
  };
  using Entries = std::list<std::shared_ptr<Entry>>;
  void look();

  std::mutex mutex_;  // guards the members declared below
  std::condition_variable changed_;
  Entries entries_;
  bool stopping_ = false;
  std::thread thread_;  // the thread that look() runs on, started by the first hold()
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
