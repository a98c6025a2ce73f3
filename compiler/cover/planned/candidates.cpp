#include "compiler/cover/planned/candidates.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "compiler/cover/cover.h"
#include "compiler/cover/legal.h"
#include "compiler/cover/packing.h"
#include "compiler/cover/stitching.h"
#include "compiler/domain/pack.h"
#include "compiler/domain/stitch.h"

namespace wl {
namespace {

constexpr int kStitchedProducts = 2;  // largest number of contractions in one stitched kernel
// A candidate is kept if its modelled time is at most this multiple of the time of its ops as separate kernels, since
// the cost model may be wrong.
constexpr double kWorthKeeping = 1.3;
constexpr uint64_t kConsiderSteps = 2;
// Reads of an input are worth sharing among ops if the input has at least this many bytes.
constexpr int64_t kWorthSharing = 16 << 10;

}  // namespace

size_t Candidates::Hash::operator()(const Ops& ops) const {
  uint64_t hash = ops.size();
  for (int op : ops) hash = (hash ^ static_cast<uint64_t>(op)) * 0x9e3779b97f4a7c15 + (hash >> 29);
  return hash;
}

Candidates::Candidates(const CoverValues& values, const Machine& machine, int enumerated, Work* work)
    : values_(values),
      machine_(machine),
      rates_(rates_of(machine)),
      enumerated_(enumerated),
      work_(work),
      index_(values.graph().nodes.size(), -1) {
  const std::vector<NodeId>& anchors = values.anchors();
  const int count = static_cast<int>(anchors.size());
  stitching_ = count <= kMany;
  for (int op = 0; op < count; ++op) index_[anchors[op]] = op;
  before_.resize(anchors.size());
  after_.resize(anchors.size());
  with_.resize(anchors.size());
  above_.assign(anchors.size(), OpSet(count));
  below_.assign(anchors.size(), OpSet(count));
  for (int op = 0; op < count; ++op) {
    for (NodeId source : values.sources(anchors[op])) {
      before_[op].push_back(index_[source]);
      after_[index_[source]].push_back(op);
      above_[op] |= above_[index_[source]];
      above_[op].add(index_[source]);
    }
    const bool product = values.graph().nodes[anchors[op]].op == Op::contract;
    contract_atoms_.push_back(product ? std::max<size_t>(1, values.atoms_alone(anchors[op])) : 0);
  }
  for (int op = count; op-- > 0;)
    for (int next : after_[op]) {
      below_[op] |= below_[next];
      below_[op].add(next);
    }
  std::map<NodeId, std::vector<int>> readers;
  for (int op = 0; op < count; ++op) {
    const Group group = values.group({anchors[op]});
    const int form = form_of(group, contract_atoms_[op]);
    if (form < 0 && !ended(work_).ok()) return;
    WL_CHECK(form >= 0, "%", anchors[op], " alone is not a legal kernel");
    alone_.push_back(forms_[form].cost.micros);
    known_.emplace(Ops{op}, op);
    with_[op].push_back(op);
    all_.push_back({.ops = {op}, .origin = GroupOrigin::kSingle, .form = form, .saving = 0});
    for (NodeId read : group.reads)
      if (values.anchor_behind(read) < 0 && values.graph().bytes(read) >= kWorthSharing) readers[read].push_back(op);
  }
  for (auto& [input, list] : readers)
    if (list.size() > 1) input_readers_.push_back(std::move(list));
}

Ops Candidates::joined_ops(const Ops& a, const Ops& b) {
  Ops out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::vector<NodeId> Candidates::anchors(const Ops& ops) const {
  std::vector<NodeId> out;
  out.reserve(ops.size());
  for (int op : ops) out.push_back(values_.anchors()[op]);
  return out;
}

size_t Candidates::contract_atoms(const Ops& ops) const {
  size_t atoms = 0;
  for (int op : ops) atoms = std::max(atoms, contract_atoms_[op]);
  return atoms;
}

Ops Candidates::closed(Ops ops) const {
  if (ops.size() < 2) return ops;
  OpSet between = above_[ops[0]], below = below_[ops[0]];
  for (int op : ops) {
    between |= above_[op];
    below |= below_[op];
  }
  between &= below;
  between.each([&](int op) { ops.push_back(op); });
  std::sort(ops.begin(), ops.end());
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  return ops;
}

bool Candidates::convex(const Ops& ops) const {
  return closed(ops).size() == ops.size();
}

int Candidates::form_of(const Group& group, size_t contract_atoms) {
  Fingerprint key = values_.structure(group);
  key.add(contract_atoms);
  if (packing_) {  // a group that is no legal kernel by itself may be legal as a packed group
    if (const auto apart = form_of_.find(key); apart != form_of_.end() && apart->second >= 0) return apart->second;
    key.add(1);
  }
  const auto [known, is_new] = form_of_.try_emplace(key, -1);
  if (!is_new) return known->second;
  if (!go_on(work_, kAnalysisSteps)) return -1;
  const Graph alone = extract(values_.graph(), group);
  absl::StatusOr<Domain> domain = analyze(alone, machine_);
  // Each op may be a kernel of its own, however slow: a contraction whose factor is a constant computes that factor.
  const auto ops = std::ranges::count_if(group.ops, [this](NodeId node) { return index_[node] >= 0; });
  if (domain.ok() && ops > 1 && !worthwhile(alone, *domain, machine_, contract_atoms)) return -1;
  if (!domain.ok() && is_unconnected(alone)) {
    if (packing_) domain = pack(alone, machine_, {.memo = &stitched_, .work = work_});
  } else if (!domain.ok() && stitching_) {
    domain = stitch(alone, machine_, {.memo = &stitched_, .levels = StitchOptions::Levels::kNeeded, .work = work_});
    if (domain.ok() && !machine_.target->is_gpu()) {
      int64_t apart = 0;
      if (const auto cover = cover_greedy(alone, machine_, {.memo = &stitched_, .work = work_}); cover.ok())
        for (const Group& part : cover->groups) apart += bytes_moved(extract(alone, part));
      if (!stitching_pays(alone, *domain->stitch, apart - bytes_moved(alone), machine_)) return -1;
    }
  }
  if (!domain.ok()) return -1;
  known->second = static_cast<int>(forms_.size());
  forms_.push_back({domain->cls, cost_of(alone, *domain, machine_, rates_), 1, {}});
  return known->second;
}

int Candidates::consider(Ops ops, GroupOrigin origin) {
  if (ops.size() > kMaxGroupAnchors || !go_on(work_, kConsiderSteps)) return -1;
  const auto [known, is_new] = known_.try_emplace(ops, -1);
  if (!is_new) return known->second;
  const auto products = std::count_if(ops.begin(), ops.end(), [this](int op) { return is_contraction(op); });
  if (products > (stitching_ ? kStitchedProducts : 1)) return -1;
  if (!convex(ops)) return -1;
  double parts = 0;
  for (int op : ops) parts += alone_[op];
  const int form = form_of(values_.group(anchors(ops)), contract_atoms(ops));
  if (form < 0) return -1;
  if (origin != GroupOrigin::kGreedy && forms_[form].cost.micros > kWorthKeeping * parts) return -1;
  forms_[form].ops = static_cast<int>(ops.size());
  const int number = static_cast<int>(all_.size());
  known->second = number;
  for (int op : ops) with_[op].push_back(number);
  all_.push_back({.ops = std::move(ops), .origin = origin, .form = form, .saving = parts - forms_[form].cost.micros});
  return number;
}

std::vector<int> Candidates::best_with(int op, size_t most) const {
  std::vector<int> best = with_[op];
  const size_t kept = std::min(most, best.size());
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(kept), best.end(),
                    [this](int a, int b) { return std::pair(-all_[a].saving, a) < std::pair(-all_[b].saving, b); });
  best.resize(kept);
  return best;
}

}  // namespace wl
