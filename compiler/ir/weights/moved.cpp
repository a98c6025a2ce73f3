// Folded weights that have the elements of one weight in another order: no value is computed for them.
#include <cstring>

#include "compiler/ir/index_map.h"
#include "compiler/ir/weights/fold_weights.h"

namespace wl {
namespace {

// The transposes between the output and the input of a graph, from the output; reshapes move nothing. nullopt: there
// are other ops.
std::optional<std::vector<const Node*>> moves_of(const Graph& graph) {
  std::vector<const Node*> moves;
  const Node* node = &graph.nodes[graph.outputs[0].node];
  for (; node->op == Op::reshape || node->op == Op::transpose; node = &graph.nodes[node->operands[0]])
    if (node->op == Op::transpose) moves.push_back(node);
  return node->op == Op::input ? std::optional(std::move(moves)) : std::nullopt;
}

// Which element of its operand each element of a transpose is.
IndexMap map_of(const Graph& graph, const Node& transpose) {
  const std::vector<int64_t> strides = row_major_strides(graph.nodes[transpose.operands[0]].shape);
  std::vector<int64_t> moved;
  for (const int64_t axis : transpose.ints) moved.push_back(strides[static_cast<size_t>(axis)]);
  return IndexMap(transpose.shape, moved, 0);
}

// Moves elements of kSize bytes from where the map leads, or with `back` to there.
template <size_t kSize>
std::string moved(std::string_view bytes, const IndexMap& map, bool back) {
  std::string out(bytes.size(), '\0');
  IndexCursor cursor(map);
  for (size_t i = 0; i < bytes.size() / kSize; ++i) {
    const auto other = static_cast<size_t>(cursor(static_cast<int64_t>(i)));
    std::memcpy(&out[(back ? other : i) * kSize], &bytes[(back ? i : other) * kSize], kSize);
  }
  return out;
}

std::string moved(const Graph& graph, const Node& transpose, std::string_view bytes, bool back) {
  const IndexMap map = map_of(graph, transpose);
  switch (size_of(transpose.dtype)) {
    case 1:
      return moved<1>(bytes, map, back);
    case 2:
      return moved<2>(bytes, map, back);
    case 4:
      return moved<4>(bytes, map, back);
    default:
      return moved<8>(bytes, map, back);
  }
}

}  // namespace

std::optional<std::string> value_of_moved(const FoldedWeight& weight, std::string_view operand) {
  const std::optional<std::vector<const Node*>> moves = moves_of(weight.from);
  if (!moves) return std::nullopt;
  if (moves->empty()) return std::string(operand);
  std::string bytes = moved(weight.from, *moves->back(), operand, /*back=*/false);
  for (size_t i = moves->size() - 1; i-- > 0;) bytes = moved(weight.from, *(*moves)[i], bytes, /*back=*/false);
  return bytes;
}

std::optional<std::string> operand_of_moved(const FoldedWeight& weight, std::string_view value) {
  const std::optional<std::vector<const Node*>> moves = moves_of(weight.from);
  if (!moves) return std::nullopt;
  std::string bytes(value);
  for (const Node* move : *moves) bytes = moved(weight.from, *move, bytes, /*back=*/true);
  return bytes;
}

}  // namespace wl
