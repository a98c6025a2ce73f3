#include "compiler/plan/domain.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_join.h"
#include "compiler/plan/axes.h"
#include "compiler/plan/draft.h"
#include "compiler/plan/strided.h"

namespace wl {
namespace {

// An address whose terms are still factors.
struct Pending {
  struct PendingTerm {
    FactorList factors;
    int64_t stride = 0;           // of the innermost
    std::vector<int64_t> guards;  // likewise
  };
  NodeId input = -1;
  int64_t offset = 0;
  std::vector<Strided::Guard> guards;
  std::vector<PendingTerm> terms;
};

// Whose address it is: an operand's or a store's, or that of one of its pieces.
struct Read {
  NodeId node = -1;
  size_t operand = 0;
  int store = -1, piece = -1;
  Pending pending = {};
};

class Analysis {
 public:
  Analysis(const Graph& group, const std::vector<std::vector<int64_t>>& pitches)
      : graph_(group), pitches_(pitches), axes_(group.nodes.size()), summed_(group.nodes.size()) {}

  absl::StatusOr<Domain> run() {
    reach();
    Domain& domain = draft_.domain;
    domain.operands.resize(graph_.nodes.size());
    domain.varies.resize(graph_.nodes.size());
    draft_.reduced_by.resize(graph_.nodes.size());
    for (NodeId id : draft_.computed) WL_RETURN_IF_ERROR(compute(id));
    for (int i = 0; i < static_cast<int>(graph_.outputs.size()); ++i) WL_RETURN_IF_ERROR(store(i));
    link();
    WL_RETURN_IF_ERROR(resolve());
    return classify(graph_, std::move(draft_));
  }

 private:
  const Node& node(NodeId id) const { return graph_.nodes[id]; }
  std::string what(NodeId id) const { return cat("%", id, " ", name_of(node(id).op), " ", shape_text(node(id).shape)); }

  void reach() {
    std::vector<char> needed(graph_.nodes.size(), 0);
    for (const Output& output : graph_.outputs) needed[output.node] = 1;
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;)
      if (needed[id])
        for (NodeId operand : node(id).operands) needed[operand] = 1;
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      if (needed[id] && is_computed(node(id))) draft_.computed.push_back(id);
  }

  absl::StatusOr<Axes> computed_path(NodeId source, const std::vector<NodeId>& views) {
    Axes axes = axes_[source];
    for (NodeId view : views) {
      WL_ASSIGN_OR_RETURN(axes, apply_view(graph_, view, axes, factors_));
    }
    return axes;
  }

  // Axes of their own for a tensor read at `strided`, and the address in terms of them.
  Axes fresh_axes(NodeId input, const Strided& strided, Pending& pending) {
    Axes axes;
    pending.input = input;
    pending.offset = strided.offset;
    pending.guards = strided.guards;
    for (const std::vector<Term>& terms : strided.axes) {
      FactorList& list = axes.emplace_back();
      for (const Term& term : terms) {
        list.push_back(factors_.fresh(term.extent));
        pending.terms.push_back({{list.back()}, term.stride, term.guards});
      }
    }
    return axes;
  }

  // The axes under which operand k of a node is read; nullopt for a splat constant.
  absl::StatusOr<std::optional<Axes>> read(NodeId id, size_t k) {
    std::vector<Domain::Operand>& operands = draft_.domain.operands[id];
    operands.resize(node(id).operands.size());
    NodeId source = -1;
    const std::vector<NodeId> views = views_of(graph_, node(id).operands[k], source);
    if (is_computed(node(source))) {
      operands[k].source = source;
      WL_ASSIGN_OR_RETURN(Axes axes, computed_path(source, views));
      return std::optional<Axes>(std::move(axes));
    }
    return read_leaf(node(id).operands[k], {.node = id, .operand = k}, operands[k].source, operands[k].pieces);
  }

  // The same for anything that is not computed. Addresses are pending under `as`; `source` becomes a constant or iota.
  absl::StatusOr<std::optional<Axes>> read_leaf(NodeId id, Read as, NodeId& source, std::vector<Piece>& pieces) {
    WL_ASSIGN_OR_RETURN(const std::vector<StridedPiece> parts, pieces_of(graph_, id));
    std::optional<Axes> all;
    const bool whole = parts.size() == 1 && parts[0].leaf >= 0;
    if (whole && node(parts[0].leaf).op != Op::input) source = parts[0].leaf;
    if (whole && parts[0].constant) return all;
    for (const StridedPiece& part : parts) {
      if (!whole) {
        as.piece = static_cast<int>(pieces.size());
        pieces.push_back({.source = -1, .constant = part.constant, .value = part.value, .access = {}});
        if (!part.constant && node(part.leaf).op == Op::iota) pieces.back().source = part.leaf;
      }
      Pending pending;
      if (part.constant && part.at.guards.empty()) {  // the same everywhere
        reads_.push_back(as);
        continue;
      }
      const Axes axes = fresh_axes(part.constant ? -1 : part.leaf, part.at, pending);
      as.pending = std::move(pending);
      reads_.push_back(std::move(as));
      as.pending = {};
      if (!all) {
        all = axes;
        continue;
      }
      for (size_t i = 0; i < axes.size(); ++i)
        if (!factors_.unify((*all)[i], axes[i]))
          return invalid(what(id), ": joins values that cut axis ", i, " differently: not one loop");
    }
    return all;
  }

  absl::Status join(NodeId id, size_t k, const FactorList& mine, const FactorList& theirs) {
    const std::string before = factors_.text(mine), other = factors_.text(theirs);
    if (factors_.unify(mine, theirs)) return absl::OkStatus();
    return invalid(what(id), ": operand %", node(id).operands[k], " cuts an axis as ", other, ", the loop as ", before,
                   ": not one loop");
  }

  absl::Status compute(NodeId id) {
    switch (class_of(node(id).op)) {
      case OpClass::kReduce:
        return compute_reduce(id);
      case OpClass::kContract:
        return compute_contract(id);
      case OpClass::kGather:
        return compute_gather(id);
      default:
        return compute_elementwise(id);
    }
  }

  Axes own_axes(NodeId id) {
    Axes axes;
    for (int64_t extent : node(id).shape) axes.push_back(factors_.axis(extent));
    return axes;
  }

  absl::Status compute_elementwise(NodeId id) {
    std::optional<Axes> mine;
    for (size_t k = 0; k < node(id).operands.size(); ++k) {
      WL_ASSIGN_OR_RETURN(std::optional<Axes> axes, read(id, k));
      if (!axes) continue;
      if (!mine) {
        mine = std::move(axes);
        continue;
      }
      for (size_t i = 0; i < mine->size(); ++i) WL_RETURN_IF_ERROR(join(id, k, (*mine)[i], (*axes)[i]));
    }
    axes_[id] = mine ? std::move(*mine) : own_axes(id);
    return absl::OkStatus();
  }

  absl::Status compute_reduce(NodeId id) {
    WL_ASSIGN_OR_RETURN(std::optional<Axes> axes, read(id, 0));
    if (!axes) {
      axes.emplace();
      for (int64_t extent : node(node(id).operands[0]).shape) axes->push_back(factors_.axis(extent));
    }
    for (size_t i = 0; i < axes->size(); ++i) {
      if (std::count(node(id).ints.begin(), node(id).ints.end(), static_cast<int64_t>(i)))
        summed_[id].insert(summed_[id].end(), (*axes)[i].begin(), (*axes)[i].end());
      else
        axes_[id].push_back((*axes)[i]);
    }
    return absl::OkStatus();
  }

  absl::Status compute_contract(NodeId id) {
    if (draft_.domain.contract >= 0)
      return invalid(what(id), " and ", what(draft_.domain.contract), ": a kernel has at most one contraction");
    draft_.domain.contract = id;
    WL_ASSIGN_OR_RETURN(const Einsum einsum, parse_einsum(node(id).text));
    std::map<char, FactorList> letters;
    for (size_t k = 0; k < 2; ++k) {
      WL_ASSIGN_OR_RETURN(const std::optional<Axes> axes, read(id, k));
      const std::string& names = k == 0 ? einsum.a : einsum.b;
      for (size_t i = 0; i < names.size(); ++i) {
        const FactorList mine = axes ? (*axes)[i] : factors_.axis(node(node(id).operands[k]).shape[i]);
        const auto [at, first] = letters.emplace(names[i], mine);
        if (!first) WL_RETURN_IF_ERROR(join(id, k, at->second, mine));
      }
    }
    for (const auto& [letter, list] : letters) {
      const bool a = einsum.a.find(letter) != std::string::npos, b = einsum.b.find(letter) != std::string::npos;
      if (einsum.out.find(letter) != std::string::npos) {
        FactorList& role = a && b ? batch_ : a ? m_ : n_;
        role.insert(role.end(), list.begin(), list.end());
        continue;
      }
      summed_[id].insert(summed_[id].end(), list.begin(), list.end());
    }
    for (char letter : einsum.out) axes_[id].push_back(letters[letter]);
    return absl::OkStatus();
  }

  absl::Status compute_gather(NodeId id) {
    NodeId source = -1;
    views_of(graph_, node(id).operands[0], source);
    if (node(source).op != Op::input)
      return invalid(what(id), ": takes elements of %", source,
                     " at computed places; it must be an input of the kernel: store it and read it back");
    WL_ASSIGN_OR_RETURN(std::vector<StridedPiece> parts, pieces_of(graph_, node(id).operands[0]));
    if (parts.size() != 1 || parts[0].constant)
      return invalid(what(id), ": takes elements of %", node(id).operands[0],
                     ", which is padded, at computed places; store it and read it back");
    Strided& strided = parts[0].at;
    WL_ASSIGN_OR_RETURN(std::optional<Axes> index, read(id, 1));
    axes_[id] = index ? std::move(*index) : own_axes(id);
    std::vector<Term>& gathered = strided.axes[node(id).ints[0]];
    merge_terms(gathered);
    if (gathered.size() > 1)
      return invalid(what(id), ": the gathered axis of %", source, " is several pieces of memory");
    Domain::Operand& operand = draft_.domain.operands[id][0];
    operand.access.input = source;
    operand.gather_extent = node(node(id).operands[0]).shape[node(id).ints[0]];
    operand.gather_stride = gathered.empty() ? 0 : gathered[0].stride;
    gathered.clear();
    Pending pending;
    const Axes axes = fresh_axes(source, strided, pending);
    for (size_t i = 0; i < axes.size(); ++i)
      if (static_cast<int64_t>(i) != node(id).ints[0]) WL_RETURN_IF_ERROR(join(id, 0, axes_[id][i], axes[i]));
    reads_.push_back({.node = id, .operand = 0, .pending = std::move(pending)});
    return absl::OkStatus();
  }

  absl::Status store(int index) {
    NodeId stored = graph_.outputs[index].node, source = -1;
    Domain::Store& store = draft_.domain.stores.emplace_back();
    store.output = index;
    store.access.input = stored;
    const auto at = static_cast<size_t>(index);
    const std::vector<int64_t> pitch = at < pitches_.size() ? pitches_[at] : std::vector<int64_t>();
    // A reshape of a whole row-major buffer moves nothing.
    while (pitch.empty() && node(stored).op == Op::reshape) stored = node(stored).operands[0];
    const std::vector<NodeId> views = views_of(graph_, stored, source);
    Axes axes;
    if (is_computed(node(source))) {
      store.source = source;
      for (NodeId view : views)
        if (node(view).op == Op::broadcast)
          return invalid(what(view), ": an output repeats the elements of %", node(view).operands[0],
                         ", which this kernel computes; store that value and copy it");
      WL_ASSIGN_OR_RETURN(axes, computed_path(source, views));
    } else {
      WL_ASSIGN_OR_RETURN(std::optional<Axes> moving, read_leaf(stored, {.store = index}, store.source, store.pieces));
      axes = moving ? std::move(*moving) : own_axes(stored);
    }
    Pending pending;
    int64_t stride = 1;
    for (size_t i = axes.size(); i-- > 0;) {
      pending.terms.push_back({axes[i], pitch.empty() ? stride : pitch[i], {}});
      for (int leaf : factors_.expand(axes[i])) stride *= factors_.extent(leaf);
    }
    writes_.push_back(std::move(pending));
    stored_axes_.push_back(std::move(axes));
    return absl::OkStatus();
  }

  // Two reads of one input, and two sums, use names of their own for their loops. Where the names can be made the same
  // without giving one value the same loop twice, they are: the row that is reduced is the row that is read again.
  void link() {
    std::vector<const Pending*> reads;
    for (const Read& read : reads_)
      if (read.piece < 0) reads.push_back(&read.pending);
    for (size_t i = 1; i < reads.size(); ++i) {
      const auto [mine, order] = in_memory_order(*reads[i]);
      for (size_t j = 0; j < i; ++j) {
        if (reads[j]->input != reads[i]->input || reads[j]->offset != reads[i]->offset) continue;
        const auto [theirs, other] = in_memory_order(*reads[j]);
        if (mine == theirs && same_loops(order, other)) break;
      }
    }
    NodeId first = -1;
    for (NodeId id : draft_.computed) {
      if (summed_[id].empty()) continue;
      if (first < 0)
        first = id;
      else
        same_loops(summed_[first], summed_[id]);
    }
  }

  // The terms that move, merged, and their factors, outermost in memory first.
  std::pair<std::vector<Term>, FactorList> in_memory_order(const Pending& pending) const {
    std::vector<std::pair<Term, int>> terms;
    for (const Pending::PendingTerm& term : pending.terms)
      if (term.stride != 0) terms.push_back({{factors_.extent(term.factors[0]), term.stride}, term.factors[0]});
    std::stable_sort(terms.begin(), terms.end(),
                     [](const auto& a, const auto& b) { return std::abs(a.first.stride) > std::abs(b.first.stride); });
    std::pair<std::vector<Term>, FactorList> result;
    for (const auto& [term, factor] : terms) {
      result.first.push_back(term);
      result.second.push_back(factor);
    }
    merge_terms(result.first);
    return result;
  }

  bool same_loops(const FactorList& a, const FactorList& b) {
    if (factors_.expand(a) == factors_.expand(b)) return true;
    Factors before = factors_;
    if (factors_.unify(a, b) && all_distinct()) return true;
    factors_ = std::move(before);
    return false;
  }

  bool distinct(NodeId id) const {
    FactorList loop = factors_.expand(summed_[id]);
    for (const FactorList& axis : axes_[id])
      for (int leaf : factors_.expand(axis)) loop.push_back(leaf);
    std::sort(loop.begin(), loop.end());
    return std::adjacent_find(loop.begin(), loop.end()) == loop.end();
  }

  bool all_distinct() const {
    return std::all_of(draft_.computed.begin(), draft_.computed.end(), [this](NodeId id) { return distinct(id); });
  }

  std::vector<AtomId> atoms_of(const FactorList& list) {
    std::vector<AtomId> atoms;
    for (int leaf : factors_.expand(list)) {
      const auto [at, first] = atom_of_.emplace(leaf, static_cast<AtomId>(atom_of_.size()));
      if (first) draft_.domain.atoms.push_back({factors_.extent(leaf), false, ""});
      atoms.push_back(at->second);
    }
    return atoms;
  }

  void fill_access(const Pending& pending, Access& access) {
    const std::vector<int64_t> still(draft_.domain.atoms.size(), 0);
    access.offset = pending.offset;
    access.strides = still;
    for (const Strided::Guard& guard : pending.guards) access.guards.push_back({guard.offset, still, guard.extent});
    for (const Pending::PendingTerm& term : pending.terms) {
      const std::vector<AtomId> atoms = atoms_of(term.factors);
      int64_t inside = 1;
      for (size_t i = atoms.size(); i-- > 0;) {
        access.strides[atoms[i]] += term.stride * inside;
        for (size_t g = 0; g < term.guards.size(); ++g) access.guards[g].strides[atoms[i]] += term.guards[g] * inside;
        inside *= draft_.domain.atoms[atoms[i]].extent;
      }
    }
  }

  Access& access_of(const Read& read) {
    Domain& domain = draft_.domain;
    if (read.store >= 0)
      return read.piece >= 0 ? domain.stores[read.store].pieces[read.piece].access : domain.stores[read.store].copy;
    Domain::Operand& operand = domain.operands[read.node][read.operand];
    return read.piece >= 0 ? operand.pieces[read.piece].access : operand.access;
  }

  absl::Status resolve() {
    Domain& domain = draft_.domain;
    for (const Axes& axes : stored_axes_)
      for (const FactorList& axis : axes) atoms_of(axis);
    for (NodeId id : draft_.computed) {
      for (const FactorList& axis : axes_[id])
        for (AtomId atom : atoms_of(axis)) domain.varies[id].push_back(atom);
      draft_.reduced_by[id] = atoms_of(summed_[id]);
      if (!distinct(id))
        return invalid(what(id), ": one axis of the loop would be two axes of this value (a value meets another view ",
                       "of itself); store it and read it back");
    }
    domain.batch = atoms_of(batch_);
    domain.m = atoms_of(m_);
    domain.n = atoms_of(n_);
    for (const Read& read : reads_) {
      access_of(read).input = read.pending.input;
      fill_access(read.pending, access_of(read));
    }
    for (size_t i = 0; i < domain.stores.size(); ++i) fill_access(writes_[i], domain.stores[i].access);
    return absl::OkStatus();
  }

  const Graph& graph_;
  const std::vector<std::vector<int64_t>>& pitches_;
  Factors factors_;
  std::vector<Axes> axes_;          // of computed nodes
  std::vector<FactorList> summed_;  // of reduces and contractions
  FactorList batch_, m_, n_;
  std::vector<Read> reads_;
  std::vector<Pending> writes_;  // of domain.stores
  std::vector<Axes> stored_axes_;
  std::map<int, AtomId> atom_of_;
  Draft draft_;
};

}  // namespace

bool holds(const std::vector<AtomId>& list, AtomId atom) {
  return std::find(list.begin(), list.end(), atom) != list.end();
}

AtomId shared_atom(const Domain& domain) {
  AtomId longest = -1;
  for (AtomId atom : domain.reduced)
    if (longest < 0 || domain.atoms[atom].extent > domain.atoms[longest].extent) longest = atom;
  return longest;
}

int64_t extent_of(const Domain& domain, const std::vector<AtomId>& atoms) {
  int64_t product = 1;
  for (AtomId atom : atoms) product *= domain.atoms[atom].extent;
  return product;
}

absl::StatusOr<Domain> analyze(const Graph& group, const Machine&, const std::vector<std::vector<int64_t>>& pitches) {
  if (std::all_of(group.outputs.begin(), group.outputs.end(),
                  [&](const Output& output) { return elements(group.nodes[output.node].shape) == 0; }))
    return nothing_to_compute(group);
  return Analysis(group, pitches).run();
}

}  // namespace wl
