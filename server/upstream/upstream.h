// The upstream of a coordinator: another coordinator, which this one asks for records, objects and devices that it
// lacks, and to which it offers records that were made here. What the upstream has answered is stored here and served
// from here afterwards, whether the upstream can be reached or not.
//
// No thread of the coordinator waits for the upstream: a question has a callback, which runs at the latest when the
// patience of its caller is over. Only threads of this class block in calls to the upstream, and callers with the same
// question share one call. While the upstream cannot be reached, no question is sent; a probe now and then finds out
// whether it can be reached again. See docs/design/service.md#upstream-coordinators.
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

// Which shared records are offered to the upstream: none, those that were confirmed, or all.
enum class OfferRule { kNone, kConfirmed, kAll };

struct UpstreamOptions {
  std::string address;  // address of the upstream, "HOST:PORT" or "unix:PATH"; empty: there is no upstream
  DialOptions dialled;
  OfferRule offer = OfferRule::kNone;
  double check_s = 600;  // seconds between checks that the upstream still serves what was fetched from it
};

// What an Upstream needs of the coordinator. Functions are called on any thread.
struct UpstreamParts {
  Store* store = nullptr;  // the coordinator's store, which must outlive the Upstream
  // Every record must be signed by one of these signers; empty: any signature, or none, is accepted.
  std::vector<Signer> signers = {};
  // Returns the reason to refuse a record; "": the record is accepted.
  std::function<std::string(const KernelRecord&)> why_not = [](const auto&) { return ""; };
  // Called when the records that are served for a key have changed.
  std::function<void(const std::string& key)> changed = [](const auto&) {};
  // For metrics: called when a question, or an offer, has ended with `outcome`.
  std::function<void(const char*outcome)> asked = [](const char*) {}, offered = [](const char*) {};
};

// A question to the upstream: for a record by its key and environment (empty: any environment) or by its digest, for an
// object by its digest, or for all devices.
struct Question {
  enum Kind { kKey, kDigest, kObject, kDevices } kind = kKey;
  std::string name = {}, environment = {};
  std::string text() const;
};

struct Asked {
  bool found = false;  // whether anything was found; it is then in the store
  // Why a question could not be asked, or why an answer was refused; empty: the upstream has answered all questions.
  std::string problem;
};

class Upstream {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const Asked&)>;

  // Makes an upstream. InvalidArgument, FailedPrecondition: the address or the credentials cannot be used.
  static absl::StatusOr<std::unique_ptr<Upstream>> open(const UpstreamOptions& options, UpstreamParts parts);
  ~Upstream();  // calls stop()
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  // Asks the questions without ever blocking. Calls `done` once, on another thread or before this function returns, at
  // the latest after `patience`. An answer that comes later is stored for the next caller. `via`: the coordinators that
  // the questions have passed before this one.
  void ask(const std::vector<Question>& questions, const Via& via, std::chrono::milliseconds patience, Done done);
  // Returns the reason not to ask a question that has passed the coordinators of `via`; "": it may be asked.
  std::string why_not_ask(const Via& via) { return wl::why_not_ask(id_, via); }
  void wake();  // Tells the thread of keep() that a record was promoted, which may have to be offered to the upstream.
  // Ends all calls. Runs all callbacks before it returns, and none later.
  void stop();

  const std::string& address() const { return options_.address; }
  std::string problem();  // why the upstream cannot be asked now; "": it can

 private:
  struct Wait {
    size_t left = 0;  // number of the caller's questions that are still open
    bool over = false;
    Asked asked;
    Done done;
    std::multimap<Clock::time_point, std::shared_ptr<Wait>>::iterator at;  // this object's entry in waits_
  };
  using WaitPtr = std::shared_ptr<Wait>;
  // An open question, and the callers that wait for its answer.
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
  // Defined in upstream.cpp:
  bool join(const Question& question, const Via& via, const WaitPtr& wait);  // The caller must hold mutex_.
  std::vector<WaitPtr> settle(const std::string& question, const Outcome& outcome);
  std::vector<WaitPtr> expired();  // The caller must hold mutex_.
  static void call_back(const std::vector<WaitPtr>& waits);
  void serve();
  void be_patient();
  Outcome outcome_of(const Question& question, const Via& via);
  absl::StatusOr<bool> bring(const Question& question, const Via& via, std::string* problem);
  absl::Status check_age(const KernelRecord& record);
  absl::StatusOr<bool> bring_record(const Question& question, const Via& via, std::string* problem);
  // Notes from the status of a call whether the upstream can be reached. Returns this status unchanged.
  absl::Status note(absl::Status call, bool asked);
  std::string unreachable() const;  // The caller must hold mutex_.
  // Whether a warning may be logged now, at most one a minute. The caller must hold mutex_.
  bool say_now();
  // Defined in duties.cpp:
  void keep();
  void say_state();
  bool offer_what_is_new();
  absl::Status offer(const std::string& digest);
  bool check_fetched();
  void compare(const NumberedRecord& record, const KernelRecord& there);
  void sign_anew(const KernelRecord& there);
  void exchange_heads();
  absl::Status hear_head(const std::string& signer);
  bool stopping();

  const UpstreamOptions options_;
  const UpstreamParts parts_;
  const std::unique_ptr<UpstreamCalls> calls_;
  const std::string id_;  // id of this process, as it appears in the Via of questions

  std::mutex mutex_;  // guards the members declared below, except those that one thread alone uses
  std::condition_variable queued_, patience_, duty_;
  std::map<std::string, Flight> flights_;  // open questions by their text
  std::deque<std::string> queue_;          // open questions that no thread has taken yet
  std::multimap<Clock::time_point, WaitPtr> waits_;
  Misses misses_;
  bool stopping_ = false, woken_ = false;
  // `known_`: whether any call to the upstream has ended. `away_`: whether the upstream could not be reached by the
  // last call that ended.
  bool known_ = false, away_ = false;
  std::string why_away_;
  Backoff backoff_;
  Clock::time_point said_ = {};

  // The thread of keep() alone uses the following members.
  bool said_any_ = false, said_away_ = false;
  // `offered_up_to_`: id of the last record that was offered to the upstream. `checked_up_to_`: id of the last record
  // that was compared with the upstream's.
  int64_t offered_up_to_ = 0, checked_up_to_ = 0;
  // The upstream's heads (StoreHead), fetched before the current check of records began.
  absl::StatusOr<std::vector<StoreHead>> heads_;
  std::map<std::string, int64_t> told_;  // for each signer, the StoreHead::oldest that the upstream was last told
  Clock::time_point offers_from_ = {}, check_from_ = {};

  std::vector<std::thread> threads_;
};

}  // namespace wl
