#include <cmath>

#include "absl/strings/str_join.h"
#include "compiler/lower/verify.h"

namespace wl {
namespace {

std::string var_text(const Kernel& kernel, VarId var) {
  return var == 0 ? "block" : cat(kernel.vars[var].name, "#", var);
}

std::string text(const Kernel& kernel, const Affine& affine) {
  std::string out;
  for (const auto& [var, coefficient] : affine.terms) {
    if (!out.empty()) out += " + ";
    out += var_text(kernel, var);
    if (coefficient != 1) append(&out, "*", coefficient);
  }
  if (affine.base != 0 || out.empty()) append(&out, out.empty() ? "" : " + ", affine.base);
  return out;
}

std::string minimum(const Kernel& kernel, const std::vector<Affine>& of) {
  const std::string list =
      absl::StrJoin(of, ", ", [&](std::string* out, const Affine& a) { out->append(text(kernel, a)); });
  return of.size() == 1 ? list : cat("min(", list, ")");
}

std::string tile_text(const Kernel& kernel, TileId id) {
  const Tile& tile = kernel.tiles[id];
  std::string out = cat(name_of(tile.dtype), " ", tile.layout.text());
  for (size_t axis = 0; axis < tile.bound.size(); ++axis)
    if (!tile.bound[axis].empty()) append(&out, " bound", axis, "=", minimum(kernel, tile.bound[axis]));
  return out;
}

std::string slice_text(const Kernel& kernel, const Slice& slice) {
  return cat(kernel.buffers[slice.buffer].name, "[", text(kernel, slice.offset), "] strides [",
             absl::StrJoin(slice.strides, ","), "]");
}

std::string expr_text(const Kernel& kernel, const Instr& instr, int node) {
  const ExprNode& n = instr.expr[node];
  if (n.kind == ExprNode::Kind::kArg) return cat("%", instr.args[n.arg]);
  if (n.kind == ExprNode::Kind::kConstant) return absl::StrFormat("%.9g", n.value);
  std::string out = cat(name_of(n.op), n.op == Op::cast ? cat(".", name_of(n.dtype)) : "", "(");
  for (int i = 0; i < 3 && n.operands[i] >= 0; ++i)
    append(&out, i == 0 ? "" : ", ", expr_text(kernel, instr, n.operands[i]));
  return out + ")";
}

void print_body(const Kernel& kernel, const std::vector<Instr>& body, int depth, std::string& out) {
  for (const Instr& instr : body) {
    append(&out, std::string(2 * static_cast<size_t>(depth), ' '), print(kernel, instr));
    if (instr.op != InstrOp::kLoop) {
      out += "\n";
      continue;
    }
    out += " {\n";
    print_body(kernel, instr.body, depth + 1, out);
    append(&out, std::string(2 * static_cast<size_t>(depth), ' '), "}\n");
  }
}

}  // namespace

std::string print(const Kernel& kernel, const Instr& instr) {
  std::string out;
  if (instr.result >= 0) append(&out, "%", instr.result, " = ");
  out += name_of(instr.op);
  if (instr.op == InstrOp::kFold || instr.op == InstrOp::kCross) append(&out, ".", name_of(instr.combine));
  if (instr.op == InstrOp::kLoop)
    return cat(out, " ", var_text(kernel, instr.var), " in ", minimum(kernel, instr.trips));
  if (instr.op == InstrOp::kMap) {
    append(&out, " ", instr.expr.empty() ? "?" : expr_text(kernel, instr, static_cast<int>(instr.expr.size()) - 1));
  } else {
    for (TileId arg : instr.args) append(&out, " %", arg);
  }
  if (instr.slice.buffer >= 0) append(&out, " ", slice_text(kernel, instr.slice));
  if (instr.op == InstrOp::kGather) append(&out, " index*", instr.gather_stride, " of ", instr.gather_extent);
  if (instr.op == InstrOp::kFill) append(&out, " ", absl::StrFormat("%.9g", instr.value));
  if (instr.op == InstrOp::kIota) append(&out, " axis ", instr.axis, " from ", text(kernel, instr.slice.offset));
  if (instr.op == InstrOp::kPrefetch) append(&out, " level ", instr.level);
  if (!instr.axes.empty()) append(&out, " axes [", absl::StrJoin(instr.axes, ","), "]");
  if (instr.streaming) out += " streaming";
  if (instr.result >= 0) append(&out, " : ", tile_text(kernel, instr.result));
  return out;
}

std::string print(const Kernel& kernel) {
  std::string out =
      cat("kernel ", kernel.name, " target=", kernel.target, " grid=", kernel.grid, " threads=", kernel.threads,
          " unroll=", kernel.unroll, " accumulators=", kernel.accumulators, " compiler=", kernel.compiler, " {\n");
  for (const KernelBuffer& b : kernel.buffers)
    append(&out, "  ",
           b.level == Level::kShared ? cat("scratch@", b.byte_offset)
           : b.output                ? "out"
                                     : "in",
           " ", b.name, " : ", name_of(b.dtype), "[", absl::StrJoin(b.shape, ","), "]\n");
  for (VarId v = 0; v < static_cast<VarId>(kernel.vars.size()); ++v) {
    const Var& var = kernel.vars[v];
    if (var.kind != Var::Kind::kDerived) continue;
    append(&out, "  let ", var_text(kernel, v), " = ", minimum(kernel, var.of), var.div == 1 ? "" : cat(" / ", var.div),
           var.mod == 0 ? "" : cat(" % ", var.mod), "\n");
  }
  print_body(kernel, kernel.body, 1, out);
  return out + "}\n";
}

}  // namespace wl
