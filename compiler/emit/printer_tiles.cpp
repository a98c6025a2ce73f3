// Prints instructions on tiles in a CPU's tile registers (Intel's AMX): one call for every register, or for every pair
// of registers that is multiplied. The shapes of the registers are set once for the largest part of a kernel in which
// they stay the same. This is the whole kernel, unless several kernels are packed into one.
#include "absl/strings/str_join.h"
#include "compiler/emit/printer.h"

namespace wl {

bool Printer::begin_tiles(std::span<const Instr> body) {
  if (in_tile_registers_.empty() || tiles_are_shaped_) return false;
  const std::optional<std::vector<TileRegister>> shapes = shapes_of(kernel_, body);
  if (!shapes) return false;
  std::vector<int64_t> bytes, rows;
  for (const TileRegister& one : *shapes) {
    bytes.push_back(one.bytes);
    rows.push_back(one.rows);
  }
  out_.open("");
  declared_.emplace_back();
  out_.line(cat("wl_tiles tiles = {1, 0, {}, {", absl::StrJoin(bytes, ", "), "}, {", absl::StrJoin(rows, ", "), "}};"));
  out_.line("wl_tiles_begin(tiles);");
  return tiles_are_shaped_ = true;
}

void Printer::end_tiles() {
  out_.line("wl_tiles_end(tiles);");
  declared_.pop_back();
  out_.close();
  tiles_are_shaped_ = false;
}

void Printer::print_in_tiles(const Instr& instr) {
  if (!tiles_are_shaped_) return fail("tile registers of several shapes in one loop");
  const auto first = [&](TileId tile) { return in_tile_registers_.at(tile).first; };
  const auto registers = [&](TileId tile) {
    return registers_of(in_tile_registers_.at(tile).matrix, tile_of(tile).layout);
  };
  if (instr.op == InstrOp::kMma) {
    const TileId a = instr.args[0], b = instr.args[1];
    const int rows = static_cast<int>(registers(a).size()), columns = static_cast<int>(registers(b).size());
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column)
        out_.line(cat("wl_mma_", info(instr.matrix).name, "<", first(instr.result) + row * columns + column, ", ",
                      first(a) + row, ", ", first(b) + column, ">(tiles);"));
    return;
  }
  const bool store = info(instr.op).stores();
  const TileId tile = store ? instr.args[0] : instr.result;
  int number = first(tile);
  for (const TileRegister& one : registers(tile)) {
    if (instr.op == InstrOp::kFill) {
      out_.line(cat("wl_tile_zero<", number++, ">(tiles);"));
      continue;
    }
    Place place;
    for (const int64_t at : one.first) place.element.push_back(cat(at));
    const int64_t step = instr.slice.strides[1 - tile_of(tile).layout.vector_axis()] *
                         size_of(kernel_.buffers[instr.slice.buffer].dtype);
    out_.line(cat(store ? "wl_tile_store<" : "wl_tile_load<", number++, ">(tiles, ", address(instr.slice, place), ", ",
                  step, "L);"));
  }
}

}  // namespace wl
