#include "compiler/ir/weights/panels.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace wl {
namespace {

// Columns of a panel: those of the widest micro-kernels, or half of them where a weight has no multiple of that.
constexpr int64_t kPanelColumns[] = {64, 32};

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

int64_t panel_columns(int64_t columns) {
  for (const int64_t width : kPanelColumns)
    if (columns % width == 0) return width;
  return 0;
}

char unused_letter(const Einsum& einsum) {
  for (char letter = 'a'; letter <= 'z'; ++letter)
    if (!has(einsum.a, letter) && !has(einsum.b, letter)) return letter;
  return 0;
}

// The letters of the weight that are neither columns nor summed, then those that are summed, in the order in which the
// other operand has them; nullopt if the product reads the weight in another way.
std::optional<std::string> rows_of(const Einsum& einsum, const std::string& weight, const std::string& other) {
  const char column = einsum.out.back();
  std::string outer, summed;
  for (const char letter : weight) {
    if (std::count(weight.begin(), weight.end(), letter) > 1) return std::nullopt;
    if (letter == column || !has(einsum.out, letter)) continue;
    if (has(other, letter)) return std::nullopt;  // a batch of products
    outer += letter;
  }
  for (const char letter : other)
    if (!has(einsum.out, letter) && has(weight, letter)) summed += letter;
  if (summed.empty() || outer.size() + summed.size() + 1 != weight.size()) return std::nullopt;
  return outer + "." + summed;
}

// Copies elements of `size` bytes in the order of a transposition.
template <size_t kSize>
void transpose(const char* from, char* to, const Shape& shape, const std::vector<int64_t>& order) {
  std::vector<int64_t> strides(shape.size(), 1), extents, steps;
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  for (const int64_t axis : order) {
    extents.push_back(shape[static_cast<size_t>(axis)]);
    steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  const size_t last = order.size() - 1;
  std::vector<int64_t> at(order.size(), 0);
  const char* row = from;
  for (int64_t left = elements(shape) / extents[last]; left > 0; --left) {
    for (int64_t i = 0; i < extents[last]; ++i, to += kSize)
      std::memcpy(to, row + i * steps[last] * static_cast<int64_t>(kSize), kSize);
    for (size_t axis = last; axis-- > 0;) {
      row += steps[axis] * static_cast<int64_t>(kSize);
      if (++at[axis] < extents[axis]) break;
      row -= extents[axis] * steps[axis] * static_cast<int64_t>(kSize);
      at[axis] = 0;
    }
  }
}

std::string transposed(std::string_view bytes, int size, const Shape& shape, const std::vector<int64_t>& order) {
  std::string out(bytes.size(), '\0');
  if (bytes.empty() || order.empty()) return std::string(bytes);
  switch (size) {
    case 1:
      transpose<1>(bytes.data(), out.data(), shape, order);
      break;
    case 2:
      transpose<2>(bytes.data(), out.data(), shape, order);
      break;
    case 4:
      transpose<4>(bytes.data(), out.data(), shape, order);
      break;
    default:
      transpose<8>(bytes.data(), out.data(), shape, order);
      break;
  }
  return out;
}

// The reshapes and transposes between the output and the input, from the output; nullopt: there are other ops.
std::optional<std::vector<const Node*>> moves_of(const Graph& graph) {
  std::vector<const Node*> moves;
  const Node* node = &graph.nodes[graph.outputs[0].node];
  for (; node->op == Op::reshape || node->op == Op::transpose; node = &graph.nodes[node->operands[0]])
    moves.push_back(node);
  return node->op == Op::input ? std::optional(std::move(moves)) : std::nullopt;
}

}  // namespace

std::optional<WeightPanels> panels_of(const Graph& graph, const Node& product, int side) {
  const absl::StatusOr<Einsum> einsum = parse_einsum(product.text);
  if (product.op != Op::contract || !einsum.ok() || einsum->out.empty()) return std::nullopt;
  const std::string &weight = side == 0 ? einsum->a : einsum->b, &other = side == 0 ? einsum->b : einsum->a;
  const char column = einsum->out.back(), panel = unused_letter(*einsum);
  const Shape& shape = graph.nodes[product.operands[side]].shape;
  if (panel == 0 || !has(weight, column) || has(other, column)) return std::nullopt;
  const std::optional<std::string> rows = rows_of(*einsum, weight, other);
  const size_t axis = weight.find(column);
  const int64_t width = panel_columns(shape[axis]);
  if (!rows || width == 0) return std::nullopt;

  std::string split = weight, reads = *rows + column, out = einsum->out;
  WeightPanels result{.split = shape, .order = {}, .einsum = {}};
  if (width == shape[axis]) {
    reads.erase(reads.find('.'), 1);
  } else {
    split.insert(axis, 1, panel);
    out.insert(out.size() - 1, 1, panel);
    reads[reads.find('.')] = panel;
    result.split[axis] = width;
    result.split.insert(result.split.begin() + static_cast<std::ptrdiff_t>(axis), shape[axis] / width);
  }
  for (const char letter : reads) result.order.push_back(static_cast<int64_t>(split.find(letter)));
  if (std::is_sorted(result.order.begin(), result.order.end())) return std::nullopt;
  result.einsum = side == 0 ? cat(reads, ",", other, "->", out) : cat(other, ",", reads, "->", out);
  return result;
}

std::optional<std::string> moved_bytes(const Graph& graph, std::string_view input) {
  const std::optional<std::vector<const Node*>> moves = moves_of(graph);
  if (!moves) return std::nullopt;
  std::string bytes(input);
  for (size_t i = moves->size(); i-- > 0;) {
    const Node& move = *(*moves)[i];
    if (move.op == Op::transpose)
      bytes = transposed(bytes, size_of(move.dtype), graph.nodes[move.operands[0]].shape, move.ints);
  }
  return bytes;
}

std::optional<std::string> moved_back(const Graph& graph, std::string_view output) {
  const std::optional<std::vector<const Node*>> moves = moves_of(graph);
  if (!moves) return std::nullopt;
  std::string bytes(output);
  for (const Node* move : *moves) {
    if (move->op != Op::transpose) continue;
    std::vector<int64_t> back(move->ints.size());
    for (size_t axis = 0; axis < back.size(); ++axis)
      back[static_cast<size_t>(move->ints[axis])] = static_cast<int64_t>(axis);
    bytes = transposed(bytes, size_of(move->dtype), move->shape, back);
  }
  return bytes;
}

}  // namespace wl
