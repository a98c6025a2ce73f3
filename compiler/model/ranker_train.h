// Trains rankers (ranker.h) with XGBoost, which nothing else uses. The coordinator does not call this.
#pragma once

#include <string>
#include <vector>

#include "compiler/model/ranker.h"

namespace wl {

// A kernel and its measured time. Only times of the same group are compared with each other.
struct RankRow {
  std::string group;  // key and device; times of one group are comparable
  Features features;
  double ns = 0;
};

inline constexpr int kLeastGroups = 2;  // a kind with fewer groups is not trained

// Pairwise training (LambdaRank) that starts from the analytic estimates: a forest for every kind with kLeastGroups
// groups or more of at least two rows. The same rows in the same order give the same ranker. Internal: XGBoost failed,
// with its message.
absl::StatusOr<Ranker> train_ranker(const std::vector<RankRow>& rows);

}  // namespace wl
