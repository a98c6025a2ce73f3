// Exports the searches whose trials a store has:
//
//   history t4 STORE FOLDER    writes every search that made a record as a file in the T4 format (bench/replay/t4.h),
//                              for bench/replay/replay.cpp and other tools
//   history svg STORE OUT.svg  draws a chart of the best time of each group after every trial
//
// No other process may have the store open.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "bench/replay/t4.h"
#include "compiler/base/status.h"
#include "server/store/store.h"

namespace wl {
namespace {

using Json = nlohmann::json;
constexpr int kMaxRecords = 10'000;
constexpr int kWidth = 720, kHeight = 360, kMargin = 48, kLine = 16;

struct History {
  KernelRecord record;
  std::vector<Trial> trials;  // trials of the search, in their order, without those of promotions
};

absl::StatusOr<std::vector<History>> histories_of(const std::string& path) {
  StoreOptions options;
  options.file = path;
  WL_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(options));
  WL_ASSIGN_OR_RETURN(std::vector<RecordRow> rows, store->list_records(std::nullopt, kMaxRecords, {.every = true}));
  std::vector<History> out;
  for (RecordRow& row : rows) {
    WL_ASSIGN_OR_RETURN(std::vector<PhaseTrial> trials, store->trials(row.search_id));
    History history;
    history.record = std::move(row.record);
    for (PhaseTrial& item : trials)
      if (item.phase == 0) history.trials.push_back(std::move(item.trial));
    if (!history.trials.empty()) out.push_back(std::move(history));
  }
  return out;
}

Json t4_of(const History& history) {
  const KernelRecord& record = history.record;
  Json results = Json::array();
  for (const Trial& trial : history.trials)
    results.push_back(t4_result(trial.plan, trial.outcome, trial.samples_ns, trial.compile_s));
  return t4_file({{"graph", record.graph},
                  {"key", record.key},
                  {"strategy", record.strategy},
                  {"device", {{"target", record.device.target}, {"name", record.device.name}}},
                  {"environment", record.environment}},
                 results);
}

// Returns the search's progress after every trial: its final best time divided by the best time so far, so 1 at the
// end, and 0 while no trial was correct.
std::vector<double> progress_of(const History& history) {
  std::vector<double> best;
  double now = 0;
  for (const Trial& trial : history.trials) {
    const double ns = trial.outcome == Outcome::kCorrect ? undisturbed_ns(trial.samples_ns) : 0;
    if (ns > 0 && (now == 0 || ns < now)) now = ns;
    best.push_back(now);
  }
  for (double& value : best) value = value > 0 ? now / value : 0;
  return best;
}

std::string title_of(const History& history) {
  const std::string& plan = history.record.plan;
  const size_t at = plan.find("class=");
  const std::string cls = at == std::string::npos ? "" : plan.substr(at + 6, plan.find(' ', at) - at - 6);
  const double ns = median_of(history.record.samples_ns), standard = median_of(history.record.default_samples_ns);
  return absl::StrFormat("%s, %d ops: %.1f us, %.2fx the default, %d trials", cls, history.record.ops, ns / 1e3,
                         ns > 0 ? standard / ns : 1.0, history.trials.size());
}

std::string svg_of(const std::vector<History>& histories) {
  size_t most = 2;
  for (const History& history : histories) most = std::max(most, history.trials.size());
  const int height = kHeight + 2 * kMargin + kLine * static_cast<int>(histories.size());
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth + 2 * kMargin, height);
  for (int tenth = 0; tenth <= 10; tenth += 2) {
    const int y = kMargin + kHeight - kHeight * tenth / 10;
    append(&svg, absl::StrFormat("<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/><text x=\"%d\" "
                                 "y=\"%d\" text-anchor=\"end\">%.1f</text>\n",
                                 kMargin, kMargin + kWidth, y, y, kMargin - 6, y + 4, tenth / 10.0));
  }
  append(&svg, absl::StrFormat("<text x=\"%d\" y=\"%d\">best so far, part of the best found, over %d trials</text>\n",
                               kMargin, kMargin - 16, most));
  for (size_t i = 0; i < histories.size(); ++i) {
    const std::string colour = absl::StrFormat("hsl(%d,70%%,45%%)", 360 * i / histories.size());
    std::string points;
    const std::vector<double> progress = progress_of(histories[i]);
    for (size_t t = 0; t < progress.size(); ++t)
      append(&points,
             absl::StrFormat("%.1f,%.1f ", kMargin + kWidth * static_cast<double>(t) / static_cast<double>(most - 1),
                             kMargin + kHeight * (1 - progress[t])));
    const int y = kMargin + kHeight + 28 + kLine * static_cast<int>(i);
    append(&svg, absl::StrFormat("<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n"
                                 "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%d\" "
                                 "y=\"%d\">%s</text>\n",
                                 points, colour, kMargin, y - 9, colour, kMargin + 16, y, title_of(histories[i])));
  }
  return svg + "</svg>\n";
}

absl::Status run(const std::vector<std::string>& words) {
  if (words.size() != 3 || (words[0] != "t4" && words[0] != "svg"))
    return invalid("usage: history t4 STORE FOLDER | svg STORE OUT.svg");
  WL_ASSIGN_OR_RETURN(const std::vector<History> histories, histories_of(words[1]));
  if (histories.empty()) return absl::NotFoundError(cat(words[1], " has no search; `warploom tune` makes some"));
  if (words[0] == "svg") {
    std::ofstream(words[2]) << svg_of(histories);
    return absl::OkStatus();
  }
  std::filesystem::create_directories(words[2]);
  for (const History& history : histories)
    std::ofstream(cat(words[2], "/", history.record.key.substr(0, 16), ".T4.json")) << t4_of(history).dump() << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  const absl::Status status = wl::run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "history: %s\n", std::string(status.message()).c_str());
  return 1;
}
