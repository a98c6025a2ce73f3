#include "compiler/kernel/text/expr_text.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "absl/strings/str_join.h"

namespace wl {
namespace {

constexpr int kMaxNesting = 24;
constexpr size_t kMaxNodes = 100'000;
// The word that marks an exp in the text if it may be computed less exactly (compiler/ir/rounded_exps.h).
constexpr std::string_view kRounded = "rounded";

// The dtype that a node has unless its text states another one. `before`: an expression that contains all nodes before
// this one.
DType usual_type(const ExprNode& node, const Expr& before, const Kernel& kernel, const std::vector<TileId>& args) {
  if (node.kind == ExprNode::Kind::kArg) return kernel.tiles[args[node.arg]].dtype;
  if (node.kind == ExprNode::Kind::kConstant) return DType::f32;
  if (info(node.op).result == ResultType::kBool) return DType::b1;
  return before[node.operands[node.op == Op::select ? 1 : 0]].dtype;
}

// Whether the expression alone determines the map's argument list, so that the text need not state it: the list has
// the tile of every leaf once, in the order in which the expression first uses the tiles.
bool args_are_implied(const Instr& map) {
  std::vector<TileId> met;
  for (const ExprNode& node : map.expr) {
    if (node.kind != ExprNode::Kind::kArg) continue;
    const auto at = std::find(met.begin(), met.end(), map.args[node.arg]);
    if (at - met.begin() != node.arg) return false;
    if (at == met.end()) met.push_back(map.args[node.arg]);
  }
  return met == map.args;
}

// Whether the expression can be printed. The messages of verify() print kernels that are not yet verified, so what
// printing relies on is checked here.
bool well_formed(const Kernel& kernel, const Instr& map) {
  for (TileId arg : map.args)
    if (arg < 0 || arg >= static_cast<TileId>(kernel.tiles.size())) return false;
  for (size_t i = 0; i < map.expr.size(); ++i) {
    const ExprNode& node = map.expr[i];
    const bool is_arg = node.kind == ExprNode::Kind::kArg;
    if (is_arg && (node.arg < 0 || node.arg >= static_cast<int>(map.args.size()))) return false;
    const int arity = node.kind != ExprNode::Kind::kOp ? 0 : info(node.op).arity;
    for (int k = 0; k < 3; ++k)
      if ((k < arity) != (node.operands[k] >= 0) || node.operands[k] >= static_cast<int>(i)) return false;
  }
  return !map.expr.empty();
}

class ExprPrinter {
 public:
  ExprPrinter(const Kernel& kernel, const Instr& map)
      : kernel_(kernel), map_(map), implied_(args_are_implied(map)), named_(map.expr.size(), false) {
    std::vector<int> uses(map.expr.size(), 0);
    for (const ExprNode& node : map.expr)
      for (int operand : node.operands)
        if (operand >= 0) ++uses[operand];
    for (size_t i = 0; i + 1 < uses.size(); ++i) named_[i] = uses[i] != 1;
  }

  std::string print() {
    while (!try_print()) {
    }
    return implied_ ? out_ : cat("args [%", absl::StrJoin(map_.args, " %"), "] ", out_);
  }

 private:
  struct Part {
    int node;
    int depth;
    std::string text;
  };

  // Prints the expression; only nodes in `named_` get names. A node without a name waits on a stack for the node that
  // uses it, as in postfix notation. If that is impossible for some nodes, adds them to `named_` and returns false.
  bool try_print() {
    out_.clear();
    std::vector<Part> stack;
    bool good = true;
    const auto name = [&](int node) {
      named_[node] = true;
      good = false;
    };
    for (int i = 0; i < static_cast<int>(map_.expr.size()); ++i) {
      const ExprNode& node = map_.expr[i];
      std::vector<int> inside;
      for (int operand : node.operands)
        if (operand >= 0 && !named_[operand]) inside.push_back(operand);
      Part part{i, 0, ""};
      bool on_top = stack.size() >= inside.size();
      for (size_t k = 0; on_top && k < inside.size(); ++k)
        on_top = stack[stack.size() - inside.size() + k].node == inside[k];
      if (!on_top) {
        for (int operand : inside) name(operand);
        return false;
      }
      for (size_t k = stack.size() - inside.size(); k < stack.size(); ++k)
        part.depth = std::max(part.depth, stack[k].depth + 1);
      part.text = node_text(i, {stack.end() - static_cast<int64_t>(inside.size()), stack.end()});
      stack.resize(stack.size() - inside.size());
      if (part.depth > kMaxNesting && i + 1 < static_cast<int>(map_.expr.size())) name(i);
      if (named_[i]) {
        // Readers of the text number this named node before the nodes that wait on the stack, although those come
        // earlier in the expression. To keep the order of the numbers, the waiting nodes get names as well.
        for (const Part& waiting : stack) name(waiting.node);
        append(&out_, "$", i, " = ", part.text, "; ");
      } else {
        stack.push_back(std::move(part));
      }
      if (!good) return false;
    }
    for (size_t k = 0; k + 1 < stack.size(); ++k) name(stack[k].node);
    if (!stack.empty()) out_ += stack.back().text;
    return good;
  }

  std::string node_text(int i, const std::vector<Part>& inside) const {
    const ExprNode& node = map_.expr[i];
    const bool usual = node.dtype == usual_type(node, map_.expr, kernel_, map_.args);
    const std::string suffix = usual ? "" : cat("<", name_of(node.dtype), ">");
    if (node.kind == ExprNode::Kind::kArg)
      return cat(implied_ ? cat("%", map_.args[node.arg]) : cat("@", node.arg), suffix);
    if (node.kind == ExprNode::Kind::kConstant) return cat(real_text(node.value), suffix);
    std::vector<std::string> operands;
    size_t next = 0;
    for (int operand : node.operands) {
      if (operand < 0) continue;
      operands.push_back(named_[operand] ? cat("$", operand) : inside[next++].text);
    }
    return cat(node.rounded ? kRounded : "", node.rounded ? " " : "", name_of(node.op), suffix, "(",
               absl::StrJoin(operands, ", "), ")");
  }

  const Kernel& kernel_;
  const Instr& map_;
  const bool implied_;
  std::vector<bool> named_;
  std::string out_;
};

class ExprReader {
 public:
  ExprReader(TextCursor& in, const Kernel& kernel, const TileReader& tile, Instr& map)
      : in_(in), kernel_(kernel), tile_(tile), map_(map) {}

  absl::Status read() {
    if (in_.take("args")) {
      WL_RETURN_IF_ERROR(in_.expect("["));
      while (!in_.take("]")) WL_RETURN_IF_ERROR(tile_(in_, map_.args.emplace_back()));
      implied_ = false;
    }
    while (in_.peek() == '$') {
      const TextCursor before = in_;
      int number = 0, node = 0;
      in_.skip(1);
      WL_RETURN_IF_ERROR(in_.number(number, 0, kMaxNodes));
      if (!in_.take("=")) {
        in_ = before;
        break;
      }
      WL_RETURN_IF_ERROR(value(node, 0));
      if (node != number) return invalid("$", number, " must be $", node, ", its number in order of evaluation");
      WL_RETURN_IF_ERROR(in_.expect(";"));
    }
    const size_t complete = map_.expr.size();
    int last = 0;
    WL_RETURN_IF_ERROR(value(last, 0));
    if (map_.expr.size() == complete) return invalid("the last part of an expression must be new");
    return absl::OkStatus();
  }

 private:
  absl::Status leaf(ExprNode& node) {
    node.kind = ExprNode::Kind::kArg;
    if (implied_) {
      TileId id = 0;
      WL_RETURN_IF_ERROR(tile_(in_, id));
      const auto [at, fresh] = positions_.try_emplace(id, static_cast<int>(map_.args.size()));
      if (fresh) map_.args.push_back(id);
      node.arg = at->second;
      return absl::OkStatus();
    }
    WL_RETURN_IF_ERROR(in_.expect("@"));
    return in_.number(node.arg, 0, static_cast<int>(map_.args.size()) - 1);
  }

  absl::Status type(ExprNode& node) {
    node.dtype = usual_type(node, map_.expr, kernel_, map_.args);
    return in_.take("<") ? named_type(node) : absl::OkStatus();
  }
  absl::Status named_type(ExprNode& node) {
    const auto dtype = dtype_named(in_.word());
    if (!dtype) return in_.expected("a dtype");
    node.dtype = *dtype;
    return in_.expect(">");
  }

  // Reads one value of an expression, and sets `number` to the number of the node that computes it.
  absl::Status value(int& number, int depth) {
    if (depth > 2 * kMaxNesting)
      return invalid("an expression nested deeper than ", 2 * kMaxNesting, "; name its parts");
    if (map_.expr.size() == kMaxNodes) return invalid("an expression of more than ", kMaxNodes, " nodes");
    const char next = in_.peek();
    if (next == '$') {
      in_.skip(1);
      return in_.number(number, 0, static_cast<int>(map_.expr.size()) - 1);
    }
    ExprNode node;
    node.rounded = in_.take(kRounded);
    if (next == '%' || next == '@') {
      WL_RETURN_IF_ERROR(leaf(node));
      WL_RETURN_IF_ERROR(type(node));
    } else if (const OpInfo* row = take_op()) {
      node.op = row->op;
      std::optional<DType> explicit_type;
      if (in_.take("<")) {
        WL_RETURN_IF_ERROR(named_type(node));
        explicit_type = node.dtype;
      }
      WL_RETURN_IF_ERROR(in_.expect("("));
      for (int k = 0; k < row->arity; ++k) {
        if (k > 0) WL_RETURN_IF_ERROR(in_.expect(","));
        WL_RETURN_IF_ERROR(value(node.operands[k], depth + 1));
      }
      WL_RETURN_IF_ERROR(in_.expect(")"));
      node.dtype = explicit_type ? *explicit_type : usual_type(node, map_.expr, kernel_, map_.args);
    } else {
      node.kind = ExprNode::Kind::kConstant;
      WL_RETURN_IF_ERROR(in_.real(node.value));
      WL_RETURN_IF_ERROR(type(node));
    }
    number = static_cast<int>(map_.expr.size());
    map_.expr.push_back(node);
    return absl::OkStatus();
  }

  // Reads the name of an elementwise op. Returns null if the text goes on with something else, such as the number
  // `inf`.
  const OpInfo* take_op() {
    TextCursor ahead = in_;
    const std::string_view name = ahead.word();
    if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return nullptr;
    for (const OpInfo& row : ops()) {
      if (row.cls != OpClass::kElementwise || row.name != name) continue;
      in_ = ahead;
      return &row;
    }
    return nullptr;
  }

  TextCursor& in_;
  const Kernel& kernel_;
  const TileReader& tile_;
  Instr& map_;
  bool implied_ = true;
  std::unordered_map<TileId, int> positions_;
};

}  // namespace

std::string expr_text(const Kernel& kernel, const Instr& map) {
  return well_formed(kernel, map) ? ExprPrinter(kernel, map).print() : "?";
}

absl::Status read_expr(TextCursor& in, const Kernel& kernel, const TileReader& tile, Instr& map) {
  return ExprReader(in, kernel, tile, map).read();
}

}  // namespace wl
