// What `warploom top` shows of a snapshot, as lines of text.
#pragma once

#include <string>
#include <vector>

#include "client/cli/top/snapshot.h"

namespace wl {

struct TopSize {
  int rows = 0, columns = 0;  // 0: as many as there are
};

// Why a snapshot is not a new one.
struct TopTrouble {
  std::string message;  // empty: there is none
  int64_t since_s = 0;  // how long there was no answer
};

// At most size.rows lines of at most size.columns characters. Where the columns do not suffice, those that matter least
// are left out; where the rows do not, a line says how many jobs or workers are not shown. Text of others has no
// control characters. `colour`: with escape sequences for it, which take no columns. Pure, for tests.
std::vector<std::string> top_lines(const Snapshot& snapshot, const Rates& rates, const TopTrouble& trouble,
                                   TopSize size, bool colour);

}  // namespace wl
