#include "worker/agent.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "proto/backoff.h"
#include "proto/log.h"
#include "proto/wire.h"
#include "runtime/pool.h"
#include "worker/calls.h"
#include "worker/compile.h"
#include "worker/device_runner.h"
#include "worker/drivers/duty_cycle.h"
#include "worker/drivers/machine_lock.h"
#include "worker/private_folder.h"
#include "worker/probes.h"

namespace wl {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kFirstBackoff = milliseconds(100);
constexpr auto kMaxBackoff = milliseconds(2000);
// The most batches that a call of a CPU for work takes. A coordinator gives several only if each promotes one kernel.
constexpr int kMostLeases = 4;
constexpr auto kSaysWork = std::chrono::minutes(1);
// The time limit of one call to the coordinator, in addition to the time that the call waits for work.
constexpr auto kPatience = milliseconds(20'000);

// Whether a call to the coordinator that failed with `status` may succeed when it is repeated.
bool may_pass(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

milliseconds patience_of(const AgentOptions& options) {
  if (options.exit_when_idle_s < 0) return kPatience;
  return std::min(kPatience, milliseconds(static_cast<int64_t>(1000 * options.exit_when_idle_s) + 1000));
}

// The agent of one device; it runs on one thread.
class Agent {
 public:
  Agent(const std::shared_ptr<grpc::Channel>& channel, const AgentOptions& options, MachineLock* machine_lock,
        std::stop_token stop)
      : options_(options),
        machine_lock_(machine_lock),
        stop_(stop),
        calls_(channel, options.name, patience_of(options), stop),
        wake_(stop_, [this] { stopped_.notify_all(); }) {}

  absl::Status run() {
    worked_ = Clock::now();
    while (!stop_.stop_requested()) {
      if (!registered_) {
        absl::Status status = calls_.register_process(options_.devices, options_.machine, rates_);
        if (absl::IsUnavailable(status) && options_.explained) status = options_.explained(status);
        if (absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status)) return status;
        if (!status.ok()) {
          if (idle_too_long()) return status;
          log_once(status);
          back_off();
          continue;
        }
        registered_ = true;
        attendance_.emplace(&calls_);
        logged_.clear();
        backoff_.reset();
        log_line(spdlog::level::info, "registered", {{"worker", calls_.name()}});
      }
      const auto answer = calls_.acquire(options_.measure.gpus.empty() ? kMostLeases : 1, wait_s());
      if (!answer.ok()) {
        // acquire() fails if the coordinator cannot be reached, or if the coordinator has restarted and does not know
        // this worker any more.
        registered_ = false;
        attendance_.reset();
        state_.rest();
        if (idle_too_long()) return absl::OkStatus();
        if (!absl::IsFailedPrecondition(answer.status())) back_off();
        continue;
      }
      backoff_.reset();
      WL_RETURN_IF_ERROR(work_on(*answer));
      if (answer->leases().empty()) state_.rest();
      // A worker that gets no lease for the idle time may end, even if jobs still wait for the coordinator to check
      // their results.
      if (answer->leases().empty() && idle_too_long()) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // Returns the pause that the worker's share asks for after what it has done.
  DutyCycle::Seconds owed() {
    duty_.count_process();
    return duty_.due();
  }

 private:
  bool idle_too_long() const {
    return options_.exit_when_idle_s >= 0 &&
           Clock::now() - worked_ >= std::chrono::duration<double>(options_.exit_when_idle_s);
  }

  double wait_s() const {
    if (options_.exit_when_idle_s < 0) return options_.wait_s;
    return std::min(options_.wait_s, std::max(0.2, options_.exit_when_idle_s / 2));
  }

  LogFields fields_of(const v1::Lease& lease) const {
    return {{"worker", calls_.name()},
            {"batch", lease.batch().id()},
            {"lease", lease.lease_id()},
            {"trace", lease.batch().trace()}};
  }

  // Logs why a call failed, but each reason only once until the worker is registered, since calls are retried for ever
  // and would fill the log. All errors of an unreachable coordinator count as one reason, whatever the network reports.
  void log_once(const absl::Status& status) {
    const std::string why(status.message());
    if (!logged_.insert(absl::IsUnavailable(status) ? "" : why).second) return;
    log_line(spdlog::level::warn, cat(why, "; trying again"), {{"worker", calls_.name()}});
  }

  void back_off() {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, backoff_.next(), [this] { return stop_.stop_requested(); });
  }

  // A leased batch, and what renews its lease until it is measured.
  struct Held {
    Held(Calls* calls, const v1::Lease& of, Batch leased, std::stop_token stop) : lease(of), batch(std::move(leased)) {
      renewer.emplace(calls, of, std::move(stop));
    }
    const v1::Lease& lease;
    const Batch batch;
    std::optional<Renewer> renewer;  // empty once the batch is measured
  };

  // Measures the batches of the leases that one call got, one after another. Their kernels are compiled together
  // before. Fails only if this worker cannot measure at all.
  absl::Status work_on(const v1::AcquireLeasesResponse& answer) {
    std::list<Held> held;
    for (const v1::Lease& lease : answer.leases()) {
      absl::StatusOr<Batch> batch = from_proto(lease.batch());
      if (batch.ok()) {
        held.emplace_back(&calls_, lease, *std::move(batch), stop_);
        log_line(spdlog::level::debug, cat("leased a batch; candidates: ", held.back().batch.candidates.size()),
                 fields_of(lease));
        continue;
      }
      log_line(spdlog::level::err, cat("a lease cannot be used: ", batch.status().message()), fields_of(lease));
      calls_.release(lease, std::string(batch.status().message()), /*unable=*/true);
    }
    if (held.size() > 1) {
      rest(held);
      duty_.time([&] { compile_together(held); });
    }
    for (int done = 1; !held.empty(); ++done) {
      rest(held);
      const absl::Status status = duty_.time([&] { return work(held.front()); });
      held.pop_front();
      for (Held& next : held) {
        if (!status.ok()) calls_.release(next.lease, std::string(status.message()), /*unable=*/true);
        next.renewer->progress(std::string(kWaitsForOthers), done);
      }
      WL_RETURN_IF_ERROR(status);
      worked_ = Clock::now();
    }
    return absl::OkStatus();
  }

  // Makes the pause that the worker's share of its machine asks for. Meanwhile the leases are renewed, as those of
  // batches that wait for others. Returns early when the first batch is cancelled or the worker has to stop.
  void rest(std::list<Held>& held) {
    constexpr DutyCycle::Seconds kLook{0.1};
    if (held.empty() || options_.share <= 0) return;
    duty_.count_process();
    std::unique_lock lock(mutex_);
    while (duty_.due().count() > 0 && !stop_.stop_requested() && !*held.front().renewer->cancel()) {
      for (Held& each : held) each.renewer->progress(std::string(kWaitsForOthers), ++rests_);
      const Clock::time_point begun = Clock::now();
      stopped_.wait_for(lock, std::min(kLook, duty_.due()), [this] { return stop_.stop_requested(); });
      duty_.rested(Clock::now() - begun);
    }
  }

  MeasureOptions options_for(Held& held) {
    MeasureOptions options = options_.measure;
    options.cancel = held.renewer->cancel();
    options.progress = [&held](const Progress& progress) { held.renewer->progress(progress.phase, progress.counter); };
    options.says = [this](const std::string& text, const std::string& trace) {
      log_line(spdlog::level::debug, cat("runner: ", text), {{"worker", calls_.name()}, {"trace", trace}});
    };
    options.state = &state_;
    return options;
  }

  void compile_together(std::list<Held>& held) {
    if (options_.measure_with) return;
    std::vector<const Batch*> batches;
    for (const Held& each : held) batches.push_back(&each.batch);
    const MeasureOptions options = options_for(held.front());
    const bool alone = options.gpus.empty();
    machine_lock_->begin(alone);
    compile_ahead(batches, options, [&held](int done) {
      for (Held& each : held) each.renewer->progress("compile", done);
    });
    machine_lock_->end(alone);
    for (Held& each : held)
      if (&each != &held.front()) each.renewer->progress(std::string(kWaitsForOthers), 0);
  }

  // Measures a batch and reports the results. Fails only if this worker cannot measure at all.
  absl::Status work(Held& held) {
    const MeasureOptions options = options_for(held);
    const bool alone = options.gpus.empty();
    machine_lock_->begin(alone);
    const absl::StatusOr<Measured> measured =
        options_.measure_with ? options_.measure_with(held.batch, options)
                              : measure_soundly(held.batch, options_.devices.front(), options, &sound_);
    if (measured.ok() && !measured->cancelled) tell_rates(options);
    machine_lock_->end(alone);
    const bool lost = held.renewer->lost();
    held.renewer.reset();
    if (lost) return absl::OkStatus();
    if (!measured.ok()) {
      calls_.release(held.lease, std::string(measured.status().message()), /*unable=*/true);
      return measured.status();
    }
    if (measured->cancelled || stop_.stop_requested()) {
      calls_.release(held.lease, "the worker has to stop", /*unable=*/false);
      return absl::OkStatus();
    }
    report(held.lease, *measured);
    return absl::OkStatus();
  }

  // Measures the peak rates of the device and sends them to the coordinator. Does so once, after the first batch is
  // measured (so kernels are known to run here) and before it is reported. The rates only make reports richer, so
  // failures are only logged.
  void tell_rates(const MeasureOptions& options) {
    if (!options_.rates || std::exchange(told_rates_, true) || options_.measure_with || options.fake) return;
    const absl::StatusOr<MeasuredRates> rates = measure_rates(options_.devices.front(), options);
    absl::Status told = rates.status();
    if (rates.ok()) {
      rates_ = {*rates};
      told = calls_.register_process(options_.devices, options_.machine, rates_);
    }
    if (!told.ok())
      log_line(spdlog::level::warn, cat("what the device reaches is not known: ", told.message()),
               {{"worker", calls_.name()}});
  }

  // Reports the results again and again until the coordinator has stored them, or until they are of no use any more:
  // another attempt owns the batch, the coordinator refuses them, the idle time is over, or the worker has to stop.
  void report(const v1::Lease& lease, const Measured& measured) {
    worked_ = Clock::now();
    for (;;) {
      absl::Status status = calls_.upload(measured.trials, measured.objects);
      if (status.ok()) status = calls_.report(lease, measured.trials);
      if (status.ok()) {
        backoff_.reset();
        log_line(spdlog::level::debug, cat("reported a batch; trials: ", measured.trials.size()), fields_of(lease));
        return count_reported(measured.trials.size());
      }
      const std::string why(status.message());
      if (stop_.stop_requested()) return calls_.release(lease, "the worker has to stop", /*unable=*/false);
      if (!may_pass(status)) {
        log_line(spdlog::level::err, cat("a report was refused: ", why), fields_of(lease));
        return calls_.release(lease, why, /*unable=*/true);
      }
      if (idle_too_long()) return;
      log_once(status);
      back_off();
    }
  }

  // Counts a reported batch with `trials` trials. Logs the numbers of reported batches and trials after the first batch
  // and then at most once a minute (kSaysWork).
  void count_reported(size_t trials) {
    ++batches_;
    trials_ += trials;
    if (Clock::now() < says_work_from_) return;
    says_work_from_ = Clock::now() + kSaysWork;
    log_line(spdlog::level::info, cat("reported so far; batches: ", batches_, ", trials: ", trials_),
             {{"worker", calls_.name()}});
  }

  const AgentOptions& options_;
  MachineLock* const machine_lock_;
  ReusedState state_;
  std::vector<MeasuredRates> rates_;  // measured peak rates of the device; empty until they are measured
  bool told_rates_ = false;
  bool sound_ = false;  // set once this machine has run a known kernel correctly (measure_soundly)
  const std::stop_token stop_;
  Calls calls_;
  bool registered_ = false;
  Clock::time_point worked_, says_work_from_ = {};
  size_t batches_ = 0, trials_ = 0;  // numbers of batches and trials that this agent has reported
  // the errors that were logged since the worker was last registered; each is logged only once
  std::set<std::string> logged_;
  Backoff backoff_{kFirstBackoff, kMaxBackoff};
  DutyCycle duty_{options_.share};
  int64_t rests_ = 0;  // how often a pause has renewed the leases
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::stop_callback<std::function<void()>> wake_;
  // Keeps a call open by which the coordinator sees that this worker is alive; only while the worker is registered.
  std::optional<Attendance> attendance_;
};

std::string own_name() {
  char host[256] = "worker";
  gethostname(host, sizeof host - 1);
  return cat(host, "-", getpid());
}

// Returns the options of one agent for each device. The agents share the compile jobs equally.
std::vector<AgentOptions> lanes_of(const AgentOptions& options) {
  std::vector<AgentOptions> lanes;
  std::vector<Gpus::Gpu> gpus = options.measure.gpus;
  for (const Device& device : options.devices) {
    AgentOptions lane = options;
    lane.devices = {device};
    lane.measure.gpus.clear();
    const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpus::Gpu& one) { return one.device == device; });
    const std::string name = gpu == gpus.end() ? "cpu" : gpu->name;
    if (gpu != gpus.end()) {
      lane.measure.gpus.push_back(*gpu);
      gpus.erase(gpu);
    }
    if (options.devices.size() > 1) lane.name = cat(options.name, "/", name);
    if (lane.measure.compile_jobs == 0)
      lane.measure.compile_jobs = static_cast<int>(std::max<size_t>(1, allowed_cpus().size() / options.devices.size()));
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

}  // namespace

absl::Status run_agent(std::shared_ptr<grpc::Channel> channel, const AgentOptions& options, std::stop_token stop) {
  AgentOptions named = options;
  if (named.name.empty()) named.name = own_name();
  if (named.machine.empty()) named.machine = own_machine();
  if (!named.measure.work_dir.empty()) PrivateFolder::sweep(named.measure.work_dir);
  const std::vector<AgentOptions> lanes = lanes_of(named);
  MachineLock machine_lock;
  std::vector<absl::Status> ends(lanes.size());
  std::stop_source all;
  const std::stop_callback asked(stop, [&all] { all.request_stop(); });
  const auto work = [&](size_t i) {
    Agent agent(channel, lanes[i], &machine_lock, all.get_token());
    ends[i] = agent.run();
    if (lanes[i].owes) lanes[i].owes(agent.owed());
    if (ends[i].ok()) return;
    log_line(spdlog::level::err, std::string(ends[i].message()), {{"worker", lanes[i].name}});
    if (named.end_together) all.request_stop();
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < lanes.size(); ++i) threads.emplace_back(work, i);
  if (!lanes.empty()) work(0);
  for (std::thread& thread : threads) thread.join();
  const auto failed = std::find_if(ends.begin(), ends.end(), [](const absl::Status& end) { return !end.ok(); });
  if (failed == ends.end()) return absl::OkStatus();
  const bool any = std::any_of(ends.begin(), ends.end(), [](const absl::Status& end) { return end.ok(); });
  return any && !named.end_together ? absl::OkStatus() : *failed;
}

}  // namespace wl
