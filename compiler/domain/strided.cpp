#include "compiler/domain/strided.h"

#include <algorithm>
#include <cmath>

#include "compiler/domain/axes.h"
#include "compiler/ir/index_map.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

absl::Status cut(const Graph& graph, NodeId view, std::string_view why) {
  return invalid(node_text(graph, view), ": ", why);
}

std::vector<Term> single(Term term) {
  if (term.extent == 1) return {};
  return {std::move(term)};
}

// Returns a term with `extent` steps, each of which is as long as `by` steps of `term`.
Term stepped(Term term, int64_t extent, int64_t by) {
  term.extent = extent;
  term.stride *= by;
  for (int64_t& guard : term.guards) guard *= by;
  return term;
}

void move(Strided& strided, const Term& term, int64_t steps) {
  strided.offset += steps * term.stride;
  for (size_t i = 0; i < strided.guards.size(); ++i) strided.guards[i].offset += steps * term.guards[i];
}

bool together(const Term& outer, const Term& inner) {
  if (outer.stride != inner.stride * inner.extent || outer.extent <= 0 || inner.extent <= 0) return false;
  for (size_t i = 0; i < outer.guards.size(); ++i)
    if (outer.guards[i] != inner.guards[i] * inner.extent) return false;
  return true;
}

// Sets `term` to the only term of an axis; for an axis of extent 1, to a term with stride 0. Returns false if the axis
// has several terms.
bool only_term(Strided& strided, size_t axis, Term& term) {
  std::vector<Term>& terms = strided.axes[axis];
  merge_terms(terms);
  if (terms.size() > 1) return false;
  term = terms.empty() ? Term{1, 0, std::vector<int64_t>(strided.guards.size(), 0)} : terms[0];
  return true;
}

bool slice_axis(Strided& strided, size_t axis, int64_t start, int64_t step, int64_t extent) {
  std::vector<Term>& terms = strided.axes[axis];
  if (extent == 0) {
    terms = {{0, 0, std::vector<int64_t>(strided.guards.size(), 0)}};
    return true;
  }
  merge_terms(terms);
  int64_t inner = 1;  // product of the extents of all terms but the outermost one
  for (size_t i = 1; i < terms.size(); ++i) inner *= terms[i].extent;
  // A slice of one element is possible even if the axis has several terms: the element has one address.
  if (extent == 1) {
    int64_t rest = start;
    for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
      move(strided, *term, rest % term->extent);
      rest /= term->extent;
    }
    terms.clear();
    return true;
  }
  if (terms.size() == 1) {
    move(strided, terms[0], start);
    terms = single(stepped(terms[0], extent, step));
    return true;
  }
  // If the axis has several terms, a slice may cut only the outermost one, so it must contain every other term as a
  // whole.
  if (step != 1 || start % inner != 0 || extent % inner != 0) return false;
  move(strided, terms[0], start / inner);
  terms[0].extent = extent / inner;
  if (terms[0].extent == 1) terms.erase(terms.begin());
  return true;
}

bool reshape_axes(const Shape& shape, Strided& strided) {
  std::vector<std::vector<Term>> result(shape.size());
  if (elements(shape) == 0) {
    strided.axes = strided_splat(shape).axes;
    for (std::vector<Term>& terms : strided.axes)
      for (Term& term : terms) term.guards.assign(strided.guards.size(), 0);
    return true;
  }
  std::vector<Term> flat;
  for (const std::vector<Term>& terms : strided.axes) flat.insert(flat.end(), terms.begin(), terms.end());
  merge_terms(flat);
  for (size_t i = shape.size(); i-- > 0;) {
    int64_t rest = shape[i];
    while (rest > 1) {
      Term& last = flat.back();
      if (last.extent <= rest) {
        if (rest % last.extent != 0) return false;
        rest /= last.extent;
        result[i].insert(result[i].begin(), last);
        flat.pop_back();
      } else {
        if (last.extent % rest != 0) return false;
        result[i].insert(result[i].begin(), stepped(last, rest, 1));
        last = stepped(last, last.extent / rest, rest);
        rest = 1;
      }
    }
  }
  strided.axes = std::move(result);
  return true;
}

// Returns the least and the greatest value that a guard's coordinate has.
std::pair<int64_t, int64_t> range_of(const Strided& strided, size_t guard) {
  int64_t low = strided.guards[guard].offset, high = low;
  for (const std::vector<Term>& terms : strided.axes)
    for (const Term& term : terms) {
      const int64_t far = term.guards[guard] * (term.extent - 1);
      (far < 0 ? low : high) += far;
    }
  return {low, high};
}

// Whether guard a has the same strides as guard b and holds wherever guard b holds.
bool implied(const Strided& strided, size_t a, size_t b) {
  for (const std::vector<Term>& terms : strided.axes)
    for (const Term& term : terms)
      if (term.guards[a] != term.guards[b]) return false;
  const int64_t ahead = strided.guards[a].offset - strided.guards[b].offset;
  return ahead >= 0 && ahead + strided.guards[b].extent <= strided.guards[a].extent;
}

// Drops guards that always hold or follow from another guard. Returns false if there is a guard that never holds.
bool settle_guards(Strided& strided) {
  for (size_t i = 0; i < strided.guards.size();) {
    const auto [low, high] = range_of(strided, i);
    const int64_t extent = strided.guards[i].extent;
    if (high < 0 || low >= extent) return false;
    bool drop = low >= 0 && high < extent;
    for (size_t j = 0; j < strided.guards.size() && !drop; ++j) drop = j != i && implied(strided, i, j);
    if (!drop) {
      ++i;
      continue;
    }
    const auto at = static_cast<std::ptrdiff_t>(i);
    strided.guards.erase(strided.guards.begin() + at);
    for (std::vector<Term>& terms : strided.axes)
      for (Term& term : terms) term.guards.erase(term.guards.begin() + at);
  }
  return true;
}

StridedPiece constant_piece(double value, const Shape& shape) {
  return {-1, value, true, strided_splat(shape)};
}

// Returns the pieces from which some element is read; the last one has no guards.
std::vector<StridedPiece> settled(std::vector<StridedPiece> pieces, const Shape& shape) {
  if (elements(shape) == 0) return {constant_piece(0, shape)};
  std::vector<StridedPiece> kept;
  for (StridedPiece& piece : pieces) {
    if (!settle_guards(piece.at)) continue;
    for (std::vector<Term>& terms : piece.at.axes) merge_terms(terms);
    kept.push_back(std::move(piece));
    if (kept.back().at.guards.empty()) break;
  }
  WL_CHECK(!kept.empty() && kept.back().at.guards.empty(), "a view that reads nothing somewhere");
  const auto same = [](double a, double b) { return a == b ? std::signbit(a) == std::signbit(b) : a != a && b != b; };
  while (kept.size() > 1 && kept.back().constant && kept[kept.size() - 2].constant &&
         same(kept.back().value, kept[kept.size() - 2].value))
    kept.erase(kept.end() - 2);
  return kept;
}

absl::StatusOr<std::vector<StridedPiece>> concat_pieces(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  const auto axis = static_cast<size_t>(node.ints[0]);
  std::vector<StridedPiece> joined;
  int64_t start = 0;
  for (NodeId operand : node.operands) {
    const int64_t extent = graph.nodes[operand].shape[axis];
    WL_ASSIGN_OR_RETURN(std::vector<StridedPiece> pieces, pieces_of(graph, operand));
    for (StridedPiece& piece : pieces) {
      if (extent != node.shape[axis] && !place_within(piece.at, axis, extent, start, node.shape[axis]))
        return cut(
            graph, id,
            cat("joins ", node_text(graph, operand), " along axis ", axis, ", which is several pieces of memory"));
      joined.push_back(std::move(piece));
    }
    start += extent;
  }
  // The operands of the concat cover all its elements, so this piece is never read. It is added because the last piece
  // must have no guards.
  joined.push_back(constant_piece(0, node.shape));
  return settled(std::move(joined), node.shape);
}

// Does the work of apply_view() for views that map axes to axes. Padded axes are handled before all other changes,
// because each pad adds a guard to all terms of every axis.
absl::StatusOr<Strided> apply_axes(const Graph& graph, NodeId view, Strided x) {
  const ViewMap map = view_map(graph.nodes[view], graph.nodes[graph.nodes[view].operands[0]].shape);
  for (size_t i = 0; i < map.axes.size(); ++i) {
    const ViewMap::Axis& axis = map.axes[i];
    if (axis.padded && !place_within(x, i, map.from[i], -axis.base, map.to[axis.steps[0].axis]))
      return cut(graph, view, cat("pads axis ", i, ", which is several pieces of memory"));
  }
  const std::vector<int64_t> still(x.guards.size(), 0);
  std::vector<std::vector<Term>> result;
  for (int64_t extent : map.to) result.push_back(single({extent, 0, still}));
  for (size_t i = 0; i < map.axes.size(); ++i) {
    const ViewMap::Axis& axis = map.axes[i];
    if (axis.steps.size() == 1) {
      const auto [to, by] = axis.steps[0];
      if (!axis.padded && !map.unmoved(i) && !slice_axis(x, i, axis.base, by, map.to[to]))
        return cut(graph, view, cat("takes part of axis ", i, ", which is several pieces of memory"));
      result[to] = x.axes[i];
      continue;
    }
    Term term;
    if (!only_term(x, i, term)) return cut(graph, view, cat("axis ", i, " is several pieces of memory"));
    move(x, term, axis.base);
    for (const auto& [to, by] : axis.steps) result[to] = single(stepped(term, map.to[to], by));
  }
  x.axes = std::move(result);
  return x;
}

}  // namespace

void merge_terms(std::vector<Term>& terms) {
  for (size_t i = 1; i < terms.size();) {
    Term& outer = terms[i - 1];
    if (together(outer, terms[i])) {
      outer = stepped(terms[i], outer.extent * terms[i].extent, 1);
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

Strided strided_of(const Shape& shape) {
  Strided result;
  const std::vector<int64_t> strides = row_major_strides(shape);
  for (size_t i = 0; i < shape.size(); ++i) result.axes.push_back(single({shape[i], strides[i]}));
  return result;
}

Strided strided_iota(const Node& iota) {
  Strided result;
  for (size_t i = 0; i < iota.shape.size(); ++i)
    result.axes.push_back(single({iota.shape[i], static_cast<int64_t>(i) == iota.ints[0] ? 1 : 0}));
  return result;
}

Strided strided_splat(const Shape& shape) {
  Strided result;
  for (int64_t extent : shape) result.axes.push_back(single({extent, 0}));
  return result;
}

bool place_within(Strided& strided, size_t axis, int64_t extent, int64_t low, int64_t longer) {
  Term term;
  if (!only_term(strided, axis, term)) return false;
  for (std::vector<Term>& terms : strided.axes)
    for (Term& other : terms) other.guards.push_back(0);
  strided.guards.push_back({0, extent});
  term.guards.push_back(1);
  move(strided, term, -low);
  strided.axes[axis] = single(stepped(term, longer, 1));
  return true;
}

absl::StatusOr<Strided> apply_view(const Graph& graph, NodeId view, Strided x) {
  const Node& node = graph.nodes[view];
  const Shape& from = graph.nodes[node.operands[0]].shape;
  const ViewKind kind = info(node.op).view;
  if (kind == ViewKind::kJoined) return cut(graph, view, "joins several values, which no single address gives");
  if (kind == ViewKind::kAxes) return apply_axes(graph, view, std::move(x));
  if (!reshape_axes(node.shape, x))
    return cut(graph, view, cat("cuts axes that ", shape_text(from), " does not have: not one loop"));
  return x;
}

absl::StatusOr<std::vector<StridedPiece>> pieces_of(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  if (node.op == Op::concat && node.operands.size() > 1) return concat_pieces(graph, id);
  if (!is_view(node)) {
    if (!is_leaf(node))
      return invalid(node_text(graph, id),
                     ": is joined with other values or padded, and this kernel computes it; store it and read it back");
    StridedPiece leaf{id, node.value, node.op == Op::constant, {}};
    leaf.at = node.op == Op::input  ? strided_of(node.shape)
              : node.op == Op::iota ? strided_iota(node)
                                    : strided_splat(node.shape);
    return std::vector<StridedPiece>{std::move(leaf)};
  }
  WL_ASSIGN_OR_RETURN(std::vector<StridedPiece> pieces, pieces_of(graph, node.operands[0]));
  if (node.op == Op::concat) return pieces;
  for (StridedPiece& piece : pieces) {
    WL_ASSIGN_OR_RETURN(piece.at, apply_view(graph, id, std::move(piece.at)));
  }
  if (node.op == Op::pad) pieces.push_back(constant_piece(node.value, node.shape));
  return settled(std::move(pieces), node.shape);
}

}  // namespace wl
