#include "bench/cpu_model/judge.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_format.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {
namespace {

bool named_in(const std::vector<CpuShape>& shapes, const std::string& name) {
  return std::any_of(shapes.begin(), shapes.end(), [&](const CpuShape& shape) { return shape.name == name; });
}

double best_of(const JudgedShape& shape) {
  double best = shape.points[0].ns;
  for (const JudgedPoint& point : shape.points) best = std::min(best, point.ns);
  return best;
}

std::vector<size_t> order_of(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  return order;
}

size_t five_percent(size_t n) {
  return (n + 19) / 20;
}

}  // namespace

JudgedPoint judged_point(std::string plan, double ns, const Kernel& kernel, const Machine& machine) {
  return {std::move(plan), ns, cpu_work(kernel, machine), polydl_rank(Reuse(kernel), machine),
          features_of(kernel, machine)};
}

absl::StatusOr<std::vector<JudgedShape>> open_recording(const CpuRecording& recording) {
  const std::vector<CpuShape> micro = micro_kernels(*recording.machine.target),
                              ranked = ranked_shapes(*recording.machine.target);
  std::vector<JudgedShape> out;
  for (const RecordedShape& recorded : recording.shapes) {
    JudgedShape judged{recorded.name, named_in(micro, recorded.name), named_in(ranked, recorded.name), {}};
    CpuShape shape{recorded.name, recorded.graph, 0, judged.micro ? 1 : 0, 0};
    WL_ASSIGN_OR_RETURN(const OpenShape open, open_shape(shape, recording.machine));
    for (const RecordedPoint& point : recorded.points) {
      if (point.samples_ns.empty()) continue;
      const auto parsed = open.space.parse(point.plan);
      if (!parsed.ok()) continue;  // the recorded plan is no longer in the space, which has changed since the recording
      WL_ASSIGN_OR_RETURN(const Kernel kernel,
                          lower(open.graph, open.domain, open.space.schedule(*parsed), open.machine));
      judged.points.push_back(judged_point(point.plan, undisturbed_ns(point.samples_ns), kernel, open.machine));
    }
    if (!judged.points.empty()) out.push_back(std::move(judged));
  }
  return out;
}

CpuCost fit(const std::vector<JudgedShape>& shapes, const CpuRecording& recording, int* measured) {
  std::vector<CpuSample> samples;
  for (const JudgedShape& shape : shapes) {
    if (shape.ranked) continue;
    for (size_t i = 0; i < shape.points.size() && (shape.micro || i < kFitted); ++i)
      samples.push_back({shape.points[i].work, shape.points[i].ns, shape.micro});
  }
  if (measured != nullptr) *measured = static_cast<int>(samples.size());
  return calibrate(samples, recording.machine, recording.device);
}

void ScoreSummary::add(const std::vector<Score>& scores) {
  for (size_t i = 0; i < scores.size(); ++i) {
    logs_[i].top1 += std::log(scores[i].top1);
    logs_[i].top5percent += std::log(scores[i].top5percent);
    logs_[i].rank_correlation += scores[i].rank_correlation;
    worst_[i].top1 = std::min(worst_[i].top1, scores[i].top1);
    worst_[i].top5percent = std::min(worst_[i].top5percent, scores[i].top5percent);
    worst_[i].rank_correlation = std::min(worst_[i].rank_correlation, scores[i].rank_correlation);
  }
  shapes_ += 1;
}

std::vector<Score> ScoreSummary::means() const {
  std::vector<Score> means;
  for (const Score& s : logs_)
    means.push_back({std::exp(s.top1 / shapes_), std::exp(s.top5percent / shapes_), s.rank_correlation / shapes_});
  return means;
}

Score score_of(const JudgedShape& shape, const std::vector<double>& predicted) {
  const double best = best_of(shape);
  const std::vector<size_t> order = order_of(predicted);
  Score score;
  score.top1 = best / shape.points[order[0]].ns;
  for (size_t i = 0; i < five_percent(order.size()); ++i)
    score.top5percent = std::max(score.top5percent, best / shape.points[order[i]].ns);
  std::vector<double> ns;
  for (const JudgedPoint& point : shape.points) ns.push_back(point.ns);
  const std::vector<size_t> truth = order_of(ns);
  std::vector<double> place(ns.size());
  for (size_t i = 0; i < truth.size(); ++i) place[truth[i]] = static_cast<double>(i);
  const double n = static_cast<double>(ns.size());
  double squares = 0;
  for (size_t i = 0; i < order.size(); ++i) squares += std::pow(place[order[i]] - static_cast<double>(i), 2);
  score.rank_correlation = 1 - 6 * squares / (n * (n * n - 1));
  return score;
}

std::vector<double> polydl_order(const JudgedShape& shape) {
  std::vector<size_t> order(shape.points.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shape.points[a].polydl < shape.points[b].polydl; });
  std::vector<double> places(order.size());
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<double>(i);
  return places;
}

Score score_of_random(const JudgedShape& shape) {
  const double best = best_of(shape);
  std::vector<double> ns;
  for (const JudgedPoint& point : shape.points) ns.push_back(point.ns);
  std::sort(ns.begin(), ns.end());
  const size_t n = ns.size(), k = five_percent(n);
  Score score;
  // The probability that the i-th fastest schedule is the best of k that are drawn at random.
  double chance = static_cast<double>(k) / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) {
    score.top1 += best / ns[i] / static_cast<double>(n);
    score.top5percent += chance * best / ns[i];
    if (i + k < n) chance *= static_cast<double>(n - i - k) / static_cast<double>(n - i - 1);
    if (i + k >= n) chance = 0;
  }
  return score;
}

std::string judge(const std::vector<JudgedShape>& shapes, const CpuRecording& recording) {
  int measured = 0;
  const CpuCost fitted = fit(shapes, recording, &measured), row = default_cpu_cost(recording.machine);
  constexpr std::string_view kTitles[] = {"model", "not calibrated", "PolyDL", "random"};
  std::string out =
      absl::StrFormat("%s; %d points measured to calibrate\n\n| shape | points |", recording.device, measured);
  for (std::string_view title : kTitles) append(&out, " ", title, ": top 1 | top 5 % | rank corr. |");
  append(&out, "\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  constexpr size_t kRankings = std::size(kTitles);
  ScoreSummary summary(kRankings);
  for (const JudgedShape& shape : shapes) {
    if (!shape.ranked) continue;
    std::vector<double> by_fit, by_row;
    for (const JudgedPoint& point : shape.points) {
      by_fit.push_back(cpu_ns(point.work, fitted));
      by_row.push_back(cpu_ns(point.work, row));
    }
    const std::vector<Score> scores = {score_of(shape, by_fit), score_of(shape, by_row),
                                       score_of(shape, polydl_order(shape)), score_of_random(shape)};
    append(&out, "| ", shape.name, " | ", shape.points.size(), " |");
    for (const Score& s : scores)
      absl::StrAppendFormat(&out, " %.3f | %.3f | %.2f |", s.top1, s.top5percent, s.rank_correlation);
    append(&out, "\n");
    summary.add(scores);
  }
  if (summary.shapes() == 0) return out;
  absl::StrAppendFormat(&out, "| **geometric mean** | %.0f shapes |", summary.shapes());
  for (const Score& s : summary.means())
    absl::StrAppendFormat(&out, " **%.3f** | **%.3f** | %.2f |", s.top1, s.top5percent, s.rank_correlation);
  append(&out, "\n| **worst** | |");
  for (const Score& s : summary.worst())
    absl::StrAppendFormat(&out, " **%.3f** | **%.3f** | %.2f |", s.top1, s.top5percent, s.rank_correlation);
  return out + "\n";
}

std::string features(const std::vector<JudgedShape>& shapes) {
  std::string out = "shape\tns";
  for (int t = 1; t < kCpuTerms; ++t) append(&out, "\t", cpu_terms()[t].name);
  append(&out, "\tmicro\tpolydl\tpolydl_tie\tplan\n");
  for (const JudgedShape& shape : shapes)
    for (const JudgedPoint& point : shape.points) {
      append(&out, shape.name, "\t", point.ns);
      for (int t = 1; t < kCpuTerms; ++t) append(&out, "\t", point.work.amount[t]);
      append(&out, "\t");
      for (const auto& [micro, steps] : point.work.micro)
        append(&out, micro.compiler, ":", micro.height, ":", micro.vectors, ":", steps, ":", micro.hints, ";");
      append(&out, "\t", point.polydl.cycles, "\t", point.polydl.tie, "\t", point.plan, "\n");
    }
  return out;
}

}  // namespace wl
