#include "worker/known_kernel.h"

#include <algorithm>

#include "compiler/base/status.h"
#include "runtime/gpu_device.h"
#include "worker/check.h"
#include "worker/probes.h"

namespace wl {
namespace {

bool any_is_correct(const Measured& measured) {
  return std::any_of(measured.trials.begin(), measured.trials.end(),
                     [](const Trial& trial) { return trial.outcome == Outcome::kCorrect; });
}

// Not compiling is rare for CPUs, and may be the disk's fault in some candidates of a batch. GPUs' compilers refuse
// kernels that are too large for them.
bool may_be_the_machine(const Measured& measured, bool gpu) {
  if (measured.cancelled || measured.trials.empty()) return false;
  const auto uncompiled = [](const Trial& trial) { return trial.outcome == Outcome::kCompileError; };
  return !any_is_correct(measured) ||
         (!gpu && std::any_of(measured.trials.begin(), measured.trials.end(), uncompiled));
}

}  // namespace

absl::Status known_kernel_works(const Device& device, const MeasureOptions& options, const std::string& prelude) {
  MeasureOptions own = options;
  own.state = nullptr;
  own.compiled = nullptr;
  own.fake = true;  // it need not be timed
  const Gpus::Gpu* gpu = nullptr;
  for (const Gpus::Gpu& one : options.gpus)
    if (one.device.target == device.target) gpu = &one;
  Probe probe = copy_probe(device, /*small=*/true);
  if (!prelude.empty()) probe.source.prelude = prelude;
  const absl::StatusOr<Trial> trial = measured(probe, gpu, own);
  if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed))
    return absl::CancelledError("cancelled");
  if (trial.ok() && trial->outcome == Outcome::kCorrect) return absl::OkStatus();
  const std::string why = trial.ok() ? cat(kOutcomeNames[static_cast<int>(trial->outcome)], ": ", trial->message)
                                     : std::string(trial.status().message());
  return absl::UnavailableError(cat("this machine cannot measure kernels now: one that is known to be right failed (",
                                    why, ")", remedies(options), "; no candidate is blamed for it"));
}

absl::StatusOr<Measured> measure_soundly(const Batch& batch, const Device& device, const MeasureOptions& options,
                                         bool* sound) {
  const bool gpu = is_gpu_name(device.target);
  if (!*sound) {
    const absl::Status works = known_kernel_works(device, options);
    if (absl::IsCancelled(works)) return Measured{.trials = {}, .objects = {}, .cancelled = true};
    WL_RETURN_IF_ERROR(works);
    *sound = true;
  }
  WL_ASSIGN_OR_RETURN(Measured out, measure(batch, options));
  if (!may_be_the_machine(out, gpu)) return out;
  const std::string prelude = gpu || batch.candidates.empty() ? "" : batch.candidates[0].source.prelude;
  const absl::Status works = known_kernel_works(device, options, prelude);
  if (absl::IsCancelled(works)) return Measured{.trials = {}, .objects = {}, .cancelled = true};
  WL_RETURN_IF_ERROR(works);
  return out;
}

}  // namespace wl
