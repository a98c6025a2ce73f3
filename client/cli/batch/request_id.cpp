#include "client/cli/batch/request_id.h"

#include "compiler/base/libraries.h"
#include "compiler/base/sha256.h"

namespace wl {

std::string batch_request_id(const std::string& batch, const std::string& run, const std::string& graph,
                             const TuneOptions& options, int again) {
  // The structured binding names every field of TuneOptions, so this does not compile when TuneOptions gets another
  // field. Encode a new field only where it differs from its default, so that requests with the default keep their ids.
  const auto& [target, trials, budget_s, seed, strategy, effort, cover, cold, require_cached, retune, at_once,
               kernels_alone, background, libraries, device] = options;
  Encoder encoder("warploom.batch", 1);
  encoder.text(batch).text(run).text(graph).integer(again);
  encoder.text(target).integer(trials).real(budget_s).text(strategy);
  encoder.text(effort).text(cover).integer(cold).integer(retune);
  encoder.integer(static_cast<int64_t>(seed)).integer(at_once);
  if (kernels_alone) encoder.text("kernels alone");
  encoder.text(device ? device->fingerprint() : "");
  if (libraries != kNoLibraries) encoder.text(libraries);
  if (require_cached) encoder.text("require cached");
  if (background) encoder.text("background");
  std::string hash = encoder.hash();
  hash[12] = '4';
  for (const size_t at : {8, 13, 18, 23}) hash.insert(at, "-");
  return hash.substr(0, 36);
}

}  // namespace wl
