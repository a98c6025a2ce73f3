#include "worker/measure.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "compiler/base/sha256.h"
#include "compiler/base/status.h"
#include "runtime/pool.h"
#include "worker/compile.h"
#include "worker/device_runner.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/fake.h"
#include "worker/drivers/timing.h"
#include "worker/judge.h"
#include "worker/measure_chains.h"
#include "worker/private_folder.h"

namespace wl {
namespace {

constexpr double kCanaryMoved = 0.10;
constexpr int64_t kCanaryEvery = 300'000'000;  // least ns between canary runs; short candidates share one run
constexpr size_t kRecheckSamples = 64;
constexpr int kMostStops = 3;  // how many times in one batch the runner may be stopped by a signal

double seconds_since(int64_t begin) {
  return static_cast<double>(monotonic_ns() - begin) * 1e-9;
}

// Returns the relative change of the machine's speed between two canary runs: the larger one of compute and copy time.
double moved(const CanaryAnswer& before, const CanaryAnswer& after) {
  const auto change = [](int64_t a, int64_t b) {
    return a > 0 ? std::fabs(static_cast<double>(b - a)) / static_cast<double>(a) : 0.0;
  };
  return std::max(change(before.compute_ns, after.compute_ns), change(before.copy_ns, after.copy_ns));
}

class Measurement {
 public:
  Measurement(const Batch& batch, const MeasureOptions& options)
      : batch_(batch),
        options_(options),
        recipe_(batch.recipe),
        device_({options.runner,
                 device_of(batch, options),
                 options.cancel,
                 [this] { report(phase_, judged_count()); },
                 options.sandbox,
                 {},
                 options.says,
                 setup_of(batch).libraries},
                setup_of(batch), options.state, serves_of(batch, device_of(batch, options))) {}

  absl::StatusOr<Measured> run() {
    WL_ASSIGN_OR_RETURN(const PrivateFolder folder, device_.make_folder(options_.work_dir));
    WL_RETURN_IF_ERROR(compile(folder.path()));
    const absl::Status status = batch_.recipe.interleave ? measure_in_rounds() : measure_in_turn();
    if (!absl::IsCancelled(status)) WL_RETURN_IF_ERROR(status);
    WL_RETURN_IF_ERROR(device_.finish());
    Measured measured;
    measured.cancelled = absl::IsCancelled(status);
    for (size_t i = 0; i < trials_.size(); ++i) {
      if (!judged_[i]) continue;
      if (batch_.keep_objects && trials_[i].outcome == Outcome::kCorrect) {
        WL_ASSIGN_OR_RETURN(std::string object, PrivateFolder::read(compiled_[i].object));
        trials_[i].object_sha256 = sha256_hex(object);
        measured.objects[trials_[i].trial] = std::move(object);
      }
      measured.trials.push_back(std::move(trials_[i]));
    }
    return measured;
  }

 private:
  absl::Status compile(const std::string& folder) {
    int finished = -1;
    WL_ASSIGN_OR_RETURN(compiled_, compile_batch(batch_, options_, folder, [&](int done) {
                          if (done != std::exchange(finished, done)) report("compile", done);
                        }));
    trials_.resize(batch_.candidates.size());
    judged_.resize(batch_.candidates.size());
    for (size_t i = 0; i < trials_.size(); ++i) {
      trials_[i].trial = batch_.candidates[i].trial;
      trials_[i].plan = batch_.candidates[i].plan;
      trials_[i].compile_s = compiled_[i].seconds;
      trials_[i].code = compiled_[i].code;
      if (compiled_[i].outcome != Outcome::kCorrect && !cancelled())
        fail(i, compiled_[i].outcome, compiled_[i].message);
    }
    order_ = order_of(compiled_);
    return absl::OkStatus();
  }

  // Verdicts on candidates.

  bool cancelled() const { return options_.cancel && options_.cancel->load(std::memory_order_relaxed); }

  void fail(size_t i, Outcome outcome, std::string message) {
    trials_[i].outcome = outcome;
    trials_[i].message = std::move(message);
    trials_[i].samples_ns.clear();
    trials_[i].hopeless = false;
    judged_[i] = true;
  }

  // Whether the runner has ended because a signal had stopped it, which is not the candidate's fault. Excused at most
  // kMostStops times, since a candidate may stop its own runner.
  bool excused() { return device_.runner().was_stopped() && stops_left_-- > 0; }

  // Handles the error of a command for a candidate. If the error is the candidate's fault, marks the candidate as
  // failed; if a signal stopped the runner, leaves the candidate open. Returns errors that are the worker's fault.
  absl::Status blame(size_t i, const absl::Status& status) {
    if (status.ok()) return status;
    if (absl::IsCancelled(status) || absl::IsUnavailable(status)) return status;
    if (absl::IsOutOfRange(status)) {  // the library lacks the candidate's algorithm; the runner is intact
      fail(i, Outcome::kRejected, std::string(status.message()));
      return in_damaged_ ? device_.retire() : absl::OkStatus();
    }
    if (excused()) return device_.retire();
    fail(i, absl::IsDeadlineExceeded(status) ? Outcome::kTimeout : Outcome::kRuntimeError,
         std::string(status.message()));
    return device_.retire();
  }

  void report(const char* phase, int done) {
    ++progress_.counter;
    if (!options_.progress) return;
    progress_.phase = phase;
    progress_.done = done;
    progress_.total = static_cast<int>(batch_.candidates.size());
    options_.progress(progress_);
  }

  int judged_count() const { return static_cast<int>(std::count(judged_.begin(), judged_.end(), true)); }

  // Checks of candidates.

  uint64_t seed_of(size_t check) const { return check < batch_.checks.size() ? batch_.checks[check].seed : 1; }

  absl::Status load(size_t i, int64_t deadline) {
    // A GPU's runner outlives this batch and cannot see the batch's folder, so it gets the code as bytes.
    std::string object = compiled_[i].object;
    if (device_.is_gpu()) {
      WL_ASSIGN_OR_RETURN(object, PrivateFolder::read(object));
    }
    return device_.load(i, load_of(batch_, i, std::move(object)), deadline);
  }

  // Reads at most `most` of the sampled elements and judges them. Returns false if the candidate is wrong and now
  // marked so.
  absl::StatusOr<bool> samples_agree(size_t i, const Check& check, size_t most, int64_t deadline) {
    PeekCommand peek;
    const size_t n = std::min(most, check.samples.size());
    // The samples that are read are evenly spread over all samples.
    Check read;
    for (size_t k = 0; k < n; ++k)
      read.samples.push_back(check.samples[k * check.samples.size() / std::max<size_t>(n, 1)]);
    for (const Check::Sample& sample : read.samples) peek.places.push_back({sample.buffer, sample.index});
    WL_ASSIGN_OR_RETURN(const PeekAnswer answer, device_.runner().peek(peek, deadline));
    const Verdict verdict = judge(batch_.problem, read, answer.values);
    if (verdict.right) {
      // If there are several checks, the trial keeps the error that is largest relative to its bound.
      if (verdict.max_error * trials_[i].bound >= trials_[i].max_error * verdict.bound) {
        trials_[i].max_error = verdict.max_error;
        trials_[i].bound = verdict.bound;
      }
      return true;
    }
    trials_[i].max_error = verdict.max_error;
    trials_[i].bound = verdict.bound;
    fail(i, Outcome::kWrongResult, verdict.message);
    return false;
  }

  // Runs candidate `i` once on the present inputs and judges the result. Returns false if it failed and is now marked
  // so.
  absl::StatusOr<bool> passes(size_t i, const Check& check, int64_t deadline) {
    WL_RETURN_IF_ERROR(load(i, deadline));
    WL_ASSIGN_OR_RETURN(const CheckAnswer answer,
                        device_.runner().check({static_cast<int64_t>(i), batch_.recipe.interleave}, deadline));
    if (!answer.damage.empty()) {
      fail(i, Outcome::kRuntimeError, answer.damage);
      return false;
    }
    if (!answer.unwritten.empty()) {
      const CheckAnswer::Unwritten& u = answer.unwritten[0];
      if (u.buffer < 0 || static_cast<size_t>(u.buffer) >= batch_.problem.buffers.size())
        return absl::InternalError("the runner names an argument that does not exist");
      const BufferSpec& spec = batch_.problem.buffers[static_cast<size_t>(u.buffer)];
      fail(i, Outcome::kWrongResult,
           absl::StrCat(spec.name, coordinates(spec.shape, u.first), " and ", u.elements - 1, " more of ",
                        spec.elements(), " elements were never written"));
      return false;
    }
    return samples_agree(i, check, check.samples.size(), deadline);
  }

  // Measuring an ordinary batch: one candidate after the other.

  absl::Status measure_in_turn() {
    for (size_t i : order_) {
      while (!judged_[i]) {
        if (cancelled()) return absl::CancelledError("cancelled");
        WL_RETURN_IF_ERROR(measure_one(i));
        // A failure in a runner that earlier batches may have damaged does not count: the candidate is tried again.
        if (judged_[i] && trials_[i].outcome != Outcome::kCorrect && in_damaged_) judged_[i] = false;
      }
    }
    return absl::OkStatus();
  }

  absl::Status measure_one(size_t i) {
    static const Check kNone{};
    const Check& check = batch_.checks.empty() ? kNone : batch_.checks[0];
    phase_ = "check";
    WL_RETURN_IF_ERROR(device_.ready(seed_of(0)));
    in_damaged_ = device_.may_be_damaged();
    const int64_t begin = monotonic_ns();
    const int64_t deadline = begin + recipe_.deadline_ns;
    const absl::StatusOr<bool> passed = passes(i, check, deadline);
    trials_[i].check_s = seconds_since(begin);
    if (!passed.ok()) return blame(i, passed.status());
    if (!*passed) return device_.retire();
    phase_ = "measure";
    const int64_t measuring = monotonic_ns();
    const absl::Status status = time_one(i, check, deadline);
    trials_[i].measure_s = seconds_since(measuring);
    return blame(i, status);
  }

  absl::Status time_one(size_t i, const Check& check, int64_t deadline) {
    if (options_.fake) {
      accept(i, {fake_samples(batch_.candidates[i].source, recipe_), false});
      return absl::OkStatus();
    }
    for (int attempt = 0;; ++attempt) {
      if (!device_.canary) {
        WL_ASSIGN_OR_RETURN(device_.canary, device_.runner().canary(deadline));
        device_.canary_at = monotonic_ns();
      }
      WL_ASSIGN_OR_RETURN(TimeAnswer answer, device_.runner().time({{static_cast<int64_t>(i)}, recipe_}, deadline));
      if (!answer.damage.empty()) {
        fail(i, Outcome::kRuntimeError, answer.damage);
        return device_.retire();
      }
      WL_ASSIGN_OR_RETURN(const bool agree, samples_agree(i, check, kRecheckSamples, deadline));
      if (!agree) return device_.retire();
      double change = 0;
      if (monotonic_ns() - device_.canary_at > kCanaryEvery) {
        WL_ASSIGN_OR_RETURN(const CanaryAnswer after, device_.runner().canary(deadline));
        change = moved(*device_.canary, after);
        device_.canary = after;
        device_.canary_at = monotonic_ns();
      }
      const bool steady = change <= kCanaryMoved;
      // If the machine's speed changed meanwhile, the candidate is measured once more; at most every fourth one is.
      if (!steady && attempt == 0 && !answer.slots[0].hopeless && remeasured_ * 4 <= judged_count()) {
        ++remeasured_;
        continue;
      }
      accept(i, std::move(answer.slots[0]));
      if (!steady) note_unsteady(i, change);
      return absl::OkStatus();
    }
  }

  void note_unsteady(size_t i, double change) {
    trials_[i].message = absl::StrFormat("the machine's speed moved by %.0f %% during this measurement", change * 100);
  }

  // Records the GPU's clocks, and notes in the trial which samples were still taken at an unusual clock.
  void note_clocks(size_t i, const Samples& samples) {
    const int median = trials_[i].clock_mhz = median_clock(samples);
    trials_[i].clocks_mhz.assign(samples.clocks_mhz.begin(), samples.clocks_mhz.end());
    const int moved = clock_moved(samples);
    if (moved == 0) return;
    const auto [least, most] = std::minmax_element(samples.clocks_mhz.begin(), samples.clocks_mhz.end());
    trials_[i].message = absl::StrFormat("%d of %d samples were taken at another clock than %d MHz: from %d to %d MHz",
                                         moved, samples.clocks_mhz.size(), median, *least, *most);
  }

  void accept(size_t i, Samples samples) {
    trials_[i].outcome = Outcome::kCorrect;
    trials_[i].message.clear();
    note_clocks(i, samples);
    trials_[i].samples_ns = std::move(samples.samples_ns);
    trials_[i].hopeless = samples.hopeless;
    judged_[i] = true;
    // Later candidates of this batch are compared with the best time so far, which may be this candidate's.
    const auto ns = static_cast<int64_t>(undisturbed_ns(trials_[i].samples_ns));
    if (ns > 0 && (recipe_.best_ns == 0 || ns < recipe_.best_ns)) recipe_.best_ns = ns;
    report("measure", judged_count());
  }

  // Promotion: interleaved rounds over all candidates, so that the same conditions apply to all.

  std::vector<size_t> open() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < trials_.size(); ++i)
      if (!judged_[i]) out.push_back(i);
    return out;
  }

  absl::Status check_all(size_t which) {
    phase_ = "check";
    for (size_t i : open()) {
      absl::StatusOr<bool> passed = false;
      do {
        WL_RETURN_IF_ERROR(device_.ready(seed_of(which)));
        const int64_t begin = monotonic_ns();
        passed = passes(i, batch_.checks[which], begin + recipe_.deadline_ns);
        trials_[i].check_s += seconds_since(begin);
        WL_RETURN_IF_ERROR(blame(i, passed.status()));
      } while (!passed.ok() && !judged_[i]);
      if (passed.ok() && !*passed) WL_RETURN_IF_ERROR(device_.retire());
    }
    return absl::OkStatus();
  }

  absl::Status measure_in_rounds() {
    for (size_t which = 0; which < batch_.checks.size(); ++which) WL_RETURN_IF_ERROR(check_all(which));
    if (options_.fake) {
      for (size_t i : open()) accept(i, {fake_samples(batch_.candidates[i].source, recipe_), false});
      return absl::OkStatus();
    }
    const size_t last = batch_.checks.empty() ? 0 : batch_.checks.size() - 1;
    // Every failure removes a candidate, so the loop ends.
    while (!open().empty()) {
      const std::vector<size_t> slots = open();
      WL_RETURN_IF_ERROR(device_.ready(seed_of(last)));
      absl::StatusOr<TimeAnswer> answer = time_rounds(slots);
      if (!answer.ok()) {
        if (excused()) {
          WL_RETURN_IF_ERROR(device_.retire());
          continue;
        }
        const auto culprit = static_cast<size_t>(device_.runner().last_slot());
        if (device_.runner().last_slot() < 0 || std::find(slots.begin(), slots.end(), culprit) == slots.end())
          return answer.status();
        WL_RETURN_IF_ERROR(blame(culprit, answer.status()));
        continue;
      }
      if (!answer->damage.empty()) {
        // It is unknown which candidate wrote outside its outputs, so each candidate is measured alone.
        WL_RETURN_IF_ERROR(device_.retire());
        return measure_in_turn();
      }
      // Every candidate must still be right after it has been timed.
      if (!batch_.checks.empty()) WL_RETURN_IF_ERROR(check_all(last));
      for (size_t k = 0; k < slots.size(); ++k)
        if (!judged_[slots[k]]) accept(slots[k], std::move(answer->slots[k]));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TimeAnswer> time_rounds(const std::vector<size_t>& slots) {
    phase_ = "measure";
    const int64_t begin = monotonic_ns();
    const int64_t deadline = begin + recipe_.deadline_ns * static_cast<int64_t>(slots.size());
    TimeCommand command{{}, recipe_};
    for (size_t i : slots) {
      WL_RETURN_IF_ERROR(load(i, deadline));
      command.slots.push_back(static_cast<int64_t>(i));
    }
    WL_ASSIGN_OR_RETURN(TimeAnswer answer, device_.runner().time(command, deadline));
    for (size_t i : slots) trials_[i].measure_s = seconds_since(begin) / static_cast<double>(slots.size());
    return answer;
  }

  const Batch& batch_;
  const MeasureOptions& options_;
  Recipe recipe_;  // the batch's recipe; its best_ns is updated after every candidate
  DeviceRunner device_;
  int remeasured_ = 0;
  int stops_left_ = kMostStops;
  bool in_damaged_ = false;  // whether the last candidate ran in a runner that earlier batches may have damaged
  std::vector<Compiled> compiled_;
  std::vector<Trial> trials_;
  std::vector<bool> judged_;
  std::vector<size_t> order_;  // indices of the candidates, in the order of measuring
  Progress progress_;
  const char* phase_ = "check";
};

}  // namespace

absl::StatusOr<Measured> measure(const Batch& batch, const MeasureOptions& options) {
  for (const Check& check : batch.checks)
    for (const Check::Sample& sample : check.samples)
      if (sample.buffer < 0 || static_cast<size_t>(sample.buffer) >= batch.problem.buffers.size() || sample.index < 0 ||
          sample.index >= batch.problem.buffers[static_cast<size_t>(sample.buffer)].elements())
        return invalid("batch ", batch.id, " samples element ", sample.index, " of argument ", sample.buffer,
                       ", which does not exist");
  return batch.chains.empty() ? Measurement(batch, options).run() : measure_chains(batch, options);
}

}  // namespace wl
