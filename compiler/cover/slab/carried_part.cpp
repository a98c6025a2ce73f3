#include "compiler/cover/slab/carried_part.h"

#include "compiler/domain/axes.h"

namespace wl {

NodeId PartBuilder::read(const CarriedEnd& end, const Node& like) {
  const std::string name = end.value >= 0 ? cat("v", end.value) : cat("i", end.input);
  part_.ends[name] = end;
  const auto [known, is_new] = read_.try_emplace(name, -1);
  if (is_new) known->second = input(name, like.dtype, like.shape, like.fill);
  return known->second;
}

void PartBuilder::write(int value, NodeId node) {
  const std::string name = cat("w", value);
  part_.ends[name] = {.value = value};
  output(name, node);
}

NodeId PartBuilder::copy(NodeId id) {
  if (const auto known = copies_.find(id); known != copies_.end()) return known->second;
  Node node = slab_.graph.nodes[id];
  if (node.op == Op::input) return copies_[id] = read({.input = slab_.origin[id]}, node);
  for (NodeId& operand : node.operands) operand = copy(operand);
  return copies_[id] = add_node(std::move(node));
}

NodeId PartBuilder::copy(NodeId id, double scale, const std::vector<int64_t>& perm) {
  NodeId value = copy(id);
  if (scale != 1) value = mul(value, constant_like(scale, value));
  return perm.empty() ? value : transpose(value, perm);
}

NodeId PartBuilder::spread(NodeId value, const Node& like, std::vector<int64_t> dims) {
  value = in_order(value, dims);
  return dims.size() == like.shape.size() ? value : broadcast(value, like.shape, dims);
}

absl::Status PartBuilder::finish_part() {
  if (size() == 0) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(part_.graph, finish());
  part_.graph = prune(std::move(part_.graph), /*drop_inputs=*/true);
  return absl::OkStatus();
}

bool in_sum(const Node& sum, size_t operand, std::vector<int64_t>& dims) {
  for (int64_t& to : dims) {
    if (sum.op != Op::contract) {
      to -= to > sum.ints[0] ? 1 : 0;
      continue;
    }
    const Einsum einsum = parse_einsum(sum.text).value();
    const size_t at = einsum.out.find((operand == 0 ? einsum.a : einsum.b)[static_cast<size_t>(to)]);
    if (at == std::string::npos) return false;
    to = static_cast<int64_t>(at);
  }
  return true;
}

std::pair<NodeId, double> scaled_product(const Graph& graph, const std::vector<int>& readers, NodeId id) {
  const Node& node = graph.nodes[id];
  if (node.op != Op::mul || node.dtype != DType::f32) return {-1, 1};
  for (size_t k = 0; k < 2; ++k) {
    const NodeId product = node.operands[k], factor = node.operands[1 - k];
    if (graph.nodes[product].op != Op::contract || readers[product] != 1) continue;
    if (graph.nodes[factor].op == Op::constant) return {product, graph.nodes[factor].value};
  }
  return {-1, 1};
}

std::string moved_first(std::string letters, int along) {
  if (along <= 0) return letters;
  const char letter = letters[static_cast<size_t>(along)];
  letters.erase(static_cast<size_t>(along), 1);
  return letter + letters;
}

}  // namespace wl
