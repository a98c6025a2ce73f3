// The learned cost model: boosted trees over features of the kernel (features.h) that correct the logarithm of what the
// analytic models say. It says nothing but which kernel of a group is faster: what all kernels of a group share
// cancels. Trained by XGBoost (ranker_train.h), elsewhere and before; a ranker is text with a version, and evaluating
// it needs no library. Kernels of a kind that it has no trees for are left to the analytic models.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/status.h"
#include "compiler/model/features.h"

namespace wl {

// values[feature] < below: yes, else no; feature -1: a leaf that adds `value`.
struct TreeNode {
  int feature = -1;
  float below = 0;
  int yes = 0, no = 0;
  float value = 0;
  bool operator==(const TreeNode&) const = default;
};
using Tree = std::vector<TreeNode>;  // node 0 is the root; children come later

struct Forest {
  int rows = 0, groups = 0;  // that it was trained on
  std::vector<Tree> trees;
  bool operator==(const Forest&) const = default;
};

struct Ranker {
  std::map<std::string, Forest> forests;  // by Features::kind
  bool knows(const std::string& kind) const { return forests.contains(kind); }
  // Logarithm of the ns expected, up to a constant of the group; of a kind that is not known, by the analytic models.
  double log_ns(const Features& features) const;
  bool operator==(const Ranker&) const = default;
};

// Versioned text; parse_ranker(print(r)) == r. FailedPrecondition: trained for other features than this program has.
// InvalidArgument: no ranker, or a damaged one.
std::string print(const Ranker& ranker);
absl::StatusOr<Ranker> parse_ranker(std::string_view text);

}  // namespace wl
