#include "compiler/ir/weights/narrow.h"

#include <algorithm>

namespace wl {
namespace {

class Widening {
 public:
  Widening(const Graph& graph, const std::vector<bool>& precomputable, const std::function<bool(NodeId)>& is_sole)
      : graph_(graph), precomputable_(precomputable), is_sole_(is_sole) {}

  std::optional<Widened> run(NodeId id) {
    if (!precomputable_[id] || !visit(id) || found_.narrow < 0 || work_ > kCheapWork) return std::nullopt;
    return graph_.bytes(found_.narrow) < graph_.bytes(id) ? std::optional(std::move(found_)) : std::nullopt;
  }

 private:
  bool visit(NodeId id) {
    const Node& node = graph_.nodes[id];
    if (node.op == Op::constant) return true;
    if (!precomputable_[id]) return false;
    if (node.op == Op::broadcast) {
      found_.beside.push_back(id);
      return true;
    }
    if (!is_sole_(id)) return false;
    if (node.op == Op::input) {
      if (found_.narrow >= 0) return false;
      found_.narrow = id;
      return true;
    }
    const bool works = class_of(node.op) == OpClass::kElementwise;
    if (!works && node.op != Op::reshape && node.op != Op::transpose) return false;
    if (works) work_ += info(node.op).cost;
    return std::ranges::all_of(node.operands, [&](NodeId operand) { return visit(operand); });
  }

  const Graph& graph_;
  const std::vector<bool>& precomputable_;
  const std::function<bool(NodeId)>& is_sole_;
  Widened found_{.narrow = -1, .beside = {}};
  int work_ = 0;
};

}  // namespace

std::optional<Widened> widened(const Graph& graph, const std::vector<bool>& precomputable, NodeId id,
                               const std::function<bool(NodeId)>& is_sole) {
  return Widening(graph, precomputable, is_sole).run(id);
}

}  // namespace wl
