// Greedy fusion: merges the pair of neighbouring groups that saves most bytes of memory traffic, as long as no cycle
// among the groups arises, the merged group is a legal loop nest, and no work is repeated.
#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

#include "compiler/cover/cover.h"
#include "compiler/cover/legal.h"
#include "compiler/cover/part_graph.h"
#include "compiler/cover/values.h"

namespace wl {
namespace {

// A merger of two parts (groups under construction) is outdated once one of them has grown. It is then proposed again
// at once or, if a part has more neighbours than this, only when it reaches the top of the queue.
constexpr size_t kManyNeighbours = 64;
constexpr uint64_t kProposalSteps = 5;

class Greedy {
 public:
  Greedy(const CoverValues& values, const Machine& machine, const GreedyOptions& options, CoverMemo& memo)
      : values_(values),
        machine_(machine),
        alone_(options.contractions_alone),
        memo_(memo),
        work_(options.work),
        graph_(static_cast<int>(values.anchors().size())) {}

  absl::StatusOr<std::vector<Group>> run() {
    start();
    while (!queue_.empty()) {
      if (!go_on(work_, 1)) break;
      const Merger best = queue_.top();
      queue_.pop();
      const Part &from = parts_[best.from], &to = parts_[best.to];
      if (!from.alive || !to.alive) continue;
      if (from.version != best.from_version || to.version != best.to_version) {
        if (has_many(best.from) || has_many(best.to)) propose(best.from, best.to);
        continue;
      }
      if (graph_.may_merge(best.from, best.to) && legal(best)) merge(best.from, best.to);
    }
    std::vector<Group> groups = values_.copies();
    for (const Part& part : parts_)
      if (part.alive) groups.push_back(values_.group(part.anchors));
    WL_RETURN_IF_ERROR(ended(work_));
    return groups;
  }

 private:
  struct Part {
    std::vector<NodeId> anchors;  // the nodes that are the part's own work, ascending
    int64_t bytes = 0;
    // Number of atoms (loops) of a kernel for the part's contraction alone; 0: the part has no contraction.
    size_t contract_atoms = 0;
    bool alive = true;
    int version = 0;  // incremented by a merge; mergers proposed for an earlier version are outdated
  };
  struct Merger {
    int64_t saving;
    size_t size;
    int from, to;
    int from_version, to_version;
    bool operator<(const Merger& other) const {  // the largest saving comes first in the queue
      return std::tuple(saving, other.size, other.from, other.to) < std::tuple(other.saving, size, from, to);
    }
  };

  void start() {
    std::vector<int> part_of(values_.graph().nodes.size(), -1);
    for (NodeId anchor : values_.anchors()) {
      part_of[anchor] = static_cast<int>(parts_.size());
      parts_.push_back({});
      parts_.back().anchors = {anchor};
      parts_.back().bytes = values_.bytes_moved(values_.group({anchor}));
      if (values_.graph().nodes[anchor].op == Op::contract) parts_.back().contract_atoms = values_.atoms_alone(anchor);
    }
    const int count = static_cast<int>(parts_.size());
    for (int p = 0; p < count; ++p)
      for (NodeId reader : values_.readers(parts_[p].anchors[0])) graph_.add_edge(p, part_of[reader]);
    for (int p = 0; p < count; ++p)
      for (int r : graph_.after(p))
        if (go_on(work_, kProposalSteps)) propose(p, r);
  }

  bool has_many(int part) const { return graph_.before(part).size() + graph_.after(part).size() > kManyNeighbours; }

  std::vector<NodeId> both(int from, int to) const {
    std::vector<NodeId> anchors;
    std::merge(parts_[from].anchors.begin(), parts_[from].anchors.end(), parts_[to].anchors.begin(),
               parts_[to].anchors.end(), std::back_inserter(anchors));
    return anchors;
  }

  void propose(int from, int to) {
    const Part &a = parts_[from], &b = parts_[to];
    const size_t size = a.anchors.size() + b.anchors.size();
    const int contractions = (a.contract_atoms > 0 ? 1 : 0) + (b.contract_atoms > 0 ? 1 : 0);
    if (size > kMaxGroupAnchors || contractions > (alone_ ? 0 : 1)) return;
    const int64_t saving = a.bytes + b.bytes - values_.bytes_moved(values_.group(both(from, to)));
    if (saving > 0) queue_.push({saving, size, from, to, a.version, b.version});
  }

  // Whether a merged group is legal is remembered by the group's structure, since a model with repeated blocks has many
  // groups of equal structure.
  bool legal(const Merger& merger) {
    const Group group = values_.group(both(merger.from, merger.to));
    const size_t atoms = std::max(parts_[merger.from].contract_atoms, parts_[merger.to].contract_atoms);
    Fingerprint key = values_.structure(group);
    key.add(atoms);
    const auto [known, is_new] = memo_.mergers.try_emplace(key, false);
    if (is_new && go_on(work_, kAnalysisSteps)) {
      const Graph alone = extract(values_.graph(), group);
      const absl::StatusOr<Domain> domain = analyze(alone, machine_);
      known->second = domain.ok() && worthwhile(alone, *domain, machine_, atoms);
    }
    return known->second;
  }

  void merge(int from, int to) {
    Part &a = parts_[from], &b = parts_[to];
    a.anchors = both(from, to);
    a.bytes = values_.bytes_moved(values_.group(a.anchors));
    a.contract_atoms = std::max(a.contract_atoms, b.contract_atoms);
    b.alive = false;
    b.anchors = {};
    const std::set<int> before = graph_.before(to), after = graph_.after(to);
    graph_.merge(from, to);
    ++a.version;
    const bool again = !has_many(from);
    for (int next : again ? graph_.after(from) : after)
      if (go_on(work_, kProposalSteps)) propose(from, next);
    for (int previous : again ? graph_.before(from) : before)
      if (previous != from && go_on(work_, kProposalSteps)) propose(previous, from);
  }

  const CoverValues& values_;
  const Machine& machine_;
  const bool alone_;
  CoverMemo& memo_;
  Work* const work_;
  std::vector<Part> parts_;
  PartGraph graph_;
  std::priority_queue<Merger> queue_;
};

}  // namespace

absl::StatusOr<Cover> cover_greedy(const Graph& graph, const Machine& machine, const GreedyOptions& options) {
  CoverMemo own;
  CoverMemo& memo = options.memo != nullptr ? *options.memo : own;
  WL_ASSIGN_OR_RETURN(const CoverValues values, CoverValues::make(graph, machine, &memo, options.work));
  WL_ASSIGN_OR_RETURN(std::vector<Group> groups, Greedy(values, machine, options, memo).run());
  return ordered(graph, std::move(groups));
}

}  // namespace wl
