// Judges rankings of CPU schedules by replay of a recording: nothing is measured again.
#pragma once

#include <string>
#include <vector>

#include "bench/cpu_model/record.h"
#include "compiler/model/cpu_cost.h"
#include "compiler/model/features.h"
#include "compiler/model/polydl.h"

namespace wl {

// Schedules of each calibration shape that are fitted; with the micro-kernels no more than 200.
inline constexpr int kFitted = 7;

struct JudgedPoint {
  std::string plan;
  double ns = 0;  // lowest decile of the samples
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

// The model fitted to the micro-kernels and the first kFitted schedules of each calibration shape.
CpuCost fit(const std::vector<JudgedShape>& shapes, const CpuRecording& recording, int* measured = nullptr);

// How a ranking did on one shape, all as fractions of the speed of the fastest schedule.
struct Score {
  double top1 = 0, top5percent = 0;
  double rank_correlation = 0;
};
// Scores of some rankings over shapes.
class ScoreSummary {
 public:
  explicit ScoreSummary(size_t rankings) : logs_(rankings), worst_(rankings, Score{1, 1, 1}) {}
  void add(const std::vector<Score>& scores);  // of every ranking, for one shape
  double shapes() const { return shapes_; }
  std::vector<Score> means() const;  // geometric; of rank correlations arithmetic
  const std::vector<Score>& worst() const { return worst_; }

 private:
  std::vector<Score> logs_, worst_;
  double shapes_ = 0;
};
// `predicted`: lower is better.
Score score_of(const JudgedShape& shape, const std::vector<double>& predicted);
std::vector<double> polydl_order(const JudgedShape& shape);  // places, as `predicted`
Score score_of_random(const JudgedShape& shape);             // expected

// Markdown: one row a shape, the geometric mean and the worst.
std::string judge(const std::vector<JudgedShape>& shapes, const CpuRecording& recording);
// One line a point: shape, ns, every term's amount, the micro-kernels, both PolyDL ranks, plan; tabs between.
std::string features(const std::vector<JudgedShape>& shapes);

}  // namespace wl
