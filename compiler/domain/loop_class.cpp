// classify(): merges atoms (loops) that are always traversed together, orders the atoms by their role, and finds the
// loop class.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_join.h"
#include "compiler/domain/draft.h"

namespace wl {
namespace {

using Atoms = std::vector<AtomId>;

// One read or store of the draft: its address, and the node whose dtype gives the size of an element.
struct Traffic {
  Access* access;
  NodeId node;  // node whose dtype the elements have; -1: elements of a constant piece, which no memory holds
  bool store;
};

std::vector<Traffic> traffic_of(Domain& domain) {
  std::vector<Traffic> all;
  const auto pieces_of = [&all](std::vector<Piece>& pieces) {
    for (Piece& piece : pieces) all.push_back({&piece.access, piece.access.input, false});
  };
  for (size_t id = 0; id < domain.operands.size(); ++id)
    for (Domain::Operand& operand : domain.operands[id]) {
      if (operand.access.input >= 0) all.push_back({&operand.access, operand.access.input, false});
      pieces_of(operand.pieces);
    }
  for (Domain::Store& store : domain.stores) {
    if (store.copy.input >= 0) all.push_back({&store.copy, store.copy.input, false});
    pieces_of(store.pieces);
    all.push_back({&store.access, store.access.input, true});
  }
  return all;
}

int64_t bytes_of(const Graph& group, const Domain& domain, const Traffic& traffic) {
  if (traffic.node < 0) return 0;
  int64_t bytes = size_of(group.nodes[traffic.node].dtype);
  for (size_t atom = 0; atom < domain.atoms.size(); ++atom)
    if (traffic.access->strides[atom] != 0) bytes *= domain.atoms[atom].extent;
  return bytes;
}

// Returns the strides of an access: those of its address, and those of each of its guards.
std::vector<std::vector<int64_t>*> strides_of(Access& access) {
  std::vector<std::vector<int64_t>*> all = {&access.strides};
  for (Guard& guard : access.guards) all.push_back(&guard.strides);
  return all;
}

std::vector<Atoms*> lists_of(Draft& draft) {
  std::vector<Atoms*> lists = {&draft.domain.batch, &draft.domain.m, &draft.domain.n};
  for (NodeId id : draft.computed) {
    lists.push_back(&draft.domain.varies[id]);
    lists.push_back(&draft.reduced_by[id]);
  }
  return lists;
}

bool move_together(Draft& draft, AtomId outer, AtomId inner) {
  const std::vector<Atom>& atoms = draft.domain.atoms;
  if (atoms[outer].extent == 0 || atoms[inner].extent == 0) return false;
  for (const Atoms* list : lists_of(draft))
    if (holds(*list, outer) != holds(*list, inner)) return false;
  for (const Traffic& traffic : traffic_of(draft.domain))
    for (const std::vector<int64_t>* strides : strides_of(*traffic.access))
      if ((*strides)[outer] != (*strides)[inner] * atoms[inner].extent) return false;
  return true;
}

// Merges the atom `inner` into the atom `outer`.
void merge(Draft& draft, AtomId outer, AtomId inner) {
  std::vector<Atom>& atoms = draft.domain.atoms;
  atoms[outer].extent *= atoms[inner].extent;
  atoms.erase(atoms.begin() + inner);
  for (const Traffic& traffic : traffic_of(draft.domain))
    for (std::vector<int64_t>* strides : strides_of(*traffic.access)) {
      (*strides)[outer] = (*strides)[inner];
      strides->erase(strides->begin() + inner);
    }
  for (Atoms* list : lists_of(draft)) {
    std::erase(*list, inner);
    for (AtomId& atom : *list)
      if (atom > inner) --atom;
  }
}

void collapse(Draft& draft) {
  for (bool changed = true; changed;) {
    changed = false;
    const AtomId count = static_cast<AtomId>(draft.domain.atoms.size());
    for (AtomId outer = 0; outer < count && !changed; ++outer)
      for (AtomId inner = 0; inner < count && !changed; ++inner)
        if (outer != inner && move_together(draft, outer, inner)) {
          merge(draft, outer, inner);
          changed = true;
        }
  }
}

// Renumbers the atoms: the new atom i is the atom that had number order[i].
void renumber(Draft& draft, const Atoms& order) {
  std::vector<Atom> atoms;
  Atoms now(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    atoms.push_back(draft.domain.atoms[order[i]]);
    now[order[i]] = static_cast<AtomId>(i);
  }
  draft.domain.atoms = std::move(atoms);
  for (const Traffic& traffic : traffic_of(draft.domain))
    for (std::vector<int64_t>* old_strides : strides_of(*traffic.access)) {
      std::vector<int64_t> strides;
      for (AtomId old : order) strides.push_back((*old_strides)[old]);
      *old_strides = std::move(strides);
    }
  for (Atoms* list : lists_of(draft))
    for (AtomId& atom : *list) atom = now[atom];
}

// Orders the atoms, outermost first. Parallel atoms come before reduced ones. Among parallel atoms, the one with the
// larger stride in the largest store that depends on it comes first; among reduced atoms, the one with the larger
// stride in the largest read that depends on it. The parallel atoms of a contraction are first ordered by role: batch,
// m, n.
void order_atoms(const Graph& group, Draft& draft) {
  Domain& domain = draft.domain;
  const std::vector<Traffic> all = traffic_of(domain);
  std::vector<int64_t> bytes;
  for (const Traffic& traffic : all) bytes.push_back(bytes_of(group, domain, traffic));
  const auto stride_in_largest = [&](AtomId atom, bool stores) {
    int64_t best = -1, stride = 0;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].store == stores && all[i].access->strides[atom] != 0 && bytes[i] > best) {
        best = bytes[i];
        stride = std::abs(all[i].access->strides[atom]);
      }
    return stride;
  };
  std::vector<std::tuple<int, int, int64_t, AtomId>> keys;
  for (AtomId atom = 0; atom < static_cast<AtomId>(domain.atoms.size()); ++atom) {
    const bool reduced = domain.atoms[atom].reduced;
    const int role = holds(domain.batch, atom) ? 0 : holds(domain.m, atom) ? 1 : 2;
    const int64_t stride = stride_in_largest(atom, !reduced);
    keys.push_back({reduced ? 1 : 0, domain.contract >= 0 ? role : 0, -stride, atom});
  }
  std::sort(keys.begin(), keys.end());
  Atoms order;
  for (const auto& key : keys) order.push_back(std::get<3>(key));
  renumber(draft, order);
}

// The extent below which a loop is short: most lanes of a vector along such a loop would be unused.
constexpr int64_t kShort = 8;

// Returns the atom that has stride 1 in reads and stores of the most bytes; -1 if there is none. Only reads and stores
// that `admit` accepts count. A short atom is chosen only if all are short, and then it is the longest one: in a
// sliding window, vectors should lie along the outputs, not within the window. Atoms with fewer than `least` bytes are
// chosen only if all have fewer: vectors should not lie along channels of which only the biases are contiguous.
template <typename Admit>
AtomId contiguous_atom(const Graph& group, Domain& domain, int64_t least, Admit admit) {
  std::vector<int64_t> score(domain.atoms.size(), 0);
  for (const Traffic& traffic : traffic_of(domain)) {
    if (!admit(traffic)) continue;
    for (size_t atom = 0; atom < domain.atoms.size(); ++atom)
      if (traffic.access->strides[atom] == 1) score[atom] += bytes_of(group, domain, traffic);
  }
  AtomId best = -1;
  const auto rank = [&](size_t atom) {
    return std::tuple(score[atom] >= least, std::min(domain.atoms[atom].extent, kShort), score[atom]);
  };
  for (size_t atom = 0; atom < score.size(); ++atom)  // of atoms with the same score, the last (innermost) one is taken
    if (score[atom] > 0 && (best < 0 || rank(atom) >= rank(static_cast<size_t>(best))))
      best = static_cast<AtomId>(atom);
  return best;
}

// Half of the bytes that the group stores.
int64_t half_stored(const Graph& group, Domain& domain) {
  int64_t stored = 0;
  for (const Traffic& traffic : traffic_of(domain))
    if (traffic.store) stored += bytes_of(group, domain, traffic);
  return stored / 2;
}

std::string loops(const Domain& domain, const Atoms& atoms) {
  return cat("[",
             absl::StrJoin(atoms, ",", [&](std::string* out, AtomId atom) { append(out, domain.atoms[atom].extent); }),
             "]");
}

// Returns the first reduction or contraction of the group; -1 if there is none. The error is InvalidArgument if not all
// of them reduce the same atoms.
absl::StatusOr<NodeId> find_reduction(const Graph& group, const Draft& draft) {
  NodeId reduction = -1;
  const Domain& domain = draft.domain;
  for (NodeId id : draft.computed) {
    Atoms mine = draft.reduced_by[id];
    if (mine.empty()) continue;
    // A group with a contraction may not contain a reduction as well. The comparison of atoms below does not see a
    // contraction that sums over axes of extent 1 alone, since it reduces no atoms.
    if (domain.contract >= 0 && id != domain.contract)
      return invalid(node_text(group, std::min(id, domain.contract)), " and ",
                     node_text(group, std::max(id, domain.contract)), ": a contraction and a reduction are two loops");
    if (reduction < 0) {
      reduction = id;
      continue;
    }
    Atoms first = draft.reduced_by[reduction];
    std::sort(mine.begin(), mine.end());
    std::sort(first.begin(), first.end());
    if (mine != first)
      return invalid(node_text(group, reduction), " reduces loops ", loops(domain, first), ", ", node_text(group, id),
                     " reduces loops ", loops(domain, mine), ": not one loop");
  }
  return reduction;
}

// Checks that no work is repeated: every store, reduction and contraction must depend on every parallel atom.
absl::Status check_no_repeats(const Graph& group, const Draft& draft) {
  const Domain& domain = draft.domain;
  for (AtomId atom : domain.parallel) {
    for (const Domain::Store& store : domain.stores)
      if (store.access.strides[atom] == 0)
        return invalid(node_text(group, group.outputs[store.output].node),
                       ": the output does not move along a loop of ", domain.atoms[atom].extent,
                       " that the group has; it would be stored that many times");
    for (NodeId id : draft.computed)
      if ((!draft.reduced_by[id].empty() || id == domain.contract) && !holds(domain.varies[id], atom))
        return invalid(node_text(group, id), ": does not move along a loop of ", domain.atoms[atom].extent,
                       " that the group has; it would be summed that many times");
  }
  return absl::OkStatus();
}

absl::Status check_epilogue(const Graph& group, const Draft& draft) {
  const Domain& domain = draft.domain;
  std::vector<char> before(group.nodes.size(), 0);
  before[domain.contract] = 1;
  for (NodeId id = domain.contract; id >= 0; --id)
    if (before[id])
      for (NodeId operand : group.nodes[id].operands) before[operand] = 1;
  for (NodeId id : draft.computed)
    for (AtomId atom : domain.varies[id])
      if (!before[id] && domain.atoms[atom].reduced)
        return invalid(node_text(group, id), ": is computed after ", node_text(group, domain.contract),
                       " but moves along a loop that it sums: not one loop");
  for (const Domain::Store& store : domain.stores) {
    if (store.source < 0 || before[store.source] > (store.source == domain.contract ? 1 : 0))
      return invalid("output ", store.output, " is not computed from ", node_text(group, domain.contract),
                     ": it would be stored once for every step of the sum");
  }
  return absl::OkStatus();
}

// Turns a contraction with one row or one column (a matrix times a vector, a sum over a window for each channel) into a
// reduction of products. No tile of such a contraction is used more than once, so its speed depends on the order of
// memory accesses, as for reductions.
void reduce_products(Domain& domain) {
  if (!domain.m.empty() && !domain.n.empty()) return;
  domain.contract = -1;
  for (Atoms* role : {&domain.batch, &domain.m, &domain.n}) role->clear();
}

// Exchanges m and n if stores are contiguous along m only. Vectors lie along n, so stores should be contiguous along n.
void choose_columns(Domain& domain) {
  if (domain.n.empty()) return;
  const auto contiguous = [&](const Atoms& role) {
    return std::any_of(domain.stores.begin(), domain.stores.end(), [&](const Domain::Store& store) {
      return std::any_of(role.begin(), role.end(), [&](AtomId atom) { return store.access.strides[atom] == 1; });
    });
  };
  if (contiguous(domain.n) || !contiguous(domain.m)) return;
  std::swap(domain.m, domain.n);
  domain.swapped = true;
}

void finish(const Graph& group, Domain& domain) {
  for (size_t i = 0; i < domain.atoms.size(); ++i) domain.atoms[i].name = cat("d", i);
  for (Domain::Store& store : domain.stores) store.access.input = group.outputs[store.output].node;
}

}  // namespace

absl::StatusOr<Domain> classify(const Graph& group, Draft draft) {
  collapse(draft);
  Domain& domain = draft.domain;
  WL_ASSIGN_OR_RETURN(const NodeId reduction, find_reduction(group, draft));
  if (reduction >= 0)
    for (AtomId atom : draft.reduced_by[reduction]) domain.atoms[atom].reduced = true;
  if (domain.contract >= 0 && reduction >= 0) reduce_products(domain);
  if (domain.contract >= 0) choose_columns(domain);
  order_atoms(group, draft);
  for (AtomId atom = 0; atom < static_cast<AtomId>(domain.atoms.size()); ++atom)
    (domain.atoms[atom].reduced ? domain.reduced : domain.parallel).push_back(atom);
  WL_RETURN_IF_ERROR(check_no_repeats(group, draft));
  for (Atoms* role : {&domain.batch, &domain.m, &domain.n}) std::sort(role->begin(), role->end());
  finish(group, domain);

  const auto gather = std::find_if(draft.computed.begin(), draft.computed.end(),
                                   [&](NodeId id) { return class_of(group.nodes[id].op) == OpClass::kGather; });
  if (domain.contract >= 0) {
    if (gather != draft.computed.end())
      return invalid(node_text(group, *gather), " and ", node_text(group, domain.contract),
                     ": a gather cannot be part of a contraction's tiles");
    domain.cls = LoopClass::kContract;
    WL_RETURN_IF_ERROR(check_epilogue(group, draft));
    domain.vector = !domain.n.empty() ? domain.n.back() : domain.parallel.empty() ? -1 : domain.parallel.back();
  } else if (reduction >= 0) {
    domain.vector = contiguous_atom(group, domain, half_stored(group, domain), [](const Traffic&) { return true; });
    if (domain.vector < 0) domain.vector = domain.reduced.back();
    domain.cls = domain.atoms[domain.vector].reduced ? LoopClass::kRows : LoopClass::kColumns;
  } else {
    domain.cls = LoopClass::kMap;
    domain.vector = contiguous_atom(group, domain, 0, [](const Traffic& traffic) { return traffic.store; });
    const AtomId vector = domain.vector;
    if (vector >= 0 && gather == draft.computed.end())
      domain.second = contiguous_atom(group, domain, 0, [vector](const Traffic& traffic) {
        return !traffic.store && std::abs(traffic.access->strides[vector]) > 1;
      });
  }
  return std::move(draft.domain);
}

Domain nothing_to_compute(const Graph& group) {
  Domain domain;
  domain.atoms = {{.extent = 0, .reduced = false, .name = "d0"}};
  domain.varies.resize(group.nodes.size());
  domain.operands.resize(group.nodes.size());
  domain.parallel = {0};
  domain.vector = 0;
  return domain;
}

std::string_view name_of(LoopClass cls) {
  constexpr std::string_view kNames[] = {"map", "rows", "columns", "contract", "stitched", "packed"};
  return kNames[static_cast<int>(cls)];
}

bool Access::moves_along(AtomId atom) const {
  return strides[atom] != 0 ||
         std::any_of(guards.begin(), guards.end(), [atom](const Guard& guard) { return guard.strides[atom] != 0; });
}

std::string Domain::text() const {
  const auto list = [&](const Atoms& of) {
    return absl::StrJoin(of, ",", [&](std::string* out, AtomId atom) { out->append(atoms[atom].name); });
  };
  const auto index = [&](int64_t offset, const std::vector<int64_t>& strides) {
    std::string out = cat(offset);
    for (size_t i = 0; i < strides.size(); ++i)
      if (strides[i] != 0) append(&out, "+", strides[i], "*", atoms[i].name);
    return out;
  };
  const auto address = [&](const Access& access) {
    return cat("%", access.input, "+", index(access.offset, access.strides));
  };
  const auto read = [&](const Access& access, NodeId source, const std::vector<Piece>& pieces) {
    if (pieces.empty()) return access.input >= 0 ? address(access) : cat("%", source);
    std::vector<std::string> parts;
    for (const Piece& piece : pieces) {
      parts.push_back(piece.constant ? cat(piece.value) : address(piece.access));
      for (const Guard& guard : piece.access.guards)
        append(&parts.back(), " where ", index(guard.offset, guard.strides), " of ", guard.extent);
    }
    return cat("(", absl::StrJoin(parts, " | "), ")");
  };
  std::string out = cat("class ", name_of(cls), "\natoms");
  for (const Atom& atom : atoms) append(&out, " ", atom.name, "=", atom.extent, atom.reduced ? " reduced" : "");
  append(&out, "\nparallel ", list(parallel), " reduced ", list(reduced));
  if (vector >= 0) append(&out, " vector ", atoms[vector].name);
  if (second >= 0) append(&out, " second ", atoms[second].name);
  if (contract >= 0)
    append(&out, "\ncontract %", contract, swapped ? " swapped" : "", " batch ", list(batch), " m ", list(m), " n ",
           list(n));
  for (size_t id = 0; id < operands.size(); ++id) {
    if (operands[id].empty()) continue;
    append(&out, "\n%", id, " [", list(varies[id]), "]");
    for (const Operand& operand : operands[id]) {
      append(&out, " ", read(operand.access, operand.source, operand.pieces));
      if (operand.gather_extent > 0) append(&out, "+", operand.gather_stride, "*index");
    }
  }
  for (const Store& store : stores) {
    append(&out, "\nstore ", address(store.access), " <- ", read(store.copy, store.source, store.pieces));
  }
  return cat(out, "\n");
}

}  // namespace wl
