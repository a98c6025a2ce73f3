#include "compiler/domain/analysis.h"

#include <algorithm>

namespace wl {

absl::StatusOr<Axes> Analysis::computed_path(NodeId source, const std::vector<NodeId>& views) {
  Axes axes = axes_[source];
  for (NodeId view : views) {
    WL_ASSIGN_OR_RETURN(axes, apply_view(graph_, view, axes, factors_));
  }
  return axes;
}

Axes Analysis::fresh_axes(NodeId input, const Strided& strided, Pending& pending) {
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

absl::StatusOr<std::optional<Axes>> Analysis::read(NodeId id, size_t k) {
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

absl::StatusOr<std::optional<Axes>> Analysis::read_leaf(NodeId id, Read as, NodeId& source,
                                                        std::vector<Piece>& pieces) {
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
    // A constant without guards is the same everywhere, so it has no address.
    if (part.constant && part.at.guards.empty()) {
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

absl::Status Analysis::join(NodeId id, size_t k, const FactorList& mine, const FactorList& theirs) {
  const std::string before = factors_.text(mine), other = factors_.text(theirs);
  if (factors_.unify(mine, theirs)) return absl::OkStatus();
  return invalid(what(id), ": operand ", what(node(id).operands[k]), " cuts an axis as ", other, ", the loop as ",
                 before, ": not one loop");
}

absl::Status Analysis::compute(NodeId id) {
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

Axes Analysis::own_axes(NodeId id) {
  Axes axes;
  for (int64_t extent : node(id).shape) axes.push_back(factors_.axis(extent));
  return axes;
}

absl::Status Analysis::compute_elementwise(NodeId id) {
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

absl::Status Analysis::compute_reduce(NodeId id) {
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

absl::Status Analysis::compute_contract(NodeId id) {
  if (draft_.domain.contract >= 0)
    return invalid(what(id), " and ", what(draft_.domain.contract), ": a loop nest has at most one contraction");
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

absl::Status Analysis::compute_gather(NodeId id) {
  NodeId source = -1;
  views_of(graph_, node(id).operands[0], source);
  if (node(source).op != Op::input)
    return invalid(what(id), ": takes elements of ", what(source),
                   " at computed places; it must be an input of the kernel: store it and read it back");
  WL_ASSIGN_OR_RETURN(std::vector<StridedPiece> parts, pieces_of(graph_, node(id).operands[0]));
  if (parts.size() != 1 || parts[0].constant)
    return invalid(what(id), ": takes elements of ", what(node(id).operands[0]),
                   ", which is padded, at computed places; store it and read it back");
  Strided& strided = parts[0].at;
  WL_ASSIGN_OR_RETURN(std::optional<Axes> index, read(id, 1));
  axes_[id] = index ? std::move(*index) : own_axes(id);
  std::vector<Term>& gathered = strided.axes[node(id).ints[0]];
  merge_terms(gathered);
  if (gathered.size() > 1)
    return invalid(what(id), ": the gathered axis of ", what(source), " is several pieces of memory");
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

}  // namespace wl
