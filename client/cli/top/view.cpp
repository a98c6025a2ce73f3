#include "client/cli/top/view.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/table.h"
#include "client/remote/report.h"
#include "compiler/base/names.h"
#include "proto/utc.h"

namespace wl {
namespace {

constexpr size_t kMostCell = 4096;  // number of bytes to which the text of a cell is cut
constexpr size_t kLeastFlexible = 10;
constexpr int kBar = 10;
constexpr size_t kShownEnded = 5;  // number of finished jobs that are shown if there is room

struct Column {
  std::string title;
  int leave_out;          // when space is short, columns with a greater number are left out first; 0: never
  bool right = false;     // whether the column is aligned right
  bool flexible = false;  // whether the column may be cut to kLeastFlexible characters
};
using Rows = std::vector<std::vector<std::string>>;

std::string printable(const std::string& text) {
  return fitted(text, TextKind::kName, kMostCell);
}

// Cuts a UTF-8 text to a number of columns. If the text is cut, its last character is '~'.
std::string cut_to(const std::string& text, size_t columns) {
  if (width_of(text) <= columns) return text;
  size_t at = 0;
  for (size_t width = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && ++width >= std::max<size_t>(columns, 1)) break;
  }
  return columns == 0 ? "" : text.substr(0, at) + "~";
}

// The indices and widths of the columns that fit into the terminal's width.
struct Fit {
  std::vector<size_t> columns, widths;
};

Fit fit(const std::vector<Column>& columns, const Rows& rows, int most) {
  Fit out;
  for (size_t c = 0; c < columns.size(); ++c) {
    size_t width = width_of(columns[c].title);
    for (const auto& row : rows) width = std::max(width, width_of(row[c]));
    out.columns.push_back(c);
    out.widths.push_back(width);
  }
  if (most <= 0) return out;
  const auto least = [&](size_t i) {
    return columns[out.columns[i]].flexible ? std::min(out.widths[i], kLeastFlexible) : out.widths[i];
  };
  for (;;) {
    size_t total = 2 * (out.columns.size() - 1);
    for (size_t i = 0; i < out.columns.size(); ++i) total += least(i);
    if (total <= static_cast<size_t>(most)) {
      size_t spare = static_cast<size_t>(most) - total;
      for (size_t i = 0; i < out.columns.size(); ++i) {
        const size_t width = std::min(out.widths[i], least(i) + spare);
        spare -= width - least(i);
        out.widths[i] = width;
      }
      return out;
    }
    size_t goes = 0;
    for (size_t i = 1; i < out.columns.size(); ++i)
      if (columns[out.columns[i]].leave_out > columns[out.columns[goes]].leave_out) goes = i;
    if (columns[out.columns[goes]].leave_out == 0) return out;
    out.columns.erase(out.columns.begin() + static_cast<std::ptrdiff_t>(goes));
    out.widths.erase(out.widths.begin() + static_cast<std::ptrdiff_t>(goes));
  }
}

class Lines {
 public:
  Lines(TopSize size, bool colour) : size_(size), colour_(colour) {}

  void add(std::string text, const char* style = "") {
    if (size_.columns > 0) text = cut_to(text, static_cast<size_t>(size_.columns));
    lines_.push_back(colour_ && *style != '\0' ? style + text + kPlain : std::move(text));
  }

  // Adds the titles, and at most `most` lines for the rows. If not all rows fit, the last line says how many are left
  // out.
  void table(const std::vector<Column>& columns, const Rows& rows, size_t most) {
    const Fit fitting = fit(columns, rows, size_.columns);
    std::vector<std::string> titles;
    for (const Column& column : columns) titles.push_back(column.title);
    add(line(columns, fitting, titles), kBold);
    const size_t shown = rows.size() <= most ? rows.size() : most > 0 ? most - 1 : 0;
    for (size_t i = 0; i < shown; ++i) add(line(columns, fitting, rows[i]));
    if (shown < rows.size() && most > 0) add(cat("... and ", rows.size() - shown, " more"), kDim);
  }

  std::vector<std::string> take() {
    if (size_.rows > 0 && lines_.size() > static_cast<size_t>(size_.rows))
      lines_.resize(static_cast<size_t>(size_.rows));
    return std::move(lines_);
  }

 private:
  static std::string line(const std::vector<Column>& columns, const Fit& fitting,
                          const std::vector<std::string>& cells) {
    std::string out;
    for (size_t i = 0; i < fitting.columns.size(); ++i) {
      const Column& column = columns[fitting.columns[i]];
      const std::string cell = cut_to(cells[fitting.columns[i]], fitting.widths[i]);
      const std::string space(fitting.widths[i] - width_of(cell), ' ');
      append(&out, i == 0 ? "" : "  ", column.right ? space + cell : cell + space);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  }

  const TopSize size_;
  const bool colour_;
  std::vector<std::string> lines_;
};

std::string bar_text(const Job& job) {
  const JobProgress& progress = job.progress;
  if (progress.trials_total <= 0) return "";
  const double share =
      std::clamp(static_cast<double>(progress.trials_done) / static_cast<double>(progress.trials_total), 0.0, 1.0);
  const auto full = static_cast<size_t>(std::lround(share * kBar));
  return absl::StrFormat("[%s%s] %3.0f%%", std::string(full, '#'), std::string(kBar - full, '.'),
                         std::floor(100 * share));
}

std::string seconds_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::clamp(seconds + 0.5, 0.0, 1e12));
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string rate_text_of(double rate) {
  if (!(rate > 0)) return "-";
  return rate < 10 ? absl::StrFormat("%.2f", rate) : absl::StrFormat("%.0f", rate);
}

std::string state_text(const Job& job) {
  if (job.cancelling && !is_done(job.state)) return "cancelling";
  const std::string state = kJobStateNames[static_cast<int>(job.state)];
  return job.state == JobState::kRunning && !job.progress.phase.empty() ? job.progress.phase : state;
}

Rows job_rows(const Snapshot& snapshot, const Rates& rates, size_t ended) {
  Rows rows;
  for (const Job& job : snapshot.open) {
    const auto rate = rates.find(job.name);
    rows.push_back({printable(job.name), state_text(job), bar_text(job),
                    cat(job.progress.trials_done, "/", job.progress.trials_total),
                    rate_text_of(rate == rates.end() ? 0 : rate->second),
                    job.progress.left_s > 0 ? seconds_text(job.progress.left_s) : "-", cat(job.progress.workers),
                    printable(job.options.target), printable(job.label)});
  }
  for (size_t i = 0; i < std::min(ended, snapshot.ended.size()); ++i) {
    const Job& job = snapshot.ended[i];
    rows.push_back({printable(job.name), state_text(job), "",
                    job.progress.trials_done > 0 ? cat(job.progress.trials_done) : "", "", "", "",
                    printable(job.options.target), printable(job.label)});
  }
  return rows;
}

std::string doing_text(const WorkerSummary& worker) {
  if (!worker.alive) return "lost";
  if (worker.doing.empty()) return "waits for work";
  std::vector<std::string> parts;
  for (const LeaseSummary& lease : worker.doing)
    parts.push_back(cat(lease.step.empty() ? "begins" : lease.step, ", ", purpose_text(lease.phase), ", ",
                        lease.candidates, lease.candidates == 1 ? " candidate" : " candidates"));
  return absl::StrJoin(parts, "; ");
}

Rows worker_rows(const Snapshot& snapshot) {
  Rows rows;
  for (const WorkerSummary& worker : snapshot.workers) {
    std::vector<std::string> devices;
    for (const Device& device : worker.devices) devices.push_back(cat(device.target, " ", device.name));
    const double silent_s = static_cast<double>(snapshot.unix_ms - worker.last_seen_unix_ms) / 1e3;
    rows.push_back({printable(shown_name(worker.name)), printable(doing_text(worker)),
                    worker.doing.empty() ? "-" : seconds_text(worker.doing[0].seconds), seconds_text(silent_s),
                    printable(absl::StrJoin(devices, "; "))});
  }
  return rows;
}

// Divides `room` lines between the rows of jobs and of workers: workers get up to a third of the lines or, if that is
// more, all that the jobs do not need.
std::pair<size_t, size_t> divided(size_t room, size_t jobs, size_t workers) {
  if (jobs + workers <= room) return {jobs, workers};
  const size_t for_workers = std::min(workers, std::max(room / 3, room - std::min(room, jobs)));
  return {room - for_workers, for_workers};
}

std::string head_text(const Snapshot& snapshot) {
  return cat(snapshot.unix_ms == 0 ? "-" : utc_text(snapshot.unix_ms / 1000, "%H:%M:%S UTC"), "  ",
             printable(snapshot.server),
             snapshot.about.version.empty() ? "" : cat("  warploomd ", printable(snapshot.about.version)));
}

std::string trouble_text(const TopTrouble& trouble) {
  return cat("no answer for ", trouble.since_s, " s, trying again: ", printable(trouble.message));
}

// Returns a time in a unit that suits it, from nanoseconds to hours.
std::string span_text(double ns) {
  constexpr std::pair<double, const char*> kUnits[] = {
      {3.6e12, "h"}, {6e10, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
  for (const auto& [unit, name] : kUnits)
    if (ns >= unit) return absl::StrFormat(ns < 100 * unit ? "%.1f %s" : "%.0f %s", ns / unit, name);
  return ns > 0 ? absl::StrFormat("%.0f ns", ns) : "-";
}

std::string share_text(const UseSum& sum, UseKind kind) {
  const double all = sum.all_ns();
  return absl::StrFormat("%.0f %%", all > 0 ? 100 * sum.ns[static_cast<size_t>(kind)] / all : 0);
}

Rows team_rows(const Usage& usage) {
  Rows rows;
  for (const TeamUsage& team : usage.teams)
    rows.push_back({team.team.empty() ? "no team" : printable(team.team), span_text(team.sum.all_ns()),
                    cat(team.sum.all_calls()), share_text(team.sum, UseKind::kTuned),
                    share_text(team.sum, UseKind::kPredicted), share_text(team.sum, UseKind::kDefault),
                    span_text(team.saved_ns), span_text(team.cost_s * 1e9), cat(team.missed)});
  return rows;
}

Rows worth_rows(const Usage& usage) {
  Rows rows;
  for (const KernelUsage& kernel : usage.kernels)
    rows.push_back({kernel.key.substr(0, 12), span_text(kernel.saving_per_day), span_text(kernel.ns_per_day),
                    absl::StrFormat("%.0f", kernel.calls_per_day), kUseKindNames[static_cast<size_t>(kernel.kind)],
                    span_text(kernel.best_ns), span_text(kernel.default_ns), span_text(kernel.bound_ns),
                    cat(kernel.trials), kernel.team.empty() ? "-" : printable(kernel.team), printable(kernel.device),
                    printable(kernel.name),
                    kernel.stopped.empty() ? "" : cat("not searched: ", printable(kernel.stopped))});
  return rows;
}

Rows missed_rows(const Usage& usage) {
  Rows rows;
  for (const MissedUsage& missed : usage.missed)
    rows.push_back({missed.model.empty() ? "-" : printable(missed.model), cat(missed.count), printable(missed.job),
                    printable(missed.target), printable(missed.why)});
  return rows;
}

}  // namespace

std::vector<std::string> top_lines(const Snapshot& snapshot, const Rates& rates, const TopTrouble& trouble,
                                   TopSize size, bool colour) {
  Lines lines(size, colour);
  size_t running = 0, busy = 0, alive = 0;
  for (const Job& job : snapshot.open) running += job.state == JobState::kRunning ? 1 : 0;
  for (const WorkerSummary& worker : snapshot.workers) {
    alive += worker.alive ? 1 : 0;
    busy += worker.alive && !worker.doing.empty() ? 1 : 0;
  }
  double rate = 0;
  for (const auto& [name, one] : rates) rate += one;
  lines.add(cat(head_text(snapshot), snapshot.about.draining ? "  DRAINED: workers get no new work" : "",
                size.rows > 0 ? "  (u: usage)" : ""),
            kBold);
  lines.add(cat("jobs: ", running, " running, ", snapshot.open.size() - running, " queued  workers: ", busy, " busy, ",
                alive - busy, " idle, ", snapshot.workers.size() - alive, " lost  trials/s: ", rate_text_of(rate)));
  size_t fixed = 6;  // number of lines besides the rows: two headers, two lines of titles and two empty lines
  if (snapshot.about.groups_found + snapshot.about.groups_missed > 0) {
    lines.add(cat("found in the store: ", found_text(snapshot.about)));
    ++fixed;
  }
  if (!trouble.message.empty()) {
    lines.add(trouble_text(trouble), kRed);
    ++fixed;
  }
  const size_t rows = size.rows <= 0 ? SIZE_MAX : static_cast<size_t>(size.rows);
  const size_t room = rows > fixed ? rows - fixed : 0;
  const size_t taken = snapshot.open.size() + snapshot.workers.size();
  const Rows jobs = job_rows(snapshot, rates, std::min(kShownEnded, room > taken ? room - taken : 0));
  const Rows workers = worker_rows(snapshot);
  const auto [for_jobs, for_workers] = divided(room, jobs.size(), workers.size());
  lines.add("");
  lines.table({{"JOB", 0},
               {"STATE", 2},
               {"DONE", 4},
               {"TRIALS", 1, true},
               {"TRIALS/S", 5, true},
               {"LEFT", 6, true},
               {"WORKERS", 8, true},
               {"TARGET", 7},
               {"WHAT", 3, false, true}},
              jobs, for_jobs);
  lines.add("");
  lines.table({{"WORKER", 0, false, true},
               {"DOING", 1, false, true},
               {"FOR", 2, true},
               {"SILENT", 4, true},
               {"DEVICES", 3, false, true}},
              workers, for_workers);
  return lines.take();
}

std::vector<std::string> usage_lines(const Snapshot& snapshot, const TopTrouble& trouble, TopSize size, bool colour) {
  Lines lines(size, colour);
  lines.add(cat(head_text(snapshot), size.rows > 0 ? "  (u: jobs and workers)" : ""), kBold);
  if (!trouble.message.empty()) lines.add(trouble_text(trouble), kRed);
  if (!snapshot.usage) {
    lines.add(snapshot.usage_unix_ms == 0 ? "asking what programs run"
                                          : "this coordinator is of a version that does not say what programs run");
    return lines.take();
  }
  const Usage& usage = *snapshot.usage;
  const UseSum& sum = usage.total;
  if (usage.kernels_in_all == 0)
    lines.add("no program has said in the last week what it runs: they count what they load from this coordinator");
  else
    lines.add(cat("programs, ", usage.days == 1 ? "today" : cat("last ", usage.days, " days"), ": ",
                  span_text(sum.all_ns()), " in ", sum.all_calls(), " launches: tuned ",
                  share_text(sum, UseKind::kTuned), ", predicted ", share_text(sum, UseKind::kPredicted), ", default ",
                  share_text(sum, UseKind::kDefault)));
  lines.add(cat("tuning has saved ", span_text(usage.saved_ns), "; searches took ", span_text(usage.cost_s * 1e9),
                " of workers for ", usage.trials, " candidates"));
  if (!usage.background.empty()) lines.add(cat("no search begins by itself now: ", printable(usage.background)), kDim);
  const Rows teams = team_rows(usage), worth = worth_rows(usage), missed = missed_rows(usage);
  constexpr size_t kFixed = 11;  // lines besides the rows: at most five before them, three titles, three empty lines
  const size_t rows = size.rows <= 0 ? SIZE_MAX : static_cast<size_t>(size.rows);
  const size_t room = rows > kFixed ? rows - kFixed : 0;
  const size_t for_teams = std::min(teams.size(), room / 4), for_missed = std::min(missed.size(), room / 4);
  if (!teams.empty()) {
    lines.add("");
    lines.table({{"TEAM", 0, false, true},
                 {"TIME", 1, true},
                 {"CALLS", 8, true},
                 {"TUNED", 2, true},
                 {"PREDICTED", 7, true},
                 {"DEFAULT", 3, true},
                 {"SAVED", 4, true},
                 {"COST", 5, true},
                 {"MISSED", 6, true}},
                teams, for_teams);
  }
  if (!worth.empty()) {
    lines.add("");
    lines.table({{"WORTH MOST", 0},
                 {"SAVES/DAY", 1, true},
                 {"TIME/DAY", 2, true},
                 {"CALLS/DAY", 10, true},
                 {"KIND", 5},
                 {"NOW", 6, true},
                 {"DEFAULT", 7, true},
                 {"BOUND", 8, true},
                 {"TRIALS", 9, true},
                 {"TEAM", 11},
                 {"DEVICE", 12},
                 {"WHAT", 3, false, true},
                 {"", 4, false, true}},
                worth, room - for_teams - for_missed);
  }
  if (!missed.empty()) {
    lines.add("");
    lines.table(
        {{"ASKED IN VAIN", 0, false, true}, {"TIMES", 1, true}, {"LAST", 3}, {"TARGET", 4}, {"WHY", 2, false, true}},
        missed, for_missed);
  }
  return lines.take();
}

}  // namespace wl
