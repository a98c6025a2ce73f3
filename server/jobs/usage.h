// What programs ran, and what tuning has saved and may still save: sums over kernels for one reader. Pure functions
// (docs/design/service.md#usage).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "proto/usage.h"
#include "server/jobs/demand.h"

namespace wl {

// Returns how the kernel of a record came about. A search that tried several candidates makes it tuned, even if the
// default schedule was the fastest of them.
UseKind kind_of(const KernelRecord& record);

// A kernel that programs of a team ran, and what its record says.
struct UsedKernel {
  Demand demand;
  KernelUse use;
  int64_t first_day = 0;  // the first of the days that count, as days since 1970 (UTC)
  double calls_per_day = 0;
  UseKind kind = UseKind::kDefault;
  std::string digest, name, target, device, model;
  // Why the coordinator does not search it by itself although that would pay; empty: it may.
  std::string stopped;
};

// What the summaries of all readers are made of. Times and counts are of the same days.
struct UsageFacts {
  int64_t today = 0;  // in days since 1970 (UTC)
  std::vector<UsedKernel> kernels;
  std::map<std::string, int64_t> left_out;  // for each team, how many kernels are not in `kernels`
  struct Cost {
    int64_t trials = 0;
    double seconds = 0;
  };
  std::map<std::string, Cost> costs;  // what searches of each team took
  std::vector<MissedUsage> missed;
  std::map<std::string, std::pair<int64_t, int64_t>> missed_all;  // numbers of graphs and of jobs of each team
  std::string background;  // why no search of the coordinator's own begins now; empty: one may
};

// A kernel that a job which asked in vain would launch: fields of a PlannedGroup.
struct MissedGroup {
  std::string key, name, text, kin;
};
// What the store has of the groups of such a job, as far as its team may see it.
struct MissedFacts {
  int64_t groups = 0;             // number of distinct kernels of the graph
  std::vector<std::string> now;   // names of those that the store lacks now, too
  std::set<std::string> devices;  // other devices for which the store has some of these
  int64_t other_sizes = 0;        // number of stored records of the same operations with other sizes
};
// Returns why the shapes of a graph have found nothing, for people: the message with which its last job ended, what the
// store lacks by now, and what it has instead.
std::string why_missed(const std::string& message, const MissedFacts& facts);

// Returns the summary for the callers of a team ("": those of none); nullopt: for operators, who see all teams. Nothing
// in it depends on what other teams have. The lists of kernels and of graphs have at most `most` items.
Usage usage_of(const UsageFacts& facts, const std::optional<std::string>& team, size_t most);

}  // namespace wl
