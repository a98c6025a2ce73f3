#include "worker/measure_chains.h"

#include <algorithm>
#include <utility>

#include "compiler/base/status.h"
#include "runtime/arena.h"
#include "runtime/pool.h"
#include "worker/compile.h"
#include "worker/device_runner.h"
#include "worker/drivers/fake.h"
#include "worker/private_folder.h"

namespace wl {
namespace {

// Nanoseconds that loading and checking a chain may take in addition to the recipe's deadline.
constexpr int64_t kSetupOfAll = 60'000'000'000;

// Returns the size of each intermediate of a chain, and the first and the last step that use it. `buffers`: number of
// the problem's buffers.
std::vector<Lifetime> lifetimes_of(const KernelChain& chain, int buffers) {
  std::vector<Lifetime> values(chain.intermediates.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = {chain.intermediates[i], static_cast<int>(chain.steps.size()), -1};
  for (size_t s = 0; s < chain.steps.size(); ++s) {
    for (int argument : chain.steps[s].arguments) {
      if (argument < buffers) continue;
      Lifetime& value = values[static_cast<size_t>(argument - buffers)];
      value.first = std::min(value.first, static_cast<int>(s));
      value.last = std::max(value.last, static_cast<int>(s));
    }
  }
  return values;
}

class ChainMeasurement {
 public:
  ChainMeasurement(const Batch& batch, const MeasureOptions& options)
      : batch_(batch), options_(options), trials_(batch.chains.size()), judged_(batch.chains.size()) {
    const auto buffers = static_cast<int>(batch.problem.buffers.size());
    for (const KernelChain& chain : batch.chains) {
      arenas_.push_back(plan_arena(lifetimes_of(chain, buffers)));
      // One unit of alignment is added: the offset of an empty value may be at the end of the arena, but must lie
      // inside the memory.
      arena_bytes_ = std::max(arena_bytes_, arenas_.back().bytes + kArenaAlignment);
    }
    for (size_t i = 0; i < trials_.size(); ++i) {
      trials_[i].trial = batch.chains[i].trial;
      trials_[i].plan = batch.chains[i].plan;
    }
  }

  absl::StatusOr<Measured> run() {
    SetupCommand setup = setup_of(batch_);
    setup.arena_bytes = arena_bytes_;
    DeviceRunner device({options_.runner,
                         device_of(batch_, options_),
                         options_.cancel,
                         [this] { report(phase_); },
                         options_.sandbox,
                         {},
                         options_.says,
                         setup.libraries},
                        setup, options_.state, serves_of(batch_, device_of(batch_, options_)));
    WL_ASSIGN_OR_RETURN(const PrivateFolder folder, device.make_folder(options_.work_dir));
    WL_RETURN_IF_ERROR(compile(folder.path()));
    const absl::Status status = options_.fake ? fake() : measure(device);
    if (!absl::IsCancelled(status)) WL_RETURN_IF_ERROR(status);
    WL_RETURN_IF_ERROR(device.finish());
    Measured measured;
    measured.cancelled = absl::IsCancelled(status);
    for (size_t i = 0; i < trials_.size(); ++i)
      if (judged_[i]) measured.trials.push_back(std::move(trials_[i]));
    return measured;
  }

 private:
  absl::Status compile(const std::string& folder) {
    int finished = -1;
    WL_ASSIGN_OR_RETURN(compiled_, compile_batch(batch_, options_, folder, [&](int done) {
                          if (done != std::exchange(finished, done)) report("compile");
                        }));
    for (size_t i = 0; i < trials_.size(); ++i) {
      for (const ChainStep& step : batch_.chains[i].steps) {
        const Compiled& kernel = compiled_[static_cast<size_t>(step.kernel)];
        trials_[i].compile_s += kernel.seconds;
        if (kernel.outcome != Outcome::kCorrect && !judged_[i]) fail(i, kernel.outcome, kernel.message);
      }
    }
    return absl::OkStatus();
  }

  void fail(size_t i, Outcome outcome, std::string message) {
    trials_[i].outcome = outcome;
    trials_[i].message = std::move(message);
    trials_[i].samples_ns.clear();
    judged_[i] = true;
  }

  void accept(size_t i, std::vector<int64_t> samples_ns) {
    trials_[i].outcome = Outcome::kCorrect;
    trials_[i].samples_ns = std::move(samples_ns);
    judged_[i] = true;
  }

  void report(const char* phase) {
    phase_ = phase;
    ++progress_.counter;
    if (!options_.progress) return;
    progress_.phase = phase;
    progress_.done = static_cast<int>(std::count(judged_.begin(), judged_.end(), true));
    progress_.total = static_cast<int>(judged_.size());
    options_.progress(progress_);
  }

  std::vector<size_t> open() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < judged_.size(); ++i)
      if (!judged_[i]) out.push_back(i);
    return out;
  }

  absl::Status fake() {
    for (size_t i : open()) accept(i, fake_samples(batch_.chains[i], batch_.candidates, batch_.recipe));
    return absl::OkStatus();
  }

  // Measures all chains. If a chain fails, it is removed, and the others are timed again without it.
  absl::Status measure(DeviceRunner& device) {
    while (!open().empty()) {
      size_t at = open().front();  // index of the chain that caused an error
      const absl::Status status = measure_open(device, at);
      if (status.ok()) continue;
      if (absl::IsCancelled(status) || absl::IsUnavailable(status)) return status;
      if (absl::IsResourceExhausted(status) && !device.runner().running()) {
        for (size_t i : open()) fail(i, Outcome::kRuntimeError, std::string(status.message()));
        return absl::OkStatus();
      }
      fail(at, absl::IsDeadlineExceeded(status) ? Outcome::kTimeout : Outcome::kRuntimeError,
           std::string(status.message()));
      WL_RETURN_IF_ERROR(device.retire());
    }
    return absl::OkStatus();
  }

  // Loads, checks and times all open chains in one runner. On an error, `at` is the chain that failed.
  absl::Status measure_open(DeviceRunner& device, size_t& at) {
    const std::vector<size_t> slots = open();
    WL_RETURN_IF_ERROR(device.ready(1));
    TimeCommand command{{}, batch_.recipe};
    for (size_t i : slots) {
      at = i;
      const int64_t begin = monotonic_ns(), deadline = begin + batch_.recipe.deadline_ns + kSetupOfAll;
      WL_RETURN_IF_ERROR(load(device, i, deadline));
      report("check");
      WL_ASSIGN_OR_RETURN(const CheckAnswer answer, device.runner().check({slot_of(i), true}, deadline));
      trials_[i].check_s += static_cast<double>(monotonic_ns() - begin) * 1e-9;
      if (!answer.damage.empty()) return absl::InternalError(answer.damage);
      if (!answer.unwritten.empty())
        return absl::InternalError(
            absl::StrCat(answer.unwritten[0].elements, " elements of an output were never written"));
      command.slots.push_back(slot_of(i));
    }
    report("measure");
    const int64_t begin = monotonic_ns();
    const auto count = static_cast<int64_t>(slots.size());
    absl::StatusOr<TimeAnswer> answer = device.runner().time(command, begin + batch_.recipe.deadline_ns * count);
    const int64_t last = device.runner().last_slot() - static_cast<int64_t>(batch_.candidates.size());
    if (std::find(slots.begin(), slots.end(), static_cast<size_t>(last)) != slots.end()) at = static_cast<size_t>(last);
    WL_RETURN_IF_ERROR(answer.status());
    if (!answer->damage.empty()) return absl::InternalError(answer->damage);
    for (size_t k = 0; k < slots.size(); ++k) {
      trials_[slots[k]].measure_s = static_cast<double>(monotonic_ns() - begin) * 1e-9 / static_cast<double>(count);
      accept(slots[k], std::move(answer->slots[k].samples_ns));
    }
    return absl::OkStatus();
  }

  int64_t slot_of(size_t i) const { return static_cast<int64_t>(batch_.candidates.size() + i); }

  absl::Status load(DeviceRunner& device, size_t i, int64_t deadline) {
    const KernelChain& chain = batch_.chains[i];
    const auto buffers = static_cast<int>(batch_.problem.buffers.size());
    ChainCommand command;
    command.slot = slot_of(i);
    for (const ChainStep& step : chain.steps) {
      const auto k = static_cast<size_t>(step.kernel);
      WL_RETURN_IF_ERROR(device.load(k, load_of(batch_, k, compiled_[k].object), deadline));
      ChainCommand::Step& made = command.steps.emplace_back();
      made.slot = step.kernel;
      for (int argument : step.arguments) {
        const bool is_buffer = argument < buffers;
        made.arguments.push_back(
            {is_buffer ? argument : -1, is_buffer ? 0 : arenas_[i].offsets[static_cast<size_t>(argument - buffers)]});
      }
    }
    return device.runner().assemble(command, deadline);
  }

  const Batch& batch_;
  const MeasureOptions& options_;
  std::vector<Compiled> compiled_;  // for each kernel of the batch, the result of compiling it
  // for each chain, the places of its intermediate values in the arena, which all chains share
  std::vector<Arena> arenas_;
  int64_t arena_bytes_ = 0;
  std::vector<Trial> trials_;
  std::vector<bool> judged_;
  Progress progress_;
  const char* phase_ = "check";
};

}  // namespace

absl::StatusOr<Measured> measure_chains(const Batch& batch, const MeasureOptions& options) {
  return ChainMeasurement(batch, options).run();
}

}  // namespace wl
