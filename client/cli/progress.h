// The display while a job runs. On a terminal it is a few lines that are redrawn in place, otherwise a plain line for
// every group that ends. Everything goes to stderr.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "compiler/base/job.h"

namespace wl {

class ProgressDisplay {
 public:
  // `terminal`: redraw in place; `colour` matters only then.
  ProgressDisplay(bool terminal, bool colour) : terminal_(terminal), colour_(colour) {}
  void show(const Job& job);
  // Prints a line that stays on the screen, above the redrawn lines.
  void say(const std::string& line);
  // Removes the redrawn lines. Call it before anything else is printed.
  void clear();

 private:
  void show_plain(const Job& job);
  bool terminal_, colour_;
  int drawn_ = 0;  // number of redrawn lines on the screen
  std::set<std::string> finished_;
  std::string phase_;
  std::chrono::steady_clock::time_point last_{};
};

// Returns the lines of a terminal display: at most `rows` of at most `columns` characters. Pure, for tests.
std::vector<std::string> progress_lines(const JobProgress& progress, int rows, int columns);

}  // namespace wl
