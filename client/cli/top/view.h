// Formats a snapshot as the lines of text that `warploom top` shows.
#pragma once

#include <string>
#include <vector>

#include "client/cli/top/snapshot.h"

namespace wl {

struct TopSize {
  int rows = 0, columns = 0;  // lines and columns of the terminal; 0: no limit
};

// Why the snapshot on the screen is old.
struct TopTrouble {
  std::string message;  // why the snapshot is old; empty: it is not old
  int64_t since_s = 0;  // seconds since the last answer of the coordinator
};

// Returns at most size.rows lines of at most size.columns characters. If the width does not suffice, the least
// important columns are left out; if the rows do not, a line says how many jobs or workers are not shown. Control
// characters in names are replaced. `colour`: adds escape sequences, which take no columns. The function is pure, for
// tests.
std::vector<std::string> top_lines(const Snapshot& snapshot, const Rates& rates, const TopTrouble& trouble,
                                   TopSize size, bool colour);

// Returns the lines of the other screen, by the same rules: what programs run, and what tuning has saved and may still
// save.
std::vector<std::string> usage_lines(const Snapshot& snapshot, const TopTrouble& trouble, TopSize size, bool colour);

}  // namespace wl
