// Groups under construction, as a directed graph that stays acyclic while its nodes are merged two by two. Topological
// numbers are kept up to date, so that a merge looks only at the nodes between the two (D. J. Pearce, P. H. J.
// Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", JEA 11, 2007).
#pragma once

#include <cstddef>
#include <set>
#include <vector>

namespace wl {

class PartGraph {
 public:
  // `count` parts without edges; their numbers are a topological order.
  explicit PartGraph(int count);
  void add_edge(int from, int to);  // from < to; before the first merge
  const std::set<int>& before(int part) const { return before_[static_cast<size_t>(part)]; }
  const std::set<int>& after(int part) const { return after_[static_cast<size_t>(part)]; }

  // Whether `to`, a successor of `from`, may be merged into it: no path leads from one to the other through a third
  // part. Also false when too many parts lie between them to find out, so that the test takes constant time.
  bool may_merge(int from, int to);
  void merge(int from, int to);  // must directly follow may_merge() of the same two

 private:
  // Finds the parts between the two that reach `to` and those that `from` reaches; false when there are too many.
  bool find_between(bool forward, int from, int to, std::vector<int>& found);
  bool by_rank(int x, int y) const { return rank_[static_cast<size_t>(x)] < rank_[static_cast<size_t>(y)]; }

  std::vector<std::set<int>> before_, after_;
  std::vector<int> rank_;
  std::vector<int> seen_;
  int search_ = 0;
  std::vector<int> leading_, led_;  // what may_merge() found for merge(): parts before `to`, and parts after `from`
  bool knows_leading_ = false, knows_led_ = false;
};

}  // namespace wl
