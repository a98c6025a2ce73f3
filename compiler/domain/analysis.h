// Used inside domain/ only: finds the loop domain of a group (domain.h). analysis.cpp follows the ops and joins the
// axes that are one loop; domain.cpp then turns the loops into atoms and the addresses into accesses.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/domain/axes.h"
#include "compiler/domain/draft.h"
#include "compiler/domain/strided.h"

namespace wl {

class Analysis {
 public:
  Analysis(const Graph& group, const std::vector<std::vector<int64_t>>& pitches)
      : graph_(group), pitches_(pitches), axes_(group.nodes.size()), summed_(group.nodes.size()) {}

  absl::StatusOr<Domain> run();

 private:
  // An address (or a value of an iota) in terms of factors (factors.h), before the factors are numbered as atoms.
  struct Pending {
    struct PendingTerm {
      FactorList factors;
      int64_t stride = 0;           // how far a step of the innermost factor moves the address
      std::vector<int64_t> guards;  // how far that step moves each guard
    };
    NodeId input = -1;
    int64_t offset = 0;
    std::vector<Strided::Guard> guards;
    std::vector<PendingTerm> terms;
  };

  // An address, and the operand or store, or the piece of one, that reads at this address.
  struct Read {
    NodeId node = -1;
    size_t operand = 0;
    int store = -1, piece = -1;
    Pending pending = {};
  };

  const Node& node(NodeId id) const { return graph_.nodes[id]; }
  std::string what(NodeId id) const { return cat("%", id, " ", name_of(node(id).op), " ", shape_text(node(id).shape)); }
  void find_computed();
  absl::Status store(int index);

  // In analysis.cpp: reads, and the axes of the values that are computed from them.
  absl::StatusOr<Axes> computed_path(NodeId source, const std::vector<NodeId>& views);
  // Makes new axes for a tensor that is read at `strided`; `pending` becomes the address in terms of their factors.
  Axes fresh_axes(NodeId input, const Strided& strided, Pending& pending);
  // Returns the axes of operand k of a node; nullopt for a splat constant, which has no axes of its own.
  absl::StatusOr<std::optional<Axes>> read(NodeId id, size_t k);
  // Does what read() does for a value that this group does not compute. The value's addresses are added to reads_, for
  // the operand or store that `as` names; `source` becomes the constant or iota behind the value's views, if there is
  // one.
  absl::StatusOr<std::optional<Axes>> read_leaf(NodeId id, Read as, NodeId& source, std::vector<Piece>& pieces);
  absl::Status join(NodeId id, size_t k, const FactorList& mine, const FactorList& theirs);
  Axes own_axes(NodeId id);
  absl::Status compute(NodeId id);
  absl::Status compute_elementwise(NodeId id);
  absl::Status compute_reduce(NodeId id);
  absl::Status compute_contract(NodeId id);
  absl::Status compute_gather(NodeId id);

  // In domain.cpp: makes one loop of as many axes as possible, then atoms of the loops. At first each read and each sum
  // has factors of its own. link() joins the factors of two reads of the same elements of one input, and those of two
  // sums, unless a value would then have the same loop twice.
  void link();
  // Returns the terms of an address that have a stride, merged, and their factors; the largest stride comes first.
  std::pair<std::vector<Term>, FactorList> in_memory_order(const Pending& pending) const;
  bool same_loops(const FactorList& a, const FactorList& b);
  bool distinct(NodeId id) const;
  bool all_distinct() const;
  std::vector<AtomId> atoms_of(const FactorList& list);
  void fill_access(const Pending& pending, Access& access);
  Access& access_of(const Read& read);
  absl::Status resolve();

  const Graph& graph_;
  const std::vector<std::vector<int64_t>>& pitches_;
  Factors factors_;
  std::vector<Axes> axes_;          // axes of computed nodes, indexed by NodeId
  std::vector<FactorList> summed_;  // factors that reductions and contractions sum over, indexed by NodeId
  FactorList batch_, m_, n_;
  std::vector<Read> reads_;
  std::vector<Pending> writes_;  // addresses of domain.stores, in their order
  std::vector<Axes> stored_axes_;
  std::map<int, AtomId> atom_of_;
  Draft draft_;
};

}  // namespace wl
