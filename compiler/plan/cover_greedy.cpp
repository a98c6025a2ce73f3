// Greedy fusion: the pair of neighbouring groups whose merger saves most bytes is merged, as long as the groups stay in
// some order (no cycle among them), the merged one is a legal loop nest, and no work is multiplied.
#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

#include "compiler/plan/cover_values.h"

namespace wl {
namespace {

constexpr size_t kMaxAnchors = 64;  // per group: compile time and registers
constexpr int kCheap = 4;           // issue slots per element that may be spent again rather than stored
constexpr int kCheapPrologue = 2;   // per operand element of a contraction, which reads elements more than once
constexpr int64_t kLongReduction = 1 << 16;

bool has(const std::vector<AtomId>& list, AtomId atom) {
  return std::find(list.begin(), list.end(), atom) != list.end();
}

int64_t extent_of(const Domain& domain, const std::vector<AtomId>& atoms) {
  int64_t product = 1;
  for (AtomId atom : atoms) product *= domain.atoms[atom].extent;
  return product;
}

// Whether one kernel for the group does no more work than its parts did.
bool worthwhile(const Graph& group, const Domain& domain, const Machine& machine, size_t contract_atoms) {
  if (domain.cls == LoopClass::kContract) {
    if (domain.atoms.size() > contract_atoms) return false;  // an epilogue that cuts the tiles
    // The left operand is read in place; work on it would have to be packed, at about the price of 200 columns.
    if (domain.operands[domain.contract][0].source >= 0) return false;
    std::vector<char> before(group.nodes.size(), 0);
    before[domain.contract] = 1;
    int prologue = 0;
    for (NodeId id = domain.contract; id >= 0; --id) {
      if (!before[id]) continue;
      for (NodeId operand : group.nodes[id].operands) before[operand] = 1;
      if (id != domain.contract && !domain.operands[id].empty()) prologue += info(group.nodes[id].op).cost;
    }
    return prologue <= kCheapPrologue;
  }
  if (domain.cls != LoopClass::kMap && extent_of(domain, domain.parallel) < machine.threads &&
      extent_of(domain, domain.reduced) > kLongReduction)
    return false;  // one thread would do what all could
  for (size_t id = 0; id < domain.operands.size(); ++id) {
    if (domain.operands[id].empty() || info(group.nodes[id].op).cost <= kCheap) continue;
    if (domain.vector < 0 || !has(domain.varies[id], domain.vector)) continue;
    for (AtomId atom : domain.parallel)
      if (!has(domain.varies[id], atom) && domain.atoms[atom].extent > 1) return false;
  }
  return true;
}

using Bits = std::vector<uint64_t>;
bool test(const Bits& bits, int i) {
  return bits[static_cast<size_t>(i) / 64] >> (i % 64) & 1;
}
void set(Bits& bits, int i) {
  bits[static_cast<size_t>(i) / 64] |= uint64_t{1} << (i % 64);
}
void unite(Bits& bits, const Bits& other) {
  for (size_t i = 0; i < bits.size(); ++i) bits[i] |= other[i];
}

class Greedy {
 public:
  Greedy(const CoverValues& values, const Machine& machine) : values_(values), machine_(machine) {}

  std::vector<Group> run() {
    start();
    while (!queue_.empty()) {
      const Merger best = queue_.top();
      queue_.pop();
      const Part &from = parts_[best.from], &to = parts_[best.to];
      if (!from.alive || !to.alive || from.version != best.from_version || to.version != best.to_version) continue;
      if (makes_cycle(best.from, best.to) || !legal(best)) continue;
      merge(best.from, best.to);
    }
    std::vector<Group> groups = values_.copies();
    for (const Part& part : parts_)
      if (part.alive) groups.push_back(values_.group(part.anchors));
    return groups;
  }

 private:
  struct Part {
    std::vector<NodeId> anchors;  // ascending
    int64_t bytes = 0;
    size_t contract_atoms = 0;  // of the contraction alone
    bool alive = true;
    int version = 0;              // mergers proposed for an earlier one no longer hold
    std::set<int> before, after;  // neighbouring parts that are alive
  };
  struct Merger {
    int64_t saving;
    size_t size;
    int from, to;
    int from_version, to_version;
    bool operator<(const Merger& other) const {  // the queue's top is the largest
      return std::tuple(saving, other.size, other.from, other.to) < std::tuple(other.saving, size, from, to);
    }
  };

  void start() {
    std::vector<int> part_of(values_.graph().nodes.size(), -1);
    for (NodeId anchor : values_.anchors()) {
      part_of[anchor] = static_cast<int>(parts_.size());
      parts_.push_back({});
      parts_.back().anchors = {anchor};
      const Group group = values_.group({anchor});
      parts_.back().bytes = values_.bytes_moved(group);
      if (values_.graph().nodes[anchor].op == Op::contract) {
        const absl::StatusOr<Domain> domain = analyze(extract(values_.graph(), group), machine_);
        if (domain.ok()) parts_.back().contract_atoms = domain->atoms.size();
      }
    }
    const int count = static_cast<int>(parts_.size());
    reach_.assign(count, Bits((static_cast<size_t>(count) + 63) / 64, 0));
    for (int p = count; p-- > 0;)
      for (NodeId reader : values_.readers(parts_[p].anchors[0])) {
        const int r = part_of[reader];
        parts_[p].after.insert(r);
        parts_[r].before.insert(p);
        set(reach_[p], r);
        unite(reach_[p], reach_[r]);
      }
    for (int p = 0; p < count; ++p)
      for (int r : parts_[p].after) propose(p, r);
  }

  std::vector<NodeId> both(int from, int to) const {
    std::vector<NodeId> anchors;
    std::merge(parts_[from].anchors.begin(), parts_[from].anchors.end(), parts_[to].anchors.begin(),
               parts_[to].anchors.end(), std::back_inserter(anchors));
    return anchors;
  }

  void propose(int from, int to) {
    const Part &a = parts_[from], &b = parts_[to];
    const size_t size = a.anchors.size() + b.anchors.size();
    if (size > kMaxAnchors || (a.contract_atoms > 0 && b.contract_atoms > 0)) return;
    const int64_t saving = a.bytes + b.bytes - values_.bytes_moved(values_.group(both(from, to)));
    if (saving > 0) queue_.push({saving, size, from, to, a.version, b.version});
  }

  // A path from one to the other through a third part.
  bool makes_cycle(int from, int to) const {
    return std::any_of(parts_[from].after.begin(), parts_[from].after.end(),
                       [&](int next) { return next != to && test(reach_[next], to); });
  }

  bool legal(const Merger& merger) const {
    const Graph group = extract(values_.graph(), values_.group(both(merger.from, merger.to)));
    const absl::StatusOr<Domain> domain = analyze(group, machine_);
    return domain.ok() && worthwhile(group, *domain, machine_,
                                     std::max(parts_[merger.from].contract_atoms, parts_[merger.to].contract_atoms));
  }

  void merge(int from, int to) {
    Part &a = parts_[from], &b = parts_[to];
    a.anchors = both(from, to);
    a.bytes = values_.bytes_moved(values_.group(a.anchors));
    a.contract_atoms = std::max(a.contract_atoms, b.contract_atoms);
    b.alive = false;
    a.after.insert(b.after.begin(), b.after.end());
    a.before.insert(b.before.begin(), b.before.end());
    for (std::set<int>* list : {&a.after, &a.before}) {
      list->erase(from);
      list->erase(to);
    }
    for (int next : b.after) {
      parts_[next].before.erase(to);
      if (next != from) parts_[next].before.insert(from);
    }
    for (int previous : b.before) {
      parts_[previous].after.erase(to);
      if (previous != from) parts_[previous].after.insert(from);
    }
    unite(reach_[from], reach_[to]);
    for (size_t p = 0; p < parts_.size(); ++p)
      if (static_cast<int>(p) != from && parts_[p].alive && (test(reach_[p], from) || test(reach_[p], to))) {
        set(reach_[p], from);
        unite(reach_[p], reach_[from]);
      }
    ++a.version;
    for (int next : std::set<int>(a.after)) propose(from, next);
    for (int previous : std::set<int>(a.before)) propose(previous, from);
  }

  const CoverValues& values_;
  const Machine& machine_;
  std::vector<Part> parts_;
  std::vector<Bits> reach_;
  std::priority_queue<Merger> queue_;
};

}  // namespace

absl::StatusOr<Cover> cover_greedy(const Graph& graph, const Machine& machine) {
  WL_ASSIGN_OR_RETURN(const CoverValues values, CoverValues::make(graph, machine));
  return ordered(graph, Greedy(values, machine).run());
}

}  // namespace wl
