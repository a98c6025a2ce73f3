// Trains rankers (ranker.h), with XGBoost; the only place that knows it. Nothing that answers requests calls this.
#pragma once

#include <string>
#include <vector>

#include "compiler/model/ranker.h"

namespace wl {

// A kernel that was timed. Only times of one group are compared with each other.
struct RankRow {
  std::string group;  // key and device: what shares a time scale
  Features features;
  double ns = 0;
};

inline constexpr int kLeastGroups = 2;  // of a kind, that it is learned from

// Pairwise (LambdaRank), from the analytic models on: a forest for every kind of which there are kLeastGroups groups of
// two rows or more. The same rows in the same order make the same ranker. Internal: XGBoost's own message.
absl::StatusOr<Ranker> train_ranker(const std::vector<RankRow>& rows);

}  // namespace wl
