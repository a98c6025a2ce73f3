// Internals of domain/: the canonical order of a group. Equal groups get equal texts, at any place in a graph and from
// any exporter: operands of commutative ops, reads and stores are put in an order that follows from the group's own
// structure, not from the numbers of its nodes in the whole graph. Nodes of equal structure keep their order, since it
// makes no difference: if two inputs of one type are added, the text is the same in either order.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/base/splitmix.h"
#include "compiler/domain/group.h"

namespace wl {

// A hash of 128 bits (two of 64 bits), so wide that two different structures will not have the same one by chance.
struct Fingerprint {
  uint64_t a = 0, b = 0;
  bool operator==(const Fingerprint&) const = default;
  void add(uint64_t value) {
    a = mix(a + value + kGolden);
    b = mix((b ^ value) * 0xff51afd7ed558ccd + 1);
  }
  // Adds a list of integers to the hash: its length, then its elements.
  void add_all(const auto& list) {
    add(list.size());
    for (const auto& value : list) add(static_cast<uint64_t>(value));
  }
};
struct FingerprintHash {
  size_t operator()(const Fingerprint& f) const { return f.a; }
};
// Whether a node is a reshape that only adds or removes axes of extent 1. A group leaves out such axes in its reads and
// stores (without_units()), which does not change the buffers.
bool reshapes_units(const Graph& graph, NodeId id);

// fingerprint(): the hash of a node without its operands. read_fingerprint(): the hash of the input that extract()
// makes of a value that the group reads.
Fingerprint fingerprint(const Node& node);
Fingerprint read_fingerprint(const Node& node);

class GroupOrder {
 public:
  GroupOrder(const Graph& graph, const Group& group);
  // Returns the operands of one of the group's ops in canonical order.
  std::vector<NodeId> operands(NodeId id) const;
  std::vector<NodeId> stores() const;
  // Returns the reads in the order in which a depth-first walk from `stores` first reaches them. Calls done(id) for
  // every op, after all its operands have been visited.
  template <typename Done>
  std::vector<NodeId> walk(const std::vector<NodeId>& stores, Done done) const;

 private:
  struct Entry {
    NodeId id;
    bool read = false, swapped = false;
    int depth = 0;       // the number of ops on the longest path from a read or leaf to the node
    uint64_t above = 0;  // hash of the node and of everything that it is computed from
    uint64_t below = 0;  // hash of everything that uses the node
  };
  size_t index(NodeId id) const;
  bool comes_before(const Entry& x, const Entry& y) const;

  const Graph& graph_;
  const Group& group_;
  std::vector<Entry> entries_;  // the group's ops and reads, ascending by id
};

template <typename Done>
std::vector<NodeId> GroupOrder::walk(const std::vector<NodeId>& stores, Done done) const {
  std::vector<NodeId> reads;
  std::vector<char> met(entries_.size(), 0);
  struct Visit {
    NodeId id;
    bool swapped = false;
    size_t next = 0;
  };
  std::vector<Visit> stack;  // visited nodes; a stack instead of recursion, since chains may be as long as the graph
  const auto meet = [&](NodeId id) {
    const size_t at = index(id);
    if (met[at]) return;
    met[at] = 1;
    if (entries_[at].read)
      reads.push_back(id);
    else
      stack.push_back({id, entries_[at].swapped});
  };
  for (NodeId store : stores) {
    meet(store);
    while (!stack.empty()) {
      Visit& top = stack.back();
      const std::vector<NodeId>& operands = graph_.nodes[top.id].operands;
      if (top.next < operands.size()) {
        const size_t next = top.next++;
        meet(operands[top.swapped && next < 2 ? 1 - next : next]);
      } else {
        const NodeId id = top.id;
        stack.pop_back();
        done(id);
      }
    }
  }
  return reads;
}

// Returns the group with its reads and stores in canonical order.
Group in_order(const Graph& graph, Group group);

}  // namespace wl
