// Kernels as text; parse.cpp reads it back. A tile's type stands where the tile is first defined; tiles that nothing
// defines are listed first.
#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "compiler/kernel/expr_text.h"
#include "compiler/kernel/text_cursor.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

std::string var_text(const Kernel& kernel, VarId var) {
  if (var == 0) return "block";
  if (var == 1 && kernel.wave > 0) return "team";
  const bool known = var > 0 && var < static_cast<VarId>(kernel.vars.size());  // verify() prints what is not
  return cat(known ? kernel.vars[var].name : "?", "#", var);
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
  if (id >= static_cast<TileId>(kernel.tiles.size())) return "?";
  const Tile& tile = kernel.tiles[id];
  std::string out = cat(name_of(tile.dtype), " ", tile.layout.text());
  if (!tile.bound.empty()) out += " bounds";
  for (size_t axis = 0; axis < tile.bound.size(); ++axis)
    if (!tile.bound[axis].empty()) append(&out, " ", axis, ":", minimum(kernel, tile.bound[axis]));
  return out;
}

std::string slice_text(const Kernel& kernel, const Slice& slice) {
  return cat(" p", slice.buffer, "[", text(kernel, slice.offset), "] strides [", absl::StrJoin(slice.strides, ","),
             "]");
}

std::string guards_text(const Kernel& kernel, const Instr& instr) {
  std::string out;
  for (size_t i = 0; i < instr.guards.size(); ++i)
    append(&out, i == 0 ? " where " : " and ", text(kernel, instr.guards[i].at), " strides [",
           absl::StrJoin(instr.guards[i].strides, ","), "] of ", instr.guards[i].extent);
  return out;
}

std::string axes_text(const Instr& instr) {
  return cat(" axes [", absl::StrJoin(instr.axes, ","), "]");
}

std::string instr_text(const Kernel& kernel, const Instr& instr) {
  std::string out = instr.result >= 0 ? cat("%", instr.result, " = ") : "";
  out += name_of(instr.op);
  const auto args = [&] {
    for (TileId arg : instr.args) append(&out, " %", arg);
  };
  switch (instr.op) {
    case InstrOp::kLoad:
      append(&out, slice_text(kernel, instr.slice), instr.streaming ? " streaming" : "", guards_text(kernel, instr));
      if (!instr.guards.empty())
        append(&out, " else ", instr.args.empty() ? real_text(instr.value) : cat("%", instr.args[0]));
      break;
    case InstrOp::kStore:
      args();
      append(&out, slice_text(kernel, instr.slice), instr.streaming ? " streaming" : "", guards_text(kernel, instr));
      break;
    case InstrOp::kGather:
      args();
      append(&out, slice_text(kernel, instr.slice), " index*", instr.gather_stride, " of ", instr.gather_extent);
      break;
    case InstrOp::kPrefetch:
      args();
      append(&out, slice_text(kernel, instr.slice), " level ", instr.level);
      break;
    case InstrOp::kMap:
      append(&out, " ", expr_text(kernel, instr));
      break;
    case InstrOp::kFold:
    case InstrOp::kCross:
      append(&out, ".", name_of(instr.combine));
      args();
      out += axes_text(instr);
      break;
    case InstrOp::kFill:
      append(&out, " ", real_text(instr.value));
      break;
    case InstrOp::kIota:
      append(&out, " axis ", instr.axis, " from ", text(kernel, instr.slice.offset));
      break;
    case InstrOp::kConvert:
      args();
      break;
    case InstrOp::kLoop:
      append(&out, " ", var_text(kernel, instr.var), " in ", minimum(kernel, instr.trips));
      break;
    case InstrOp::kAsyncLoad:
      args();
      append(&out, slice_text(kernel, instr.slice), " to", slice_text(kernel, instr.into), guards_text(kernel, instr));
      break;
    case InstrOp::kWait:
      append(&out, " ", instr.pending);
      break;
    case InstrOp::kPass:
      if (instr.pending > 0) append(&out, " last ", instr.pending);
      if (instr.slice.buffer >= 0) out += slice_text(kernel, instr.slice);
      break;
    case InstrOp::kFence:
    case InstrOp::kBarrier:
    case InstrOp::kCommit:
    case InstrOp::kMeet:
      break;
  }
  return out;
}

void defined_tiles(const std::vector<Instr>& body, std::vector<bool>& defined) {
  for (const Instr& instr : body) {
    if (instr.result >= 0) defined[instr.result] = true;
    defined_tiles(instr.body, defined);
  }
}

void print_body(const Kernel& kernel, const std::vector<Instr>& body, int depth, std::vector<bool>& typed,
                std::string& out) {
  const std::string indent(2 * static_cast<size_t>(depth), ' ');
  for (const Instr& instr : body) {
    append(&out, indent, instr_text(kernel, instr));
    if (instr.result >= 0 && !typed[instr.result]) {
      typed[instr.result] = true;
      append(&out, " : ", tile_text(kernel, instr.result));
    }
    if (instr.op == InstrOp::kLoop) {
      out += " {\n";
      print_body(kernel, instr.body, depth + 1, typed, out);
      append(&out, indent, "}");
    }
    out += "\n";
  }
}

std::string buffer_text(const KernelBuffer& b) {
  return cat(b.level == Level::kShared    ? cat("scratch@", b.byte_offset)
             : b.level == Level::kWork    ? cat("work@", b.byte_offset)
             : b.level == Level::kCluster ? cat("cluster@", b.byte_offset)
             : b.output                   ? (b.once ? "once" : "out")
                                          : "in",
             " \"", absl::CHexEscape(b.name), "\" : ", name_of(b.dtype), " [", absl::StrJoin(b.shape, ","), "]");
}

}  // namespace

std::string print(const Kernel& kernel, const Instr& instr) {
  return cat(instr_text(kernel, instr), instr.result >= 0 ? cat(" : ", tile_text(kernel, instr.result)) : "");
}

std::string print(const Kernel& kernel) {
  std::string out =
      cat("kernel \"", absl::CHexEscape(kernel.name), "\" target=\"", absl::CHexEscape(kernel.target),
          "\" grid=", kernel.grid, " threads=", kernel.threads, " unroll=", kernel.unroll,
          " accumulators=", kernel.accumulators, " compiler=\"", absl::CHexEscape(kernel.compiler), "\"",
          kernel.wave == 0 ? "" : cat(" wave=", kernel.wave, " team=", kernel.team, " teams=", kernel.teams),
          kernel.blocks == 0 ? "" : cat(" blocks=", kernel.blocks),
          kernel.cluster == 1 ? "" : cat(" cluster=", kernel.cluster), " {\n");
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    append(&out, "  p", i, " = ", buffer_text(kernel.buffers[i]), "\n");
  for (VarId v = kernel.wave > 0 ? 2 : 1; v < static_cast<VarId>(kernel.vars.size()); ++v) {
    const Var& var = kernel.vars[v];
    if (var.kind == Var::Kind::kLoop) {
      append(&out, "  index ", var_text(kernel, v), "\n");
    } else {
      const bool enclosed = var.of.size() == 1 && (var.div != 1 || var.mod != 0);
      append(&out, "  let ", var_text(kernel, v), " = ", enclosed ? "(" : "", minimum(kernel, var.of),
             enclosed ? ")" : "", var.div == 1 ? "" : cat(" / ", var.div), var.mod == 0 ? "" : cat(" % ", var.mod),
             "\n");
    }
  }
  std::vector<bool> typed(kernel.tiles.size(), false), defined = typed;
  defined_tiles(kernel.body, defined);
  for (size_t i = 0; i < kernel.tiles.size(); ++i) {
    if (defined[i]) continue;
    append(&out, "  tile %", i, " : ", tile_text(kernel, static_cast<TileId>(i)), "\n");
    typed[i] = true;
  }
  print_body(kernel, kernel.body, 1, typed, out);
  return out + "}\n";
}

}  // namespace wl
