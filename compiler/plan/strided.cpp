#include "compiler/plan/strided.h"

#include <algorithm>

#include "compiler/ir/text.h"

namespace wl {
namespace {

absl::Status cut(const Graph& graph, NodeId view, std::string_view why) {
  return invalid("%", view, " ", name_of(graph.nodes[view].op), " ", shape_text(graph.nodes[view].shape), ": ", why);
}

std::vector<Term> single(int64_t extent, int64_t stride) {
  if (extent == 1) return {};
  return {{extent, stride}};
}

bool slice_axis(std::vector<Term>& terms, int64_t start, int64_t step, int64_t extent, int64_t& offset) {
  if (extent == 0) {
    terms = single(0, 0);
    return true;
  }
  merge_terms(terms);
  int64_t inner = 1;  // product of all terms but the outermost
  for (size_t i = 1; i < terms.size(); ++i) inner *= terms[i].extent;
  if (extent == 1) {  // any one element, whatever the pieces
    int64_t rest = start;
    for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
      offset += rest % term->extent * term->stride;
      rest /= term->extent;
    }
    terms.clear();
    return true;
  }
  if (terms.size() == 1) {
    offset += start * terms[0].stride;
    terms = single(extent, terms[0].stride * step);
    return true;
  }
  // Several pieces: whole ranges of the outermost one only.
  if (step != 1 || start % inner != 0 || extent % inner != 0) return false;
  offset += start / inner * terms[0].stride;
  terms[0].extent = extent / inner;
  if (terms[0].extent == 1) terms.erase(terms.begin());
  return true;
}

bool reshape_axes(const Shape& shape, std::vector<std::vector<Term>>& axes) {
  std::vector<std::vector<Term>> result(shape.size());
  if (elements(shape) == 0) {
    for (size_t i = 0; i < shape.size(); ++i) result[i] = single(shape[i], 0);
    axes = std::move(result);
    return true;
  }
  std::vector<Term> flat;
  for (const std::vector<Term>& terms : axes) flat.insert(flat.end(), terms.begin(), terms.end());
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
        result[i].insert(result[i].begin(), {rest, last.stride});
        last = {last.extent / rest, last.stride * rest};
        rest = 1;
      }
    }
  }
  axes = std::move(result);
  return true;
}

}  // namespace

void merge_terms(std::vector<Term>& terms) {
  for (size_t i = 1; i < terms.size();) {
    Term& outer = terms[i - 1];
    if (outer.stride == terms[i].stride * terms[i].extent && outer.extent > 0 && terms[i].extent > 0) {
      outer = {outer.extent * terms[i].extent, terms[i].stride};
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

Strided strided_of(const Shape& shape) {
  Strided result;
  const std::vector<int64_t> strides = row_major_strides(shape);
  for (size_t i = 0; i < shape.size(); ++i) result.axes.push_back(single(shape[i], strides[i]));
  return result;
}

Strided strided_iota(const Node& iota) {
  Strided result;
  for (size_t i = 0; i < iota.shape.size(); ++i)
    result.axes.push_back(single(iota.shape[i], static_cast<int64_t>(i) == iota.ints[0] ? 1 : 0));
  return result;
}

absl::StatusOr<Strided> apply_view(const Graph& graph, NodeId view, Strided x) {
  const Node& node = graph.nodes[view];
  const Shape& from = graph.nodes[node.operands[0]].shape;
  Strided result{x.offset, {}};
  switch (node.op) {
    case Op::reshape:
      if (!reshape_axes(node.shape, x.axes))
        return cut(graph, view, cat("cuts axes that ", shape_text(from), " does not have: not one loop"));
      return x;
    case Op::transpose:
      for (int64_t axis : node.ints) result.axes.push_back(x.axes[axis]);
      return result;
    case Op::broadcast:
      for (int64_t extent : node.shape) result.axes.push_back(single(extent, 0));
      for (size_t i = 0; i < node.ints.size(); ++i) result.axes[node.ints[i]] = x.axes[i];
      return result;
    case Op::slice:
      for (size_t i = 0; i < node.shape.size(); ++i) {
        if (node.shape[i] == from[i] && node.ints[i] == 0 && node.ints2[i] == 1) continue;
        if (!slice_axis(x.axes[i], node.ints[i], node.ints2[i], node.shape[i], x.offset))
          return cut(graph, view, cat("takes part of axis ", i, ", which is several pieces of memory"));
      }
      return x;
    case Op::window:
      for (size_t i = 0; i < node.ints.size(); ++i) {
        std::vector<Term>& terms = x.axes[node.ints[i]];
        merge_terms(terms);
        if (terms.size() > 1) return cut(graph, view, cat("axis ", node.ints[i], " is several pieces of memory"));
        const int64_t stride = terms.empty() ? 0 : terms[0].stride;
        terms = single(node.shape[node.ints[i]], stride * node.ints2[3 * i + 1]);
        x.axes.push_back(single(node.ints2[3 * i], stride * node.ints2[3 * i + 2]));
      }
      return x;
    default:
      return cut(graph, view, "is read by parts, which no single address gives");
  }
}

}  // namespace wl
