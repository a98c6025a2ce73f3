#include "compiler/cover/slab/turn_sizes.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace wl {
namespace {

// The usual numbers of rows of a block that iterates over parts of a reduced axis.
constexpr int64_t kTurnRows[] = {64, 128, 256};
constexpr int64_t kMostTurnRows = 1024;             // largest number of rows of a block if none of kTurnRows fits
constexpr int64_t kTurnLengths[] = {128, 64, 256};  // usual lengths of an iteration along the axis, best first
constexpr int64_t kShortTurns[] = {32, 16};         // usual lengths along axes of at most 64 elements (kTurnLengths[1])
// Number of lanes of a vector; the rows of a block should fill whole vectors.
constexpr int64_t kLanes = 16;

}  // namespace

std::vector<int64_t> turn_lengths(int64_t extent) {
  std::vector<int64_t> dividing, others;
  const bool is_short = extent <= kTurnLengths[1];
  for (int64_t about : is_short ? std::span<const int64_t>(kShortTurns) : std::span<const int64_t>(kTurnLengths)) {
    const int64_t turns = (extent + about - 1) / about;
    if (turns < 2) continue;
    const int64_t length = extent % about == 0 ? about : (extent + turns - 1) / turns;
    std::vector<int64_t>& to = extent % length == 0 ? dividing : others;
    if (std::find(to.begin(), to.end(), length) == to.end()) to.push_back(length);
  }
  return dividing.empty() ? others : dividing;
}

std::vector<int64_t> turn_rows(int64_t extent, int64_t least) {
  std::vector<int64_t> rows;
  if (extent <= kTurnRows[0]) return {extent};
  for (int64_t wanted : kTurnRows)
    if (extent % wanted == 0 && wanted % least == 0) rows.push_back(wanted);
  if (!rows.empty()) return rows;
  const auto badness = [](int64_t n) {
    const double filled = static_cast<double>(n) / static_cast<double>((n + kLanes - 1) / kLanes * kLanes);
    return std::abs(std::log2(static_cast<double>(n) / kTurnRows[1])) / 16 - filled;
  };
  for (int64_t n = least; n <= std::min(extent, kMostTurnRows); n += least)
    if (extent % n == 0 && n >= kLanes) rows.push_back(n);
  std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) { return badness(a) < badness(b); });
  rows.resize(std::min(rows.size(), std::size(kTurnRows)));
  return rows;
}

}  // namespace wl
