#include "compiler/model/ranker_train.h"

#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace wl {
namespace {

absl::Status checked(int code) {
  return code == 0 ? absl::OkStatus() : absl::InternalError(cat("XGBoost: ", XGBGetLastError()));
}

struct MatrixFree {
  void operator()(void* matrix) const { XGDMatrixFree(matrix); }
};
struct BoosterFree {
  void operator()(void* booster) const { XGBoosterFree(booster); }
};

constexpr int kTrees = 100;
// A score is minus the logarithm of a time, times this factor. With a factor of 10, two kernels whose times differ by
// 10 % have scores that differ by 1, so the model's odds for their order are e to 1.
constexpr double kScale = 10;
constexpr std::pair<const char*, const char*> kParameters[] = {{"objective", "rank:pairwise"},
                                                               {"base_score", "0"},
                                                               {"tree_method", "hist"},
                                                               {"nthread", "1"},
                                                               {"seed", "1"},
                                                               {"verbosity", "0"},
                                                               {"eta", "0.05"},
                                                               {"max_depth", "4"},
                                                               {"min_child_weight", "8"}};

// The training data of one kind of kernels. The rows of a group are contiguous.
struct Table {
  std::vector<float> values, labels, margins;  // `values`: the features of all rows, row by row
  std::vector<unsigned> groups;                // number of rows of each group
  size_t rows() const { return labels.size(); }
};

std::map<std::string, Table> tables_of(const std::vector<RankRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<const RankRow*>> groups;
  for (const RankRow& row : rows) groups[{row.features.kind, row.group}].push_back(&row);
  std::map<std::string, Table> tables;
  for (const auto& [name, group] : groups) {
    if (group.size() < 2) continue;
    double fastest = group[0]->ns;
    for (const RankRow* row : group) fastest = std::min(fastest, row->ns);
    Table& table = tables[name.first];
    table.groups.push_back(static_cast<unsigned>(group.size()));
    for (const RankRow* row : group) {
      table.values.insert(table.values.end(), row->features.values.begin(), row->features.values.end());
      table.labels.push_back(static_cast<float>(fastest / row->ns));
      table.margins.push_back(
          row->features.analytic_ns > 0 ? static_cast<float>(-kScale * std::log(row->features.analytic_ns)) : 0);
    }
  }
  std::erase_if(tables, [](const auto& item) { return item.second.groups.size() < kLeastGroups; });
  return tables;
}

// Reads a line of XGBoost's text, such as "3:[f7<0.5] yes=5,no=6,missing=5" or "5:leaf=0.25"; tabs may precede it.
bool read_line(absl::string_view line, Tree* tree) {
  const std::vector<absl::string_view> words = absl::StrSplit(
      line, absl::ByAnyChar("\t :[]<=,"), absl::SkipEmpty());  // words: 3 f7 0.5 yes 5 no 6 missing 5 | 5 leaf 0.25
  size_t at = 0;
  if (words.size() < 3 || !absl::SimpleAtoi(words[0], &at)) return false;
  if (tree->size() <= at) tree->resize(at + 1);
  TreeNode& node = (*tree)[at];
  if (words[1] == "leaf") return absl::SimpleAtof(words[2], &node.value);
  return words.size() >= 7 && absl::SimpleAtoi(words[1].substr(1), &node.feature) &&
         absl::SimpleAtof(words[2], &node.below) && absl::SimpleAtoi(words[4], &node.yes) &&
         absl::SimpleAtoi(words[6], &node.no);
}

absl::StatusOr<Forest> boost(const Table& table) {
  const auto columns = static_cast<bst_ulong>(feature_names().size());
  DMatrixHandle made = nullptr;
  WL_RETURN_IF_ERROR(checked(XGDMatrixCreateFromMat(table.values.data(), table.rows(), columns, NAN, &made)));
  const std::unique_ptr<void, MatrixFree> matrix(made);
  WL_RETURN_IF_ERROR(checked(XGDMatrixSetFloatInfo(made, "label", table.labels.data(), table.rows())));
  WL_RETURN_IF_ERROR(checked(XGDMatrixSetFloatInfo(made, "base_margin", table.margins.data(), table.rows())));
  WL_RETURN_IF_ERROR(checked(XGDMatrixSetUIntInfo(made, "group", table.groups.data(), table.groups.size())));
  BoosterHandle handle = nullptr;
  WL_RETURN_IF_ERROR(checked(XGBoosterCreate(&made, 1, &handle)));
  const std::unique_ptr<void, BoosterFree> booster(handle);
  for (const auto& [name, value] : kParameters) WL_RETURN_IF_ERROR(checked(XGBoosterSetParam(handle, name, value)));
  for (int round = 0; round < kTrees; ++round) WL_RETURN_IF_ERROR(checked(XGBoosterUpdateOneIter(handle, round, made)));
  bst_ulong trees = 0;
  const char** texts = nullptr;
  WL_RETURN_IF_ERROR(checked(XGBoosterDumpModel(handle, "", 0, &trees, &texts)));
  Forest forest;
  forest.rows = static_cast<int>(table.rows());
  forest.groups = static_cast<int>(table.groups.size());
  for (bst_ulong t = 0; t < trees; ++t) {
    Tree tree;
    for (absl::string_view line : absl::StrSplit(texts[t], '\n', absl::SkipEmpty()))
      if (!read_line(line, &tree))
        return absl::InternalError(cat("XGBoost printed a tree that cannot be read: ", line));
    // The shorter the time, the higher the score; dividing the score by -kScale gives the logarithm of the time.
    for (TreeNode& node : tree) node.value /= static_cast<float>(-kScale);
    forest.trees.push_back(std::move(tree));
  }
  return forest;
}

}  // namespace

absl::StatusOr<Ranker> train_ranker(const std::vector<RankRow>& rows) {
  Ranker ranker;
  for (const auto& [kind, table] : tables_of(rows)) {
    WL_ASSIGN_OR_RETURN(Forest forest, boost(table));
    ranker.forests.emplace(kind, std::move(forest));
  }
  return ranker;
}

}  // namespace wl
