// Pattern reduction (FusionStitching, pool.h): for every op, keeps the best three patterns (candidates) that begin at
// the op, made from those that begin at its readers. In the mirrored pass, patterns end at an op and are made from
// those that end at the ops that it reads.
#include <algorithm>

#include "compiler/cover/planned/candidates.h"

namespace wl {
namespace {

constexpr size_t kKept = 3;
constexpr size_t kMostNeighbours = 16;  // an op is combined with at most this many of its neighbours

void reduce_patterns(Candidates& candidates, bool mirrored) {
  std::vector<std::vector<int>> best(static_cast<size_t>(candidates.ops()));
  const auto better = [&](int a, int b) {
    return std::pair(-candidates[a].saving, a) < std::pair(-candidates[b].saving, b);
  };
  for (int step = 0; step < candidates.ops(); ++step) {
    const int op = mirrored ? step : candidates.ops() - 1 - step;
    const std::vector<int>& neighbours = mirrored ? candidates.before(op) : candidates.after(op);
    std::vector<int> patterns = {op};  // a candidate of a single op has the same number as its op
    for (size_t i = 0; i < neighbours.size() && i < kMostNeighbours; ++i) {
      std::vector<int> grown = patterns;
      for (int pattern : patterns)
        for (int next : best[neighbours[i]]) {
          const int both = candidates.consider(candidates.joined(pattern, next), GroupOrigin::kPattern);
          if (both >= 0) grown.push_back(both);
        }
      std::sort(grown.begin(), grown.end(), better);
      grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
      if (grown.size() > kKept) grown.resize(kKept);
      patterns = std::move(grown);
    }
    best[op] = std::move(patterns);
    // The op alone is always kept, since it may be combined with a producer where its larger patterns cannot be.
    if (std::find(best[op].begin(), best[op].end(), op) == best[op].end()) best[op].push_back(op);
  }
}

}  // namespace

void add_patterns(Candidates& candidates) {
  reduce_patterns(candidates, /*mirrored=*/false);
  reduce_patterns(candidates, /*mirrored=*/true);
}

}  // namespace wl
