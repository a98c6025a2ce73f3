#include "client/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "client/cli/table.h"
#include "client/program/json.h"
#include "client/remote/report.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

int64_t valid(const GroupProgress& group) {
  return group.outcomes[static_cast<size_t>(Outcome::kCorrect)];
}

int64_t invalid_ones(const GroupProgress& group) {
  int64_t sum = 0;
  for (int64_t count : group.outcomes) sum += count;
  return sum - valid(group);
}

std::string left_text(double seconds) {
  if (!(seconds > 0)) return "";
  auto whole = static_cast<int64_t>(seconds + 0.5);
  return absl::StrFormat(", %d:%02d left", whole / 60, whole % 60);
}

std::string speed_up(const GroupProgress& group) {
  if (!(group.best_ns > 0) || !(group.default_ns > 0)) return "";
  return absl::StrFormat(" (%.2fx)", group.default_ns / group.best_ns);
}

std::string cut(std::string text, int columns) {
  if (static_cast<int>(text.size()) > columns) text.resize(static_cast<size_t>(std::max(columns, 0)));
  return text;
}

std::string summary(const JobProgress& progress) {
  int64_t good = 0, bad = 0;
  for (const GroupProgress& group : progress.groups) {
    good += valid(group);
    bad += invalid_ones(group);
  }
  std::string text = absl::StrFormat("[%s] %d/%d trials, %d valid, %d invalid%s", progress.phase, progress.trials_done,
                                     progress.trials_total, good, bad, left_text(progress.left_s));
  if (progress.workers == 0 && progress.phase != "done") text += ", waiting for a worker";
  return text;
}

ProgressForm form_of(const std::string& form) {
  if (form == "json") return ProgressForm::kJson;
  const bool terminal = wants_colour(STDERR_FILENO) || isatty(STDERR_FILENO) != 0;
  return form == "auto" && terminal ? ProgressForm::kRedrawn : ProgressForm::kLines;
}

}  // namespace

void GroupCurves::add(const JobProgress& progress) {
  for (const GroupProgress& group : progress.groups) {
    if (group.is_default || group.cached || !(group.best_ns > 0)) continue;
    auto curve = std::find_if(all_.begin(), all_.end(), [&](const Curve& each) { return each.key == group.key; });
    if (curve == all_.end()) curve = all_.insert(all_.end(), {group.key, group.name, {}});
    // The promotion measures finalists again, and may find longer times. A curve keeps only values that decrease.
    if (curve->best.empty() || group.best_ns < curve->best.back().second)
      curve->best.emplace_back(group.trials_done, group.best_ns);
  }
}

std::string progress_json(const Job& job) {
  const JobProgress& progress = job.progress;
  Json json = {{"job", job.name},
               {"state", kJobStateNames[static_cast<int>(job.state)]},
               {"phase", progress.phase},
               {"trials_done", progress.trials_done},
               {"trials_total", progress.trials_total},
               {"elapsed_s", progress.elapsed_s},
               {"left_s", progress.left_s},
               {"workers", progress.workers},
               {"groups", Json::array()}};
  for (const GroupProgress& group : progress.groups) {
    if (group.is_default) continue;
    json["groups"].push_back({{"key", group.key},
                              {"what", group.name},
                              {"count", group.count},
                              {"trials_done", group.trials_done},
                              {"trials_total", group.trials_total},
                              {"valid", valid(group)},
                              {"best_ns", group.best_ns},
                              {"default_ns", group.default_ns},
                              {"done", group.done},
                              {"cached", group.cached}});
  }
  return line_of(json);
}

std::vector<std::string> progress_lines(const JobProgress& progress, int rows, int columns) {
  // Kernels that are measured only for comparison appear in the summary alone. If not all groups fit on the screen,
  // unfinished ones come first.
  std::vector<const GroupProgress*> groups;
  for (const GroupProgress& group : progress.groups) {
    if (!group.is_default) groups.push_back(&group);
  }
  size_t room = static_cast<size_t>(std::max(rows - 2, 1));
  size_t hidden = 0;
  if (groups.size() > room) {
    std::stable_partition(groups.begin(), groups.end(), [](const GroupProgress* group) { return !group->done; });
    hidden = groups.size() - room;
    groups.resize(room);
  }
  std::vector<std::string> lines;
  constexpr int kFigures = 48;  // number of characters of a progress line besides the group's name
  size_t width = static_cast<size_t>(std::clamp(columns - kFigures, 12, 40));
  for (const GroupProgress* group : groups) {
    std::string trials = group->cached ? "from the store" : cat(group->trials_done, "/", group->trials_total);
    lines.push_back(
        cut(absl::StrFormat("%-*s x%-3d %-14s best %s%s", static_cast<int>(width), group->name.substr(0, width),
                            group->count, trials, time_text(group->best_ns), speed_up(*group)),
            columns));
  }
  if (hidden > 0) lines.push_back(cut(cat("... and ", hidden, " more"), columns));
  lines.push_back(cut(summary(progress), columns));
  return lines;
}

ProgressDisplay::ProgressDisplay(const std::string& form)
    : form_(form_of(form)), colour_(wants_colour(STDERR_FILENO)) {}

void ProgressDisplay::clear() {
  if (drawn_ > 0) std::fprintf(stderr, "\x1b[%dF\x1b[J", drawn_);
  std::fflush(stderr);
  drawn_ = 0;
}

void ProgressDisplay::say(const std::string& line) {
  clear();
  std::fprintf(stderr, "%s", (form_ == ProgressForm::kJson ? line_of({{"says", line}}) : line + "\n").c_str());
}

void ProgressDisplay::show(const Job& job) {
  if (form_ == ProgressForm::kLines) return show_plain(job);
  auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100) && !is_done(job.state)) return;
  last_ = now;
  if (form_ == ProgressForm::kRedrawn) return show_terminal(job);
  ended_ = is_done(job.state);
  std::fputs(progress_json(job).c_str(), stderr);
}

void ProgressDisplay::end(const Job& job) {
  if (form_ == ProgressForm::kJson && !ended_) std::fputs(progress_json(job).c_str(), stderr);
}

void ProgressDisplay::show_terminal(const Job& job) {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size = {24, 80, 0, 0};
  std::vector<std::string> lines =
      progress_lines(job.progress, std::min<int>(size.ws_row, 16), static_cast<int>(size.ws_col) - 1);
  clear();
  for (size_t i = 0; i < lines.size(); ++i) {
    bool last = i + 1 == lines.size();
    std::fprintf(stderr, "%s%s%s\n", colour_ && last ? kBold : "", lines[i].c_str(), colour_ && last ? kPlain : "");
  }
  std::fflush(stderr);
  drawn_ = static_cast<int>(lines.size());
}

void ProgressDisplay::show_plain(const Job& job) {
  constexpr auto kQuiet = std::chrono::seconds(10);
  for (const GroupProgress& group : job.progress.groups) {
    if (!group.done || group.is_default || !finished_.insert(group.key).second) continue;
    if (group.cached) {
      std::fprintf(stderr, "%s: from the store, %s%s\n", group.name.c_str(), time_text(group.best_ns).c_str(),
                   speed_up(group).c_str());
    } else {
      std::fprintf(stderr, "%s: %ld trials, %ld valid, best %s%s\n", group.name.c_str(), group.trials_done,
                   valid(group), time_text(group.best_ns).c_str(), speed_up(group).c_str());
    }
    last_ = std::chrono::steady_clock::now();
  }
  if (job.cached || job.progress.phase.empty()) return;
  auto now = std::chrono::steady_clock::now();
  if (job.progress.phase != phase_ || now - last_ > kQuiet) {
    phase_ = job.progress.phase;
    last_ = now;
    std::fprintf(stderr, "%s\n", summary(job.progress).c_str());
  }
}

}  // namespace wl
