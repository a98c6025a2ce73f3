// Groups under construction ("parts"), as a directed graph that stays acyclic while its nodes are merged two by two.
// Each part keeps a number in topological order, so that merging two parts looks only at those numbered between them
// (D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", JEA 11, 2007).
#pragma once

#include <cstddef>
#include <set>
#include <vector>

namespace wl {

class PartGraph {
 public:
  // Makes `count` parts without edges. The parts' numbers, from 0, must be a topological order of the edges to be
  // added.
  explicit PartGraph(int count);
  void add_edge(int from, int to);  // `from` must be less than `to`; all edges must be added before the first merge
  const std::set<int>& before(int part) const { return before_[static_cast<size_t>(part)]; }
  const std::set<int>& after(int part) const { return after_[static_cast<size_t>(part)]; }

  // Whether the part `to` may be merged into its predecessor `from`: no path from `from` to `to` leads through a third
  // part. Also false if the test would have to follow too many edges, so that its time is bounded.
  bool may_merge(int from, int to);
  // Merges `to` into `from`; the last call of may_merge() must have been may_merge(from, to).
  void merge(int from, int to);

 private:
  // Finds the parts numbered between `from` and `to` that lead to `to` or, if `forward` is true, to which `from`
  // leads. Returns false if too many edges must be followed.
  bool find_between(bool forward, int from, int to, std::vector<int>& found);
  bool by_rank(int x, int y) const { return rank_[static_cast<size_t>(x)] < rank_[static_cast<size_t>(y)]; }

  std::vector<std::set<int>> before_, after_;
  std::vector<int> rank_;
  std::vector<int> seen_;
  int search_ = 0;
  // The parts numbered between `from` and `to` that lead to `to`, and those to which `from` leads; may_merge() finds
  // them and merge() uses them.
  std::vector<int> leading_, led_;
  bool knows_leading_ = false, knows_led_ = false;
};

}  // namespace wl
