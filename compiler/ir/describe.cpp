#include <algorithm>
#include <vector>

#include "compiler/ir/text.h"

namespace wl {

std::string describe_group(const Graph& group) {
  // The names of the ops that characterise a group, in the order of its nodes and without repetition.
  std::vector<std::string_view> structural, elementwise;
  for (const Node& node : group.nodes) {
    const OpClass cls = class_of(node.op);
    if (cls == OpClass::kLeaf || cls == OpClass::kView || node.op == Op::cast) continue;
    auto& list = cls == OpClass::kElementwise ? elementwise : structural;
    if (std::find(list.begin(), list.end(), name_of(node.op)) == list.end()) list.push_back(name_of(node.op));
  }
  constexpr size_t kMostOps = 4;
  std::vector<std::string_view> ops = std::move(structural);
  ops.insert(ops.end(), elementwise.begin(), elementwise.end());
  const size_t left_out = ops.size() - std::min(ops.size(), kMostOps);
  ops.resize(ops.size() - left_out);
  std::string text;
  for (const std::string_view op : ops) append(&text, text.empty() ? "" : "+", op);
  if (text.empty()) text = "copy";
  if (left_out > 0) append(&text, "+", left_out);
  if (group.outputs.empty()) return text;
  const Node& made = group.nodes[group.outputs[0].node];
  append(&text, " ", name_of(made.dtype), shape_text(made.shape));
  return text;
}

std::string describe_group(const std::string& text) {
  const absl::StatusOr<Graph> group = parse(text);
  return group.ok() ? describe_group(*group) : "?";
}

}  // namespace wl
