// Folded weights that consist of the elements of one weight in another order. Their bytes are moved, not computed.
#include <cstring>

#include "compiler/ir/index_map.h"
#include "compiler/ir/weights/fold_weights.h"

namespace wl {
namespace {

// Returns the transposes between a graph's input and its output, starting with the one nearest to the output. Reshapes
// are skipped, since they move nothing. Returns nullopt if there are other ops.
std::optional<std::vector<const Node*>> moves_of(const Graph& graph) {
  std::vector<const Node*> moves;
  const Node* node = &graph.nodes[graph.outputs[0].node];
  for (; node->op == Op::reshape || node->op == Op::transpose; node = &graph.nodes[node->operands[0]])
    if (node->op == Op::transpose) moves.push_back(node);
  return node->op == Op::input ? std::optional(std::move(moves)) : std::nullopt;
}

// Returns the map from the index of each element of a transpose to the index of the same element in its operand.
IndexMap map_of(const Graph& graph, const Node& transpose) {
  const std::vector<int64_t> strides = row_major_strides(graph.nodes[transpose.operands[0]].shape);
  std::vector<int64_t> moved;
  for (const int64_t axis : transpose.ints) moved.push_back(strides[static_cast<size_t>(axis)]);
  return IndexMap(transpose.shape, moved, 0);
}

// Copies elements of kSize bytes from `bytes` to `out`. The maps, applied one after another, turn an element's index in
// the output into its index in the operand. If `back` is set, the elements are copied in the opposite direction.
template <size_t kSize>
void move(std::string_view bytes, const std::vector<IndexMap>& maps, bool back, char* out) {
  std::vector<IndexCursor> cursors(maps.begin(), maps.end());
  for (size_t i = 0; i < bytes.size() / kSize; ++i) {
    auto index = static_cast<int64_t>(i);
    for (IndexCursor& cursor : cursors) index = cursor(index);
    const auto other = static_cast<size_t>(index);
    std::memcpy(&out[(back ? other : i) * kSize], &bytes[(back ? i : other) * kSize], kSize);
  }
}

// Calls move() with the size of the graph's elements. `moves` are the transposes that moves_of() returns.
void move(const Graph& graph, const std::vector<const Node*>& moves, std::string_view bytes, bool back, char* out) {
  std::vector<IndexMap> maps;
  maps.reserve(moves.size());
  for (const Node* transpose : moves) maps.push_back(map_of(graph, *transpose));
  switch (size_of(graph.nodes[graph.outputs[0].node].dtype)) {
    case 1:
      return move<1>(bytes, maps, back, out);
    case 2:
      return move<2>(bytes, maps, back, out);
    case 4:
      return move<4>(bytes, maps, back, out);
    default:
      return move<8>(bytes, maps, back, out);
  }
}

}  // namespace

bool write_moved(const FoldedWeight& weight, std::string_view operand, char* value) {
  const std::optional<std::vector<const Node*>> moves = moves_of(weight.from);
  if (!moves) return false;
  move(weight.from, *moves, operand, /*back=*/false, value);
  return true;
}

std::optional<std::string> operand_of_moved(const FoldedWeight& weight, std::string_view value) {
  const std::optional<std::vector<const Node*>> moves = moves_of(weight.from);
  if (!moves) return std::nullopt;
  std::string bytes(value.size(), '\0');
  move(weight.from, *moves, value, /*back=*/true, bytes.data());
  return bytes;
}

}  // namespace wl
