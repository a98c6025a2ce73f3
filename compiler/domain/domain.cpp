#include "compiler/domain/domain.h"

#include <algorithm>

#include "compiler/domain/analysis.h"

namespace wl {

absl::StatusOr<Domain> Analysis::run() {
  find_computed();
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

void Analysis::find_computed() {
  std::vector<char> needed(graph_.nodes.size(), 0);
  for (const Output& output : graph_.outputs) needed[output.node] = 1;
  for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;)
    if (needed[id])
      for (NodeId operand : node(id).operands) needed[operand] = 1;
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
    if (needed[id] && is_computed(node(id))) draft_.computed.push_back(id);
}

absl::Status Analysis::store(int index) {
  NodeId stored = graph_.outputs[index].node, source = -1;
  Domain::Store& store = draft_.domain.stores.emplace_back();
  store.output = index;
  store.access.input = stored;
  const auto at = static_cast<size_t>(index);
  const std::vector<int64_t> pitch = at < pitches_.size() ? pitches_[at] : std::vector<int64_t>();
  // A reshape of a whole row-major buffer does not move any element, so it is skipped.
  while (pitch.empty() && node(stored).op == Op::reshape) stored = node(stored).operands[0];
  const std::vector<NodeId> views = views_of(graph_, stored, source);
  Axes axes;
  if (is_computed(node(source))) {
    store.source = source;
    for (NodeId view : views)
      if (node(view).op == Op::broadcast)
        return invalid(what(view), ": an output repeats the elements of ", what(node(view).operands[0]),
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

void Analysis::link() {
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

std::pair<std::vector<Term>, FactorList> Analysis::in_memory_order(const Pending& pending) const {
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

bool Analysis::same_loops(const FactorList& a, const FactorList& b) {
  if (factors_.expand(a) == factors_.expand(b)) return true;
  Factors before = factors_;
  if (factors_.unify(a, b) && all_distinct()) return true;
  factors_ = std::move(before);
  return false;
}

bool Analysis::distinct(NodeId id) const {
  FactorList loop = factors_.expand(summed_[id]);
  for (const FactorList& axis : axes_[id])
    for (int leaf : factors_.expand(axis)) loop.push_back(leaf);
  std::sort(loop.begin(), loop.end());
  return std::adjacent_find(loop.begin(), loop.end()) == loop.end();
}

bool Analysis::all_distinct() const {
  return std::all_of(draft_.computed.begin(), draft_.computed.end(), [this](NodeId id) { return distinct(id); });
}

std::vector<AtomId> Analysis::atoms_of(const FactorList& list) {
  std::vector<AtomId> atoms;
  for (int leaf : factors_.expand(list)) {
    const auto [at, first] = atom_of_.emplace(leaf, static_cast<AtomId>(atom_of_.size()));
    if (first) draft_.domain.atoms.push_back({factors_.extent(leaf), false, ""});
    atoms.push_back(at->second);
  }
  return atoms;
}

void Analysis::fill_access(const Pending& pending, Access& access) {
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

Access& Analysis::access_of(const Read& read) {
  Domain& domain = draft_.domain;
  if (read.store >= 0)
    return read.piece >= 0 ? domain.stores[read.store].pieces[read.piece].access : domain.stores[read.store].copy;
  Domain::Operand& operand = domain.operands[read.node][read.operand];
  return read.piece >= 0 ? operand.pieces[read.piece].access : operand.access;
}

absl::Status Analysis::resolve() {
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

bool holds(const std::vector<AtomId>& list, AtomId atom) {
  return std::find(list.begin(), list.end(), atom) != list.end();
}

Domain turned(Domain domain) {
  std::swap(domain.m, domain.n);
  domain.swapped = !domain.swapped;
  return domain;
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
