#include "worker/drivers/fake.h"

#include <algorithm>
#include <string>

#include "compiler/base/sha256.h"

namespace wl {

std::vector<int64_t> fake_samples(const Source& source, const Recipe& recipe) {
  Encoder encoder("warploom.fake", 1);
  encoder.text(source.target).text(source.compiler).text(source.text).integer(source.grid).integer(source.threads);
  const std::string hash = encoder.hash();
  const auto word = [&](size_t at) { return static_cast<int64_t>(std::stoull(hash.substr(at, 8), nullptr, 16)); };
  // The times are seconds long, because a coordinator rejects a time that is too short for the kernel's work on any
  // machine, and tests may have large kernels.
  const int64_t base = 1'000'000'000 + 100 * (word(0) % 990'000'000);
  std::vector<int64_t> samples;
  // The least time occurs twice. undisturbed_ns() therefore gives the same result for one trial of a kernel as for
  // several, and the winner does not depend on which worker measured which trial.
  for (int i = 0; i < std::max(1, recipe.min_repeats); ++i)
    samples.push_back(i < 2 ? base : base + word(8 + static_cast<size_t>(i % 48)) % (base / 50));
  return samples;
}

std::vector<int64_t> fake_samples(const KernelChain& chain, const std::vector<Candidate>& kernels,
                                  const Recipe& recipe) {
  std::vector<int64_t> sums(static_cast<size_t>(std::max(1, recipe.min_repeats)), 0);
  for (const ChainStep& step : chain.steps) {
    const std::vector<int64_t> samples = fake_samples(kernels[static_cast<size_t>(step.kernel)].source, recipe);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += samples[i];
  }
  return sums;
}

}  // namespace wl
