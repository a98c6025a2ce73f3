// The candidates for kernels of a graph. A *candidate* is a convex set of ops that is one legal kernel. A *column* is a
// candidate with the values that it stores. Columns that are the same kernel, as in repeated blocks of a model, share a
// *form*, whose legality and price are computed once. The sources of candidates, in the order in which they are asked:
//   single   every op alone
//   greedy   the groups of cover_greedy(), so that the planned cover is never priced above the greedy one
//   pattern  an op with the best three patterns of each of its readers, readers first (A. Zheng et al.,
//            "FusionStitching", arXiv 2009.10924), and the mirror image, since one direction alone never joins two
//            producers of one op
//   merge    two neighbours, best saving first (W. Jung et al., "DeepCuts", PLDI 2021); intermediate groups are kept
//   union    two candidates at the ends of an edge, with all ops between them
//   sibling  two candidates that contain readers of one value, with all ops between them
//   all      every connected set of ops, in parts of the graph of at most kEnumerated ops
//   pack     kernels of one cover that do not wait for each other, side by side in one launch: kernels of the best
//            cover that all other columns form and, on GPUs, of the initial covers (ColumnPool::starts)
// The same graph and machine give the same pool. To add a source, write its file and add a row to sources.def.
#pragma once

#include <string>
#include <vector>

#include "compiler/cover/values.h"
#include "compiler/model/cost.h"

namespace wl {

enum class GroupOrigin : uint8_t {
  kSingle,
#define WL_CANDIDATE_SOURCE(origin, name, function) origin,
#define WL_COLUMN_SOURCE(origin, name, function) origin,
#include "compiler/cover/planned/sources.def"
#undef WL_COLUMN_SOURCE
#undef WL_CANDIDATE_SOURCE
};
std::string_view name_of(GroupOrigin origin);

struct PoolColumn {
  std::vector<int> ops, stores, reads;  // ascending indices into ColumnPool::values.anchors()
  int form = 0;
  GroupOrigin origin = GroupOrigin::kSingle;
};

struct Form {
  LoopClass cls = LoopClass::kMap;
  Cost cost;
  int ops = 1;       // number of ops (anchors) that the kernel computes
  std::string hash;  // graph_hash() of a group with this form, by which its measured time is found
};

struct ColumnPool {
  CoverValues values;  // refers to the graph and machine for which the pool was made
  std::vector<PoolColumn> columns;
  std::vector<Form> forms;
  std::vector<std::vector<int>> starts;  // initial covers, as lists of columns: greedy, edge merges, single ops
  int considered = 0;                    // number of sets of ops whose legality was tested
  double memory_bytes_per_ns = 1;        // bandwidth of the machine's memory
  // Returns the group of the graph that computes the column's ops and stores the column's values.
  Group group(const PoolColumn& column) const;
};

inline constexpr int kEnumerated = 10;

// Makes the pool of a graph. `enumerated`, for experiments, is used instead of kEnumerated. `work`: see
// compiler/cover/cover.h.
absl::StatusOr<ColumnPool> candidate_pool(const Graph& graph, const Machine& machine, int enumerated = kEnumerated,
                                          Work* work = nullptr);

}  // namespace wl
