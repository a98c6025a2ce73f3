// Shows the progress of a job on stderr: on a terminal as a few lines that are redrawn in place, otherwise as a plain
// line for every group that is done, or for programs as a line of JSON for every change.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/base/job.h"

namespace wl {

enum class ProgressForm : uint8_t { kRedrawn, kLines, kJson };

class ProgressDisplay {
 public:
  // `form`: the value of --progress; "auto" redraws lines if stderr is a terminal, and prints plain lines otherwise.
  explicit ProgressDisplay(const std::string& form);
  void show(const Job& job);
  // Prints the last line of JSON, with the end of the job, unless show() has printed it.
  void end(const Job& job);
  // Prints a line that stays on the screen, above the redrawn lines.
  void say(const std::string& line);
  // Removes the redrawn lines. Call it before anything else is printed.
  void clear();

 private:
  void show_terminal(const Job& job);
  void show_plain(const Job& job);
  ProgressForm form_;
  bool colour_ = false;
  int drawn_ = 0;  // number of lines on the screen that the next call draws again
  std::set<std::string> finished_;
  std::string phase_;
  bool ended_ = false;  // whether a line of JSON has already shown the end of the job
  std::chrono::steady_clock::time_point last_{};
};

// The best time of a group as a function of the number of its trials.
struct Curve {
  std::string key, name;
  // Pairs of a number of trials and the group's best time in ns after them; the times decrease.
  std::vector<std::pair<int64_t, double>> best;
};

// Collects the curves of a job from its changes.
class GroupCurves {
 public:
  void add(const JobProgress& progress);
  const std::vector<Curve>& all() const { return all_; }

 private:
  std::vector<Curve> all_;  // for each group of the job, its curve, in the order of the groups
};

// Returns the state of a job as one line of JSON: its name, state and phase, trials done and in all, seconds elapsed
// and left, number of workers, and its groups, except those that are measured only for comparison (times in ns; 0: no
// time yet).
std::string progress_json(const Job& job);

// Returns the lines of the display on a terminal: at most `rows` of at most `columns` characters. The function is pure,
// for tests.
std::vector<std::string> progress_lines(const JobProgress& progress, int rows, int columns);

}  // namespace wl
