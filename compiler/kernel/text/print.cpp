// Prints kernels as text, which parse.cpp reads back. A tile's type is printed where the tile is first defined; tiles
// that no instruction defines are listed first.
#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "compiler/kernel/text/operand_text.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

std::string type_text(const Kernel& kernel, TileId id) {
  return id < static_cast<TileId>(kernel.tiles.size()) ? text_of(kernel, kernel.tiles[id]) : "?";
}

std::string instr_text(const Kernel& kernel, const Instr& instr) {
  return cat(instr.result >= 0 ? cat("%", instr.result, " = ") : "", name_of(instr.op), operands_text(kernel, instr));
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
      append(&out, " : ", type_text(kernel, instr.result));
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
  return cat(
      b.level != Level::kGlobal ? cat(info(b.level).text, "@", b.byte_offset)
      : b.output                ? (b.once ? "once" : "out")
                                : "in",
      " \"", absl::CHexEscape(b.name), "\" : ", name_of(b.dtype), " [", absl::StrJoin(b.shape, ","), "]",
      b.swizzle == Swizzle() ? "" : cat(" swizzle [", b.swizzle.bits, ",", b.swizzle.base, ",", b.swizzle.shift, "]"),
      b.swizzle.panels == 0 ? "" : cat(" panels [", b.swizzle.column, ",", b.swizzle.panels, ",", b.swizzle.rows, "]"),
      b.arrivals == 0 ? "" : cat(" arrivals ", b.arrivals));
}

}  // namespace

std::string print(const Kernel& kernel, const Instr& instr) {
  return cat(instr_text(kernel, instr), instr.result >= 0 ? cat(" : ", type_text(kernel, instr.result)) : "");
}

std::string print(const Kernel& kernel) {
  std::string out =
      cat("kernel \"", absl::CHexEscape(kernel.name), "\" target=\"", absl::CHexEscape(kernel.target),
          "\" grid=", kernel.grid, " threads=", kernel.threads, " unroll=", kernel.unroll,
          " accumulators=", kernel.accumulators, " compiler=\"", absl::CHexEscape(kernel.compiler), "\"",
          kernel.wave == 0 ? "" : cat(" wave=", kernel.wave, " team=", kernel.team, " teams=", kernel.teams),
          kernel.blocks == 0 ? "" : cat(" blocks=", kernel.blocks),
          kernel.cluster == 1 ? "" : cat(" cluster=", kernel.cluster),
          kernel.copiers == 0 ? "" : cat(" copiers=", kernel.copiers), " {\n");
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    append(&out, "  p", i, " = ", buffer_text(kernel.buffers[i]), "\n");
  for (VarId v = kernel.wave > 0 ? 2 : 1; v < static_cast<VarId>(kernel.vars.size()); ++v) {
    const Var& var = kernel.vars[v];
    if (var.kind == Var::Kind::kLoop) {
      append(&out, "  index ", text_of(kernel, v), "\n");
    } else {
      const bool enclosed = var.of.size() == 1 && (var.div != 1 || var.mod != 0);
      append(&out, "  let ", text_of(kernel, v), " = ", enclosed ? "(" : "", minimum_text(kernel, var.of),
             enclosed ? ")" : "", var.div == 1 ? "" : cat(" / ", var.div), var.mod == 0 ? "" : cat(" % ", var.mod),
             "\n");
    }
  }
  std::vector<bool> typed(kernel.tiles.size(), false), defined = typed;
  defined_tiles(kernel.body, defined);
  for (size_t i = 0; i < kernel.tiles.size(); ++i) {
    if (defined[i]) continue;
    append(&out, "  tile %", i, " : ", type_text(kernel, static_cast<TileId>(i)), "\n");
    typed[i] = true;
  }
  print_body(kernel, kernel.body, 1, typed, out);
  return out + "}\n";
}

}  // namespace wl
