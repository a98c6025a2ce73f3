// The learned cost model: boosted trees over features of the kernel (features.h) that correct the logarithm of the
// analytic estimate. It only predicts which kernel of a group is faster; what all kernels of a group have in common
// cancels out. Another program trains it with XGBoost (ranker_train.h). A ranker is stored as text with a version, and
// evaluating it needs no library. Kernels of a kind for which it has no trees are ranked by the analytic models.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/status.h"
#include "compiler/model/features.h"

namespace wl {

// A node of a tree. If values[feature] < below, evaluation continues at node `yes`, else at node `no`. If `feature` is
// -1, the node is a leaf, whose `value` is the result of the tree.
struct TreeNode {
  int feature = -1;
  float below = 0;
  int yes = 0, no = 0;
  float value = 0;
  bool operator==(const TreeNode&) const = default;
};
using Tree = std::vector<TreeNode>;  // node 0 is the root; children have higher numbers than their parent

struct Forest {
  int rows = 0, groups = 0;  // numbers of measured kernels, and of groups, in the training data
  std::vector<Tree> trees;
  bool operator==(const Forest&) const = default;
};

struct Ranker {
  std::map<std::string, Forest> forests;  // of each kind of kernels (Features::kind): its trees
  bool knows(const std::string& kind) const { return forests.contains(kind); }
  // Returns the logarithm of the expected time in ns, up to a constant that all kernels of a group share; for an
  // unknown kind, the logarithm of the analytic estimate.
  double log_ns(const Features& features) const;
  bool operator==(const Ranker&) const = default;
};

// Convert a ranker to text with a version, and back: parse_ranker(print(r)) == r. FailedPrecondition: the ranker was
// trained for another version of the features. InvalidArgument: the text is not a ranker, or is damaged.
std::string print(const Ranker& ranker);
absl::StatusOr<Ranker> parse_ranker(std::string_view text);

}  // namespace wl
