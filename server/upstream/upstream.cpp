#include "server/upstream/upstream.h"

#include <algorithm>
#include <random>
#include <utility>

#include "server/upstream/calls.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr int kCallThreads = 8;
constexpr size_t kMostFlights = 4096;
constexpr auto kFirstProbe = std::chrono::milliseconds(200), kLastProbe = std::chrono::milliseconds(5000);
constexpr auto kSayAgain = std::chrono::minutes(1);

bool cannot_be_reached(const absl::Status& call) {
  return absl::IsUnavailable(call) || absl::IsDeadlineExceeded(call) || absl::IsUnauthenticated(call);
}

std::string random_id() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

AskedRecord asked_by(const Question& question) {
  if (question.kind == Question::kDigest) return {.digest = question.name};
  return {.key = question.name, .environment = question.environment};
}

// Returns an error that blames the store of this coordinator, not the upstream.
absl::Status not_stored(const absl::Status& status) {
  return absl::InternalError(cat("what it has cannot be stored here: ", std::string(status.message())));
}

}  // namespace

std::string Question::text() const {
  return cat(static_cast<int>(kind), " ", name, " ", environment);
}

absl::StatusOr<std::unique_ptr<Upstream>> Upstream::open(const UpstreamOptions& options, UpstreamParts parts) {
  auto channel = dial(options.address, options.dialled);
  if (!channel.ok()) {
    return absl::Status(channel.status().code(),
                        cat("--upstream: ", std::string(channel.status().message()),
                            " (the options of an upstream are called --upstream-tls-ca, and so on)"));
  }
  auto calls = std::make_unique<UpstreamCalls>(*channel, options.address, parts.signers);
  return std::unique_ptr<Upstream>(new Upstream(options, std::move(parts), std::move(calls)));
}

Upstream::Upstream(UpstreamOptions options, UpstreamParts parts, std::unique_ptr<UpstreamCalls> calls)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      calls_(std::move(calls)),
      id_(random_id()),
      backoff_(kFirstProbe, kLastProbe) {
  for (int i = 0; i < kCallThreads; ++i) threads_.emplace_back([this] { serve(); });
  threads_.emplace_back([this] { be_patient(); });
  threads_.emplace_back([this] { keep(); });
}

Upstream::~Upstream() {
  stop();
}

void Upstream::stop() {
  std::vector<WaitPtr> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& [question, flight] : flights_)
      for (const WaitPtr& wait : flight.waits)
        if (!std::exchange(wait->over, true)) left.push_back(wait);
    for (const WaitPtr& wait : left) wait->asked.problem = "the coordinator is about to end";
    flights_.clear();
    queue_.clear();
    waits_.clear();
  }
  calls_->cancel();
  for (std::condition_variable* waited : {&queued_, &patience_, &duty_}) waited->notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  call_back(left);
}

void Upstream::ask(const std::vector<Question>& questions, const Via& via, std::chrono::milliseconds patience,
                   Done done) {
  const auto wait = std::make_shared<Wait>();
  wait->done = std::move(done);
  Via way = via;
  way.push_back(id_);
  bool joined = false;
  {
    const std::lock_guard lock(mutex_);
    for (const Question& question : questions) joined |= join(question, way, wait);
    if (joined) wait->at = waits_.emplace(Clock::now() + patience, wait);
  }
  if (!joined) return wait->done(wait->asked);
  queued_.notify_all();
  patience_.notify_one();
}

// Adds `wait` to those who wait for the answer to a question; a new question is queued. Returns false if the question
// is not asked. If that is because of a problem, notes it in `wait`.
bool Upstream::join(const Question& question, const Via& via, const WaitPtr& wait) {
  const std::string text = question.text();
  if (const auto known = misses_.find(text, Clock::now())) {
    parts_.asked("remembered");
    if (!known->empty()) wait->asked.problem = *known;
    return false;
  }
  const auto found = flights_.find(text);
  const bool full = found == flights_.end() && flights_.size() >= kMostFlights;
  if (stopping_ || away_ || full) {
    parts_.asked("unreachable");
    wait->asked.problem = stopping_ ? "the coordinator is about to end"
                          : away_   ? unreachable()
                                    : cat("more than ", kMostFlights, " questions wait for it");
    return false;
  }
  Flight& flight = found == flights_.end() ? flights_[text] : found->second;
  if (found == flights_.end()) {
    flight.question = question;
    flight.via = via;
    queue_.push_back(text);
  }
  flight.waits.push_back(wait);
  ++wait->left;
  return true;
}

std::string Upstream::unreachable() const {
  return cat("cannot be reached: ", why_away_);
}

std::string Upstream::problem() {
  const std::lock_guard lock(mutex_);
  return away_ ? unreachable() : "";
}

void Upstream::call_back(const std::vector<WaitPtr>& waits) {
  for (const WaitPtr& wait : waits) wait->done(wait->asked);
}

// Ends a question with its outcome. Returns the waiting callers (Wait) of whose questions none is open any more.
std::vector<Upstream::WaitPtr> Upstream::settle(const std::string& question, const Outcome& outcome) {
  std::vector<WaitPtr> over;
  const std::lock_guard lock(mutex_);
  const auto flight = flights_.find(question);
  if (flight == flights_.end()) return over;  // stop() has ended all questions meanwhile
  if (outcome.end == End::kMissing || outcome.end == End::kRefused)
    misses_.put(question, outcome.problem, Clock::now());
  for (const WaitPtr& wait : flight->second.waits) {
    if (wait->over) continue;
    wait->asked.found |= outcome.end == End::kFound;
    if (!outcome.problem.empty()) wait->asked.problem = outcome.problem;
    if (--wait->left > 0) continue;
    wait->over = true;
    waits_.erase(wait->at);
    over.push_back(wait);
  }
  flights_.erase(flight);
  return over;
}

void Upstream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const std::string text = std::move(queue_.front());
    queue_.pop_front();
    const Question question = flights_.at(text).question;
    const Via via = flights_.at(text).via;
    Outcome outcome{End::kUnreachable, away_ ? unreachable() : ""};
    const bool asks = !away_;
    lock.unlock();
    if (asks) outcome = outcome_of(question, via);
    constexpr const char* kNames[] = {"found", "missing", "refused", "unreachable"};
    parts_.asked(kNames[static_cast<int>(outcome.end)]);
    call_back(settle(text, outcome));
    lock.lock();
  }
}

std::vector<Upstream::WaitPtr> Upstream::expired() {
  std::vector<WaitPtr> over;
  while (!waits_.empty() && waits_.begin()->first <= Clock::now()) {
    const WaitPtr wait = waits_.begin()->second;
    waits_.erase(waits_.begin());
    wait->over = true;
    wait->asked.problem = "did not answer in time; what it has may be here when it is asked for again";
    over.push_back(wait);
  }
  return over;
}

void Upstream::be_patient() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (const std::vector<WaitPtr> over = expired(); !over.empty()) {
      lock.unlock();
      call_back(over);
      lock.lock();
    } else if (waits_.empty()) {
      patience_.wait(lock);
    } else {
      const Clock::time_point next = waits_.begin()->first;
      patience_.wait_until(lock, next);
    }
  }
}

// Notes from the outcome of a call whether the upstream can be reached. Only an answer to a question resets the pauses
// between probes, because an upstream may answer probes but no questions.
absl::Status Upstream::note(absl::Status call, bool asked) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return call;
  const bool away = cannot_be_reached(call);
  if (!away && asked) backoff_.reset();
  const bool changed = !known_ || away != away_;
  known_ = true;
  away_ = away;
  if (away) why_away_ = std::string(call.message());
  if (changed) duty_.notify_all();
  return call;
}

bool Upstream::say_now() {
  const auto now = Clock::now();
  if (said_ != Clock::time_point() && now - said_ < kSayAgain) return false;
  said_ = now;
  return true;
}

Upstream::Outcome Upstream::outcome_of(const Question& question, const Via& via) {
  Outcome outcome;
  const absl::StatusOr<bool> brought = bring(question, via, &outcome.problem);
  if (brought.ok()) {
    outcome.end = *brought ? End::kFound : End::kMissing;
    return outcome;
  }
  const absl::Status& status = brought.status();
  outcome.end = cannot_be_reached(status) ? End::kUnreachable : End::kRefused;
  const bool refused = outcome.end == End::kRefused;
  outcome.problem =
      cat(refused ? "gave an answer that is not used: " : "cannot be reached: ", std::string(status.message()));
  const std::lock_guard lock(mutex_);
  if (refused && !stopping_ && say_now()) spdlog::warn("upstream {} {}", options_.address, outcome.problem);
  return outcome;
}

// Fetches what a question asks for. Returns true if it is stored now, and false if the upstream does not have it.
absl::StatusOr<bool> Upstream::bring(const Question& question, const Via& via, std::string* problem) {
  if (question.kind == Question::kObject) {
    auto bytes = calls_->object(question.name, via);
    (void)note(bytes.status(), true);
    if (absl::IsNotFound(bytes.status())) return false;
    WL_RETURN_IF_ERROR(bytes.status());
    if (const absl::Status stored = parts_.store->put_blob(question.name, *bytes); !stored.ok())
      return not_stored(stored);
    return true;
  }
  if (question.kind == Question::kDevices) {
    const auto devices = calls_->devices(via);
    (void)note(devices.status(), true);
    WL_RETURN_IF_ERROR(devices.status());
    if (const absl::Status stored = parts_.store->put_devices(*devices); !stored.ok()) return not_stored(stored);
    return !devices->empty();
  }
  return bring_record(question, via, problem);
}

// Checks a record's generation. PermissionDenied: the head of its signer says that the record is no longer valid.
absl::Status Upstream::check_age(const KernelRecord& record) {
  auto head = parts_.store->head_of(record.signed_by);
  if (head.ok() && !*head && record.generation != 0) {
    (void)hear_head(record.signed_by);
    head = parts_.store->head_of(record.signed_by);
  }
  if (!head.ok()) return not_stored(head.status());
  const std::string why = *head ? why_too_old(record, **head) : "";
  return why.empty()
             ? absl::OkStatus()
             : absl::PermissionDeniedError(cat("the record ", record.digest, " of key ", record.key, ": ", why));
}

absl::StatusOr<bool> Upstream::bring_record(const Question& question, const Via& via, std::string* problem) {
  const auto answer = calls_->record(asked_by(question), via);
  (void)note(answer.status(), true);
  WL_RETURN_IF_ERROR(answer.status());
  if (!answer->problem.empty()) *problem = cat("says: ", answer->problem);
  if (!answer->value) return false;
  const KernelRecord& record = *answer->value;
  if (const std::string why = parts_.why_not(record); !why.empty())
    return absl::PermissionDeniedError(cat("the record ", record.digest, " of key ", record.key, ": ", why));
  WL_RETURN_IF_ERROR(check_age(record));
  if (!record.object_sha256.empty()) {
    const auto missing = parts_.store->missing_blobs({record.object_sha256});
    if (!missing.ok()) return not_stored(missing.status());
    const Question object{Question::kObject, record.object_sha256, ""};
    if (!missing->empty()) {
      WL_ASSIGN_OR_RETURN(const bool brought, bring(object, via, problem));
      if (!brought)
        return absl::DataLossError(cat("it has the record ", record.digest, ", but not its object ", object.name));
    }
  }
  const bool by_key = question.kind == Question::kKey;
  const absl::Status stored = parts_.store->take_record(record, RecordOrigin::kUpstream, by_key);
  if (!stored.ok()) return not_stored(stored);
  parts_.changed(record.key);
  return true;
}

}  // namespace wl
