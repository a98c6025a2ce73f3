// The display while a job runs. On a terminal it is a few lines that are redrawn in place, otherwise a plain line for
// every group that ends, or for programs a line of JSON for every change. Everything goes to stderr.
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
  // `form`: of --progress; "auto" is that of a terminal where stderr is one, and otherwise plain.
  explicit ProgressDisplay(const std::string& form);
  void show(const Job& job);
  // Shows how a job that was followed has ended, to programs: they read the last line.
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
  int drawn_ = 0;  // number of redrawn lines on the screen
  std::set<std::string> finished_;
  std::string phase_;
  bool ended_ = false;  // whether a line said so
  std::chrono::steady_clock::time_point last_{};
};

// The best time of a group by the number of its trials.
struct Curve {
  std::string key, name;
  std::vector<std::pair<int64_t, double>> best;  // trials, ns; the times fall
};

// Collects the curves of a job from its changes.
class GroupCurves {
 public:
  void add(const JobProgress& progress);
  const std::vector<Curve>& all() const { return all_; }

 private:
  std::vector<Curve> all_;  // in the order of the groups
};

// One object on one line, with its end: the job's name, its phase, trials done and in all, seconds gone and left,
// workers, and its groups with their times in ns (0: none yet), but for those that are measured only for comparison.
std::string progress_json(const Job& job);

// Returns the lines of a terminal display: at most `rows` of at most `columns` characters. Pure, for tests.
std::vector<std::string> progress_lines(const JobProgress& progress, int rows, int columns);

}  // namespace wl
