// The upstream of a coordinator: another one, which it asks for what it lacks, and to which it offers what was made
// here. What the upstream has is stored here, and served from here afterwards, whether the upstream is there or not.
//
// Nobody waits for the upstream with a thread of the coordinator's: whoever asks is called back, at the latest when his
// patience is over. The calls themselves block threads of this class, one call for a question however many ask it.
// While the upstream cannot be reached it is not asked at all, but for a call now and then that finds out whether it is
// back. See docs/design/service.md#upstream-coordinators.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/status.h"
#include "proto/backoff.h"
#include "proto/dial.h"
#include "proto/trust/signing.h"
#include "server/store/store.h"
#include "server/upstream/misses.h"
#include "server/upstream/via.h"

namespace wl {

class UpstreamCalls;

// Which of the records that everybody here may see are offered.
enum class OfferRule { kNone, kConfirmed, kAll };

struct UpstreamOptions {
  std::string address;  // "HOST:PORT" or "unix:PATH"; empty: there is no upstream
  DialOptions dialled;
  OfferRule offer = OfferRule::kNone;
  double check_s = 600;  // how often it is looked whether the upstream still serves what was fetched from it
};

// What it needs of the coordinator. Functions are called on any thread.
struct UpstreamParts {
  Store* store = nullptr;            // must outlive it
  std::vector<Signer> signers = {};  // one of them must have signed every record; empty: anybody, or nobody
  std::function<std::string(const KernelRecord&)> why_not = [](const auto&) { return ""; };  // why one is refused
  std::function<void(const std::string& key)> changed = [](const auto&) {};  // the records of a key have changed
  // For those who count: a question, or an offer, and how it ended.
  std::function<void(const char*outcome)> asked = [](const char*) {}, offered = [](const char*) {};
};

// A record by its key (environment empty: any) or by its digest, an object by its digest, or all devices.
struct Question {
  enum Kind { kKey, kDigest, kObject, kDevices } kind = kKey;
  std::string name = {}, environment = {};
  std::string text() const;
};

struct Asked {
  bool found = false;   // something was, and is stored now
  std::string problem;  // why something could not be asked for, or was refused; empty: the upstream has answered
};

class Upstream {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const Asked&)>;

  // InvalidArgument, FailedPrecondition: it cannot be called like that.
  static absl::StatusOr<std::unique_ptr<Upstream>> open(const UpstreamOptions& options, UpstreamParts parts);
  ~Upstream();  // stop()
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  // Never blocks. Calls `done` once, on another thread or before it returns, at the latest after `patience`. What comes
  // later is stored for whoever asks next. `via`: the way of the question so far.
  void ask(const std::vector<Question>& questions, const Via& via, std::chrono::milliseconds patience, Done done);
  // Why nothing is asked for a question that has come this way; "": it is.
  std::string why_not_ask(const Via& via) { return wl::why_not_ask(id_, via); }
  void wake();  // A record was promoted, and may be to be offered.
  void stop();  // Ends all calls; everybody who waits is called back before this returns, and nobody later.

  const std::string& address() const { return options_.address; }
  std::string problem();  // why it cannot be asked at present; "": it can

 private:
  struct Wait {
    size_t left = 0;  // questions that are still open
    bool over = false;
    Asked asked;
    Done done;
    std::multimap<Clock::time_point, std::shared_ptr<Wait>>::iterator at;  // in waits_
  };
  using WaitPtr = std::shared_ptr<Wait>;
  // One question that is asked, and who waits for it.
  struct Flight {
    Question question;
    Via via;
    std::vector<WaitPtr> waits;
  };
  enum class End { kFound, kMissing, kRefused, kUnreachable };
  struct Outcome {
    End end = End::kMissing;
    std::string problem = {};
  };

  Upstream(UpstreamOptions options, UpstreamParts parts, std::unique_ptr<UpstreamCalls> calls);
  // upstream.cpp
  bool join(const Question& question, const Via& via, const WaitPtr& wait);  // with the lock held
  std::vector<WaitPtr> settle(const std::string& question, const Outcome& outcome);
  std::vector<WaitPtr> expired();  // with the lock held
  static void call_back(const std::vector<WaitPtr>& waits);
  void serve();
  void be_patient();
  Outcome outcome_of(const Question& question, const Via& via);
  absl::StatusOr<bool> bring(const Question& question, const Via& via, std::string* problem);
  absl::Status check_age(const KernelRecord& record);
  absl::StatusOr<bool> bring_record(const Question& question, const Via& via, std::string* problem);
  absl::Status note(absl::Status call, bool asked);  // whether the upstream can be reached, by how a call ended
  std::string unreachable() const;                   // with the lock held
  bool say_now();                                    // with the lock held; what is wrong is said once a minute
  // duties.cpp
  void keep();
  void say_state();
  void offer_what_is_new();
  absl::Status offer(const std::string& digest);
  bool check_fetched();
  void compare(const NumberedRecord& record, const KernelRecord& there);
  void sign_anew(const KernelRecord& there);
  void exchange_heads();
  absl::Status hear_heads();
  bool stopping();

  const UpstreamOptions options_;
  const UpstreamParts parts_;
  const std::unique_ptr<UpstreamCalls> calls_;
  const std::string id_;  // of this process, in the ways of questions

  std::mutex mutex_;  // guards the rest, but for what is of one thread
  std::condition_variable queued_, patience_, duty_;
  std::map<std::string, Flight> flights_;  // by text of their question
  std::deque<std::string> queue_;          // of these, those that no thread has taken yet
  std::multimap<Clock::time_point, WaitPtr> waits_;
  Misses misses_;
  bool stopping_ = false, woken_ = false;
  bool known_ = false, away_ = false;  // known: a call has ended
  std::string why_away_;
  Backoff backoff_;
  Clock::time_point said_ = {};

  // Of the thread of duties.
  bool said_any_ = false, said_away_ = false;
  int64_t offered_up_to_ = 0, checked_up_to_ = 0;  // ids of records
  Clock::time_point offers_from_ = {}, check_from_ = {};

  std::vector<std::thread> threads_;
};

}  // namespace wl
