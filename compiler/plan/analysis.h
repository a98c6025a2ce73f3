// Inside plan/: finds the loop domain of a group. analysis.cpp follows the ops and joins the axes that are one loop;
// domain.cpp then makes atoms of the loops and accesses of the addresses.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/axes.h"
#include "compiler/plan/draft.h"
#include "compiler/plan/strided.h"

namespace wl {

class Analysis {
 public:
  Analysis(const Graph& group, const std::vector<std::vector<int64_t>>& pitches)
      : graph_(group), pitches_(pitches), axes_(group.nodes.size()), summed_(group.nodes.size()) {}

  absl::StatusOr<Domain> run();

 private:
  // An address whose terms are factors, before these are numbered as atoms.
  struct Pending {
    struct PendingTerm {
      FactorList factors;
      int64_t stride = 0;           // of the innermost factor
      std::vector<int64_t> guards;  // of the innermost factor
    };
    NodeId input = -1;
    int64_t offset = 0;
    std::vector<Strided::Guard> guards;
    std::vector<PendingTerm> terms;
  };

  // An address, and what it belongs to: an operand or a store, or one of its pieces.
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

  // analysis.cpp: reads, and the axes of what is computed from them.
  absl::StatusOr<Axes> computed_path(NodeId source, const std::vector<NodeId>& views);
  // New axes for a tensor that is read at `strided`; `pending` becomes the address in terms of them.
  Axes fresh_axes(NodeId input, const Strided& strided, Pending& pending);
  // The axes under which operand k of a node is read; nullopt for a splat constant.
  absl::StatusOr<std::optional<Axes>> read(NodeId id, size_t k);
  // The same for a value that is not computed here. Its addresses are kept as reads that belong to `as`; `source`
  // becomes the constant or iota behind it, if there is one.
  absl::StatusOr<std::optional<Axes>> read_leaf(NodeId id, Read as, NodeId& source, std::vector<Piece>& pieces);
  absl::Status join(NodeId id, size_t k, const FactorList& mine, const FactorList& theirs);
  Axes own_axes(NodeId id);
  absl::Status compute(NodeId id);
  absl::Status compute_elementwise(NodeId id);
  absl::Status compute_reduce(NodeId id);
  absl::Status compute_contract(NodeId id);
  absl::Status compute_gather(NodeId id);

  // domain.cpp: one loop for as many axes as possible, then atoms.
  // Each read and each sum has factors of its own at first. Where the factors of two reads of one input, or of two
  // sums, can be joined without giving one value the same loop twice, they are.
  void link();
  // The terms of an address that move, merged, and their factors; outermost in memory first.
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
  std::vector<Axes> axes_;          // of computed nodes
  std::vector<FactorList> summed_;  // of reductions and contractions
  FactorList batch_, m_, n_;
  std::vector<Read> reads_;
  std::vector<Pending> writes_;  // of domain.stores
  std::vector<Axes> stored_axes_;
  std::map<int, AtomId> atom_of_;
  Draft draft_;
};

}  // namespace wl
