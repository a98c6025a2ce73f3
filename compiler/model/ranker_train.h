// Trains rankers (ranker.h). This is the only use of XGBoost, and the coordinator does not call it.
#pragma once

#include <string>
#include <vector>

#include "compiler/model/ranker.h"

namespace wl {

// A kernel with its measured time. Times are only compared within a group.
struct RankRow {
  std::string group;  // the key of the kernel's group, and the device
  Features features;
  double ns = 0;
};

inline constexpr int kLeastGroups = 2;  // a kind of kernels with fewer groups gets no trees

// Trains rankers by pairwise comparison (LambdaRank), starting from the analytic estimates. A kind of kernels gets a
// forest if it has kLeastGroups groups or more of at least two rows each. The same rows in the same order give the
// same ranker. If XGBoost fails, returns an Internal error with XGBoost's message.
absl::StatusOr<Ranker> train_ranker(const std::vector<RankRow>& rows);

}  // namespace wl
