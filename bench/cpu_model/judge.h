// Judges rankings of CPU schedules by the times of a recording. Nothing is measured again.
#pragma once

#include <string>
#include <vector>

#include "bench/cpu_model/record.h"
#include "compiler/model/cpu_cost.h"
#include "compiler/model/features.h"
#include "compiler/model/polydl.h"

namespace wl {

// The number of schedules of each calibration shape to which the model is fitted. With the micro-kernels, the fit has
// at most 200 points.
inline constexpr int kFitted = 7;

struct JudgedPoint {
  std::string plan;
  double ns = 0;  // time of the schedule in ns: undisturbed_ns() of its samples
  CpuWork work;
  PolydlRank polydl;
  Features features;
};
JudgedPoint judged_point(std::string plan, double ns, const Kernel& kernel, const Machine& machine);
struct JudgedShape {
  std::string name;
  bool micro = false, ranked = false;
  std::vector<JudgedPoint> points;
};
absl::StatusOr<std::vector<JudgedShape>> open_recording(const CpuRecording& recording);

// Returns the model fitted to the micro-kernels and the first kFitted schedules of each calibration shape. *measured
// becomes the number of schedules that the model is fitted to.
CpuCost fit(const std::vector<JudgedShape>& shapes, const CpuRecording& recording, int* measured = nullptr);

// The quality of a ranking on one shape: the speed of its first schedule and of the best of its first 5 %, as fractions
// of the fastest schedule's speed, and Spearman's coefficient of rank correlation.
struct Score {
  double top1 = 0, top5percent = 0;
  double rank_correlation = 0;
};
// Collects the scores of several rankings on several shapes.
class ScoreSummary {
 public:
  explicit ScoreSummary(size_t rankings) : logs_(rankings), worst_(rankings, Score{1, 1, 1}) {}
  void add(const std::vector<Score>& scores);  // adds one score per ranking, for one shape
  double shapes() const { return shapes_; }
  std::vector<Score> means() const;  // returns mean scores: arithmetic of rank correlations, geometric of all others
  const std::vector<Score>& worst() const { return worst_; }

 private:
  std::vector<Score> logs_, worst_;
  double shapes_ = 0;
};
// Returns the score of a ranking. `predicted` has a value for each schedule of the shape; a smaller value means a
// faster schedule.
Score score_of(const JudgedShape& shape, const std::vector<double>& predicted);
std::vector<double> polydl_order(const JudgedShape& shape);  // returns each schedule's rank by PolyDL's model, from 0
Score score_of_random(const JudgedShape& shape);             // returns the expected score of a random order

// Returns a table in Markdown: a row for each ranked shape, one for the means and one for the worst scores.
std::string judge(const std::vector<JudgedShape>& shapes, const CpuRecording& recording);
// Returns a text table with tabs between columns: a line of titles, then a line for each schedule with its shape, its
// time in ns, the amount of each term of the cost model, its micro-kernels, both members of its PolydlRank, and its
// plan.
std::string features(const std::vector<JudgedShape>& shapes);

}  // namespace wl
