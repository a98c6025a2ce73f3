#include "compiler/ir/graph.h"

#include <bit>
#include <cctype>
#include <limits>
#include <unordered_map>

#include "absl/strings/str_join.h"

namespace wl {

int64_t elements(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}

std::string shape_text(const Shape& shape) {
  return cat("[", absl::StrJoin(shape, ","), "]");
}

std::string node_text(const Graph& graph, NodeId id) {
  return cat("%", id, " ", name_of(graph.nodes[id].op), " ", shape_text(graph.nodes[id].shape));
}

std::string type_text(DType dtype, const Shape& shape) {
  return cat(name_of(dtype), shape_text(shape));
}

std::vector<NodeId> Graph::inputs() const {
  std::vector<NodeId> result;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op == Op::input) result.push_back(static_cast<NodeId>(i));
  }
  return result;
}

absl::StatusOr<Einsum> parse_einsum(std::string_view text) {
  Einsum e;
  std::string* part = &e.a;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      if (part->find(text[i]) != std::string::npos) {
        return invalid("einsum \"", text, "\": letter ", text.substr(i, 1),
                       " occurs twice in one list; diagonals are not a contraction");
      }
      part->push_back(text[i]);
    } else if (text[i] == ',' && part == &e.a) {
      part = &e.b;
    } else if (text[i] == '-' && i + 1 < text.size() && text[i + 1] == '>' && part == &e.b) {
      part = &e.out;
      ++i;
    } else {
      return invalid("einsum \"", text, "\": expected \"LETTERS,LETTERS->LETTERS\", found '", text.substr(i, 1),
                     "' at position ", i);
    }
  }
  if (part != &e.out) return invalid("einsum \"", text, "\": expected \"LETTERS,LETTERS->LETTERS\", found its end");
  for (char c : e.out) {
    if (e.a.find(c) == std::string::npos && e.b.find(c) == std::string::npos) {
      return invalid("einsum \"", text, "\": output letter ", std::string(1, c), " is in no operand");
    }
  }
  return e;
}

namespace {

std::string node_name(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  std::string name = cat("%", id);
  if (static_cast<size_t>(node.op) < ops().size()) append(&name, " = ", name_of(node.op));
  if (node.op == Op::input) append(&name, " \"", node.text, "\"");
  return name;
}

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

bool same_fill(const Fill& a, const Fill& b) {
  return same_bits(a.mean, b.mean) && same_bits(a.stddev, b.stddev) && a.low == b.low && a.high == b.high &&
         a.literal.size() == b.literal.size();
}

absl::Status verify_node(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  if (static_cast<size_t>(node.op) >= ops().size())
    return invalid("op number ", static_cast<int>(node.op), " is not in kOps");
  if (static_cast<int>(node.dtype) >= kDTypeCount)
    return invalid("dtype number ", static_cast<int>(node.dtype), " does not exist");
  Node inferred = node;
  WL_RETURN_IF_ERROR(infer(std::span(graph.nodes).first(id), inferred));
  if (inferred.shape != node.shape || inferred.dtype != node.dtype) {
    return invalid("expected type ", type_text(inferred.dtype, inferred.shape), ", found ",
                   type_text(node.dtype, node.shape));
  }
  if (!same_bits(inferred.value, node.value)) {
    return invalid("value ", node.value, " is not canonical; expected ", inferred.value);
  }
  if (!same_fill(inferred.fill, node.fill))
    return invalid("the fill has fields that do not apply to ", name_of(node.dtype));
  if (node.tf32 && node.op != Op::contract) return invalid("tf32 is of products");
  if (!node.text.empty() && node.op != Op::input && node.op != Op::contract)
    return invalid("has text \"", node.text, "\" but the op takes none");
  return absl::OkStatus();
}

}  // namespace

void allow_tf32(Graph& graph) {
  for (Node& node : graph.nodes)
    if (node.op == Op::contract && graph.nodes[node.operands[0]].dtype == DType::f32) node.tf32 = true;
}

absl::Status verify(const Graph& graph) {
  std::unordered_map<std::string_view, NodeId> names;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    if (absl::Status status = verify_node(graph, id); !status.ok()) {
      return invalid(node_name(graph, id), ": ", status.message());
    }
    if (graph.nodes[id].op != Op::input) continue;
    auto [it, fresh] = names.emplace(graph.nodes[id].text, id);
    if (!fresh)
      return invalid(node_name(graph, id), ": the name is already taken by input %", it->second,
                     "; input names must be unique");
  }
  if (graph.outputs.empty()) return invalid("the graph has no output; expected at least one");
  names.clear();
  for (const Output& output : graph.outputs) {
    if (output.node < 0 || output.node >= static_cast<NodeId>(graph.nodes.size())) {
      return invalid("output \"", output.name, "\": %", output.node, " does not exist");
    }
    if (output.name.empty()) return invalid("output %", output.node, ": the name is empty");
    auto [it, fresh] = names.emplace(output.name, output.node);
    if (!fresh) {
      return invalid("output \"", output.name, "\": both %", it->second, " and %", output.node,
                     " have this name; output names must be unique");
    }
  }
  return absl::OkStatus();
}

Graph prune(Graph graph, bool drop_inputs) {
  std::vector<char> live(graph.nodes.size(), 0);
  for (const Output& output : graph.outputs) live[output.node] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (graph.nodes[i].op == Op::input && !drop_inputs) live[i] = 1;
    if (!live[i]) continue;
    for (NodeId operand : graph.nodes[i].operands) live[operand] = 1;
  }
  std::vector<NodeId> renamed(graph.nodes.size(), -1);
  NodeId kept = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!live[i]) continue;
    renamed[i] = kept++;
    for (NodeId& operand : graph.nodes[i].operands) operand = renamed[operand];
    if (renamed[i] != static_cast<NodeId>(i)) graph.nodes[renamed[i]] = std::move(graph.nodes[i]);
  }
  graph.nodes.resize(kept);
  for (Output& output : graph.outputs) output.node = renamed[output.node];
  return graph;
}

Shape without_units(const Shape& shape) {
  Shape result;
  result.reserve(shape.size());
  for (int64_t extent : shape) {
    if (extent != 1) result.push_back(extent);
  }
  return result;
}

}  // namespace wl
