// Judges the learned ranker (compiler/model/ranker.h) on recorded times. Nothing is measured.
//
//   ranker judge RECORDING TABLE...            judges every group by a ranker trained on all other groups, and
//                                              other models for comparison
//   ranker judge-store STORE                   judges the groups of a store, each by a ranker trained on the other
//                                              four fifths of the groups; prints means for each kind of group
//   ranker train OUT GROUP RECORDING TABLE...  trains a ranker on all groups but GROUP ("-": on all), for
//                                              `replay --ranker`
//
// RECORDING is a file of bench/cpu_model; TABLEs are spaces recorded by bench/record.py. A model that predicts nothing
// for a group's kernels gets the score of a random order.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>

#include "absl/strings/str_format.h"
#include "bench/cpu_model/judge.h"
#include "bench/replay/t4.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "server/training.h"

namespace wl {
namespace {

constexpr size_t kFolds = 5;       // number of cross-validation folds over a store's groups
constexpr size_t kMinKernels = 8;  // a group is judged only if it has at least this many kernels

absl::StatusOr<JudgedShape> open_table(const std::string& path) {
  WL_ASSIGN_OR_RETURN(const std::unique_ptr<Recording> table, read_t4(path));
  WL_ASSIGN_OR_RETURN(const Machine machine, recorded_machine(*table));
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(table->graph));
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze(graph, machine));
  WL_ASSIGN_OR_RETURN(const Space space, space_of(graph, domain, machine));
  JudgedShape out{table->name, false, true, {}};
  for (const auto& [point, result] : table->results) {
    if (!result.correct) continue;
    const std::string plan = table->space.text(point);
    WL_ASSIGN_OR_RETURN(const Point parsed, space.parse(plan));
    WL_ASSIGN_OR_RETURN(const Kernel kernel, lower(graph, domain, space.schedule(parsed), machine));
    out.points.push_back(judged_point(plan, result.ns, kernel, machine));
  }
  return out;
}

std::vector<RankRow> rows_of(const std::vector<JudgedShape>& shapes, const std::string& without) {
  std::vector<RankRow> rows;
  for (const JudgedShape& shape : shapes) {
    if (shape.micro || shape.name == without) continue;
    for (const JudgedPoint& point : shape.points) rows.push_back({shape.name, point.features, point.ns});
  }
  return rows;
}

Score score_of_ranker(const Ranker& ranker, const JudgedShape& shape) {
  if (!ranker.knows(shape.points[0].features.kind) && shape.points[0].features.analytic_ns == 0)
    return score_of_random(shape);
  std::vector<double> expected;
  for (const JudgedPoint& point : shape.points) expected.push_back(ranker.log_ns(point.features));
  return score_of(shape, expected);
}

Score score_of_first(const JudgedShape& shape) {
  std::vector<double> order;
  for (size_t i = 0; i < shape.points.size(); ++i) order.push_back(static_cast<double>(i));
  return score_of(shape, order);
}

std::string cells(const std::vector<Score>& scores) {
  std::string out;
  for (const Score& s : scores)
    absl::StrAppendFormat(&out, " %.3f | %.3f | %.2f |", s.top1, s.top5percent, s.rank_correlation);
  return out + "\n";
}

std::string heads(const char* first, const std::vector<std::string>& titles) {
  std::string out = cat("| ", first, " | "), line = "|---|---|";
  append(&out, titles[0], " |");
  for (size_t i = 1; i < titles.size(); ++i) {
    append(&out, " ", titles[i], ": top 1 | top 5 % | rank corr. |");
    line += "---|---|---|";
  }
  return cat(out, "\n", line, "\n");
}

absl::StatusOr<std::string> judge(const std::vector<JudgedShape>& shapes) {
  std::string out = heads("group", {"kernels", "ranker", "analytic", "PolyDL", "random"});
  ScoreSummary contractions(4), all(4);
  for (const JudgedShape& shape : shapes) {
    if (!shape.ranked) continue;
    WL_ASSIGN_OR_RETURN(const Ranker ranker, train_ranker(rows_of(shapes, shape.name)));
    const bool known = ranker.knows(shape.points[0].features.kind);
    const std::vector<Score> scores = {score_of_ranker(ranker, shape), score_of_ranker(Ranker(), shape),
                                       score_of(shape, polydl_order(shape)), score_of_random(shape)};
    append(&out, "| ", shape.name, known ? "" : " (no other of its kind)", " | ", shape.points.size(), " |",
           cells(scores));
    all.add(scores);
    if (shape.points[0].features.analytic_ns > 0) contractions.add(scores);
  }
  append(&out, "| **contractions, geometric mean** | ", contractions.shapes(), " groups |", cells(contractions.means()),
         "| **contractions, worst** | |", cells(contractions.worst()));
  append(&out, "| **all, geometric mean** | ", all.shapes(), " groups |", cells(all.means()), "| **all, worst** | |",
         cells(all.worst()));
  return out;
}

absl::StatusOr<std::string> judge_store(const std::string& path) {
  StoreOptions options;
  options.file = path;
  WL_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(options));
  WL_ASSIGN_OR_RETURN(const TrainingRows training, training_rows(*store));
  // The same group in several environments belongs to one fold, so that no ranker is judged by a group that it was
  // trained on.
  std::map<std::string, std::map<std::string, JudgedShape>> keys;
  for (const RankRow& row : training.rows) {
    JudgedShape& shape = keys[row.group.substr(0, row.group.find(' '))][row.group];
    shape.name = row.group;
    shape.points.push_back({"", row.ns, {}, {}, row.features});
  }
  std::map<std::string, ScoreSummary> kinds;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<JudgedShape> known, judged;
    size_t number = 0;
    for (const auto& [key, shapes] : keys)
      for (auto& to = number++ % kFolds == fold ? judged : known; const auto& [name, shape] : shapes)
        to.push_back(shape);
    WL_ASSIGN_OR_RETURN(const Ranker ranker, train_ranker(rows_of(known, "")));
    for (const JudgedShape& shape : judged)
      if (shape.points.size() >= kMinKernels)
        kinds.try_emplace(shape.points[0].features.kind, 4)
            .first->second.add({score_of_ranker(ranker, shape), score_of_ranker(Ranker(), shape), score_of_first(shape),
                                score_of_random(shape)});
  }
  std::string out = cat(training.rows.size(), " trials of ", training.groups, " groups\n\n",
                        heads("kind", {"groups", "ranker", "analytic", "order of the search", "random"}));
  for (const auto& [kind, columns] : kinds)
    append(&out, "| ", kind, " | ", columns.shapes(), " |", cells(columns.means()));
  return out;
}

absl::Status run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "judge-store") {
    WL_ASSIGN_OR_RETURN(const std::string table, judge_store(words[1]));
    std::cout << table;
    return absl::OkStatus();
  }
  const size_t files = words.empty() ? 0 : words[0] == "train" ? 3 : words[0] == "judge" ? 1 : 0;
  if (files == 0 || words.size() <= files)
    return invalid("usage: ranker judge RECORDING TABLE... | judge-store STORE | train OUT GROUP RECORDING TABLE...");
  WL_ASSIGN_OR_RETURN(const CpuRecording recording, unpack(words[files]));
  WL_ASSIGN_OR_RETURN(std::vector<JudgedShape> shapes, open_recording(recording));
  for (size_t i = files + 1; i < words.size(); ++i) {
    WL_ASSIGN_OR_RETURN(JudgedShape table, open_table(words[i]));
    shapes.push_back(std::move(table));
  }
  if (words[0] == "judge") {
    WL_ASSIGN_OR_RETURN(const std::string table, judge(shapes));
    std::cout << recording.device << "\n\n" << table;
    return absl::OkStatus();
  }
  WL_ASSIGN_OR_RETURN(const Ranker ranker, train_ranker(rows_of(shapes, words[2])));
  std::ofstream(words[1]) << print(ranker);
  return absl::OkStatus();
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  const absl::Status status = wl::run({argv + 1, argv + argc});
  if (!status.ok()) std::cerr << "ranker: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
