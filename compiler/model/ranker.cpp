#include "compiler/model/ranker.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace wl {
namespace {

constexpr absl::string_view kRankerFormat = "warploom ranker 1";

double value_of(const Tree& tree, const std::vector<float>& values) {
  int at = 0;
  while (tree[at].feature >= 0) at = values[tree[at].feature] < tree[at].below ? tree[at].yes : tree[at].no;
  return tree[at].value;
}

std::string features_line() {
  std::string line = cat("features ", kFeaturesVersion);
  for (std::string_view name : feature_names()) append(&line, " ", name);
  return line;
}

// Reads a tree's node from the words of a line: "split FEATURE BELOW YES NO" or "leaf VALUE". Children must have higher
// numbers than their parent `at`, so that the evaluation of a tree always ends.
bool read_node(const std::vector<absl::string_view>& words, int at, int count, TreeNode* node) {
  if (words.size() == 2 && words[0] == "leaf")
    return absl::SimpleAtof(words[1], &node->value) && std::isfinite(node->value);
  const auto features = static_cast<int>(feature_names().size());
  return words.size() == 5 && words[0] == "split" && absl::SimpleAtoi(words[1], &node->feature) && node->feature >= 0 &&
         node->feature < features && absl::SimpleAtof(words[2], &node->below) &&
         absl::SimpleAtoi(words[3], &node->yes) && absl::SimpleAtoi(words[4], &node->no) && node->yes > at &&
         node->no > at && node->yes < count && node->no < count;
}

}  // namespace

double Ranker::log_ns(const Features& features) const {
  double sum = features.analytic_ns > 0 ? std::log(features.analytic_ns) : 0;
  const auto found = forests.find(features.kind);
  if (found == forests.end()) return sum;
  for (const Tree& tree : found->second.trees) sum += value_of(tree, features.values);
  return sum;
}

std::string print(const Ranker& ranker) {
  std::string out = cat(kRankerFormat, "\n", features_line(), "\n");
  for (const auto& [kind, forest] : ranker.forests) {
    append(&out, "forest ", kind, " ", forest.rows, " ", forest.groups, " ", forest.trees.size(), "\n");
    for (const Tree& tree : forest.trees) {
      append(&out, "tree ", tree.size(), "\n");
      for (const TreeNode& node : tree) {
        if (node.feature < 0) {
          absl::StrAppendFormat(&out, "leaf %.9g\n", node.value);
        } else {
          absl::StrAppendFormat(&out, "split %d %.9g %d %d\n", node.feature, node.below, node.yes, node.no);
        }
      }
    }
  }
  return out;
}

absl::StatusOr<Ranker> parse_ranker(std::string_view text) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(text.data(), text.size()), '\n', absl::SkipEmpty());
  if (lines.size() < 2 || lines[0] != kRankerFormat)
    return invalid("expected \"", kRankerFormat, "\" in the first line of a ranker; `warploom-train` makes one");
  if (lines[1] != features_line())
    return absl::FailedPreconditionError(
        cat("the ranker was trained for other features of kernels than this program has (expected \"",
            features_line().substr(0, 24), "...\", found \"", std::string(lines[1].substr(0, 24)),
            "...\"): train it again with this version's `warploom-train`"));
  Ranker ranker;
  size_t next = 2;
  const auto wrong = [&](std::string_view expected) {
    return invalid("line ", next + 1, " of a ranker: expected ", expected, ", found ",
                   next < lines.size() ? cat("\"", std::string(lines[next]), "\"") : "the end");
  };
  const auto words = [&] { return std::vector<absl::string_view>(absl::StrSplit(lines[next], ' ')); };
  while (next < lines.size()) {
    const std::vector<absl::string_view> head = words();
    Forest forest;
    size_t trees = 0;
    if (head.size() != 5 || head[0] != "forest" || !absl::SimpleAtoi(head[2], &forest.rows) ||
        !absl::SimpleAtoi(head[3], &forest.groups) || !absl::SimpleAtoi(head[4], &trees) || trees > lines.size())
      return wrong("\"forest KIND ROWS GROUPS TREES\"");
    for (++next; forest.trees.size() < trees; ++next) {
      const std::vector<absl::string_view> size = next < lines.size() ? words() : std::vector<absl::string_view>();
      int count = 0;
      if (size.size() != 2 || size[0] != "tree" || !absl::SimpleAtoi(size[1], &count) || count < 1 ||
          static_cast<size_t>(count) > lines.size() - next)
        return wrong("\"tree NODES\"");
      Tree tree(static_cast<size_t>(count));
      for (int at = 0; at < count; ++at)
        if (++next >= lines.size() || !read_node(words(), at, count, &tree[static_cast<size_t>(at)]))
          return wrong("\"split FEATURE BELOW YES NO\" or \"leaf VALUE\"");
      forest.trees.push_back(std::move(tree));
    }
    if (!ranker.forests.emplace(std::string(head[1]), std::move(forest)).second)
      return invalid("a ranker has two forests for ", std::string(head[1]));
  }
  return ranker;
}

}  // namespace wl
