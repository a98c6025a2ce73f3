// Collects the candidates for kernels of a graph (pool.h), and computes the price of each once. Used in this folder
// only.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "compiler/cover/planned/op_set.h"
#include "compiler/cover/planned/pool.h"

namespace wl {

using Ops = std::vector<int>;       // numbers of ops (indices into CoverValues::anchors()), ascending
inline constexpr int kMany = 1500;  // a graph with more ops than this gets fewer candidates

struct Fusion {
  Ops ops;
  GroupOrigin origin = GroupOrigin::kSingle;
  int form = -1;      // index of the candidate's Form (pool.h); the form's kernel stores all values that other ops need
  double saving = 0;  // modelled time in us that the candidate saves against one kernel for each of its ops
};

class Candidates {
 public:
  // For `enumerated` and `work`, see candidate_pool() (pool.h).
  Candidates(const CoverValues& values, const Machine& machine, int enumerated, Work* work);

  int ops() const { return static_cast<int>(before_.size()); }
  const std::vector<int>& before(int op) const { return before_[op]; }
  const std::vector<int>& after(int op) const { return after_[op]; }
  // Returns, for each input of the graph that is large enough for shared reads to pay, the ops that read it.
  const std::vector<std::vector<int>>& input_readers() const { return input_readers_; }

  // Returns the number of the candidate that consists of `ops` (ascending); adds the candidate if it does not exist
  // yet. Returns -1 if the ops are too many, are not convex, are not one legal kernel, or would take much longer in one
  // kernel than in separate ones, and also once the Work has ended.
  int consider(Ops ops, GroupOrigin origin);
  // Returns `ops` and all ops on paths from one of them to another.
  Ops closed(Ops ops) const;
  Ops joined(int a, int b) const { return closed(joined_ops(all_[a].ops, all_[b].ops)); }
  static Ops joined_ops(const Ops& a, const Ops& b);

  const Fusion& operator[](int i) const { return all_[i]; }
  int count() const { return static_cast<int>(all_.size()); }
  double micros(int candidate) const { return forms_[all_[candidate].form].cost.micros; }
  // with() returns all candidates that contain an op. best_with() returns at most `most` of them: those that save most
  // time, the best first.
  const std::vector<int>& with(int op) const { return with_[op]; }
  std::vector<int> best_with(int op, size_t most) const;

  // Returns the number of the Form that all groups of this group's structure share; -1: the group is not a legal
  // kernel.
  int form_of(const Group& group, size_t contract_atoms);
  size_t contract_atoms(const Ops& ops) const;
  std::vector<NodeId> anchors(const Ops& ops) const;
  int index_of(NodeId anchor) const { return index_[anchor]; }
  bool is_contraction(int op) const { return contract_atoms_[op] > 0; }
  const CoverValues& values() const { return values_; }
  const Machine& machine() const { return machine_; }
  const std::vector<Form>& forms() const { return forms_; }
  int enumerated() const { return enumerated_; }
  Work* work() const { return work_; }
  // Adds an initial cover, as a list of its candidates' numbers; an empty list stands for no cover.
  void add_start(std::vector<int> cover) { starts_.push_back(std::move(cover)); }
  const std::vector<std::vector<int>>& starts() const { return starts_; }
  void stop_stitching() { stitching_ = false; }
  void start_packing() { packing_ = true; }  // after this call, groups with unconnected parts are legal
  int considered() const { return static_cast<int>(known_.size()); }

 private:
  bool convex(const Ops& ops) const;

  struct Hash {
    size_t operator()(const Ops& ops) const;
  };
  const CoverValues& values_;
  const Machine& machine_;
  const Rates rates_;
  const int enumerated_;
  Work* const work_;
  bool stitching_ = false, packing_ = false;
  std::vector<std::vector<int>> starts_;
  std::vector<int> index_;  // of each node: its index among the anchors; -1: it is no anchor
  std::vector<std::vector<int>> before_, after_, input_readers_;
  std::vector<OpSet> above_, below_;  // of each op: all ops that it depends on; all ops that depend on it
  std::vector<size_t> contract_atoms_;
  std::vector<double> alone_;  // of each op: the modelled time in us of a kernel for the op alone
  std::vector<Fusion> all_;
  std::vector<std::vector<int>> with_;
  std::unordered_map<Ops, int, Hash> known_;
  std::unordered_map<Fingerprint, int, FingerprintHash> form_of_;
  CoverMemo stitched_;  // a cache of what is known about groups, for stitched and packed candidates
  std::vector<Form> forms_;
};

#define WL_CANDIDATE_SOURCE(origin, name, function) void function(Candidates& candidates);
#define WL_COLUMN_SOURCE(origin, name, function) absl::Status function(ColumnPool& pool, Candidates& candidates);
#include "compiler/cover/planned/sources.def"
#undef WL_COLUMN_SOURCE
#undef WL_CANDIDATE_SOURCE

}  // namespace wl
