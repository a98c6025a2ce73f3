#include "compiler/kernel/tile_registers.h"

#include <algorithm>
#include <functional>

#include "compiler/kernel/verify.h"

namespace wl {
namespace {

constexpr int64_t kWordBytes = 4;

void each_instr(std::span<const Instr> body, const std::function<void(const Instr&)>& visit) {
  for (const Instr& instr : body) {
    visit(instr);
    each_instr(instr.body, visit);
  }
}

void each_product(std::span<const Instr> body, const std::function<void(const Instr&)>& visit) {
  each_instr(body, [&](const Instr& instr) {
    if (instr.op == InstrOp::kMma) visit(instr);
  });
}

std::array<TileId, 3> tiles_of_product(const Instr& mma) {
  return {mma.result, mma.args[0], mma.args[1]};
}

// Returns what is wrong with an instruction's use of a tile in tile registers; "" if nothing is.
std::string misuse(const Kernel& kernel, const Instr& instr, TileId tile) {
  const Layout& layout = kernel.tiles[tile].layout;
  const bool moves = instr.op == InstrOp::kLoad || instr.op == InstrOp::kWords || instr.op == InstrOp::kStore;
  if (instr.op == InstrOp::kMma) return "";
  if (instr.op == InstrOp::kFill) return instr.value == 0 ? "" : "tile registers start from zero";
  if (!moves) return "a tile in tile registers is only moved and multiplied";
  if (!instr.guards.empty() || instr.streaming) return "tile registers are moved without guards and hints";
  const int64_t next = instr.op == InstrOp::kWords ? elements_of_word(instr.elements[0]) : 1;
  return instr.slice.strides[layout.vector_axis()] == next ? "" : "the rows of tile registers are contiguous";
}

}  // namespace

std::vector<TileRegister> registers_of(MatrixOp matrix, const Layout& layout) {
  // The fragments of factors have the same shape, in words, as the fragments of sums have in elements.
  const std::vector<int64_t>& fragment = fragments_of(matrix).c.shape;
  const int along = layout.vector_axis();
  std::vector<TileRegister> out;
  for (int64_t row = 0; row < layout.shape[0]; row += fragment[0])
    for (int64_t column = 0; column < layout.shape[1]; column += fragment[1]) {
      const int64_t extents[2] = {std::min(fragment[0], layout.shape[0] - row),
                                  std::min(fragment[1], layout.shape[1] - column)};
      out.push_back({extents[1 - along], extents[along] * kWordBytes, {row, column}});
    }
  return out;
}

ResidentTiles tiles_in_registers(const Kernel& kernel) {
  ResidentTiles out;
  if (kernel.wave > 0) return out;
  each_product(kernel.body, [&](const Instr& mma) {
    int next = 0;
    for (const TileId tile : tiles_of_product(mma)) {
      out.emplace(tile, ResidentTile{next, mma.matrix});
      next += static_cast<int>(registers_of(mma.matrix, kernel.tiles[tile].layout).size());
    }
  });
  return out;
}

std::optional<std::vector<TileRegister>> shapes_of(const Kernel& kernel, std::span<const Instr> part) {
  std::optional<std::vector<TileRegister>> out;
  bool same = kernel.wave == 0;
  each_product(part, [&](const Instr& mma) {
    std::vector<TileRegister> shapes;
    for (const TileId tile : tiles_of_product(mma))
      for (const TileRegister& one : registers_of(mma.matrix, kernel.tiles[tile].layout)) shapes.push_back(one);
    same = same && (!out || *out == shapes);
    out = std::move(shapes);
  });
  return same ? out : std::nullopt;
}

absl::Status check_tile_registers(const Kernel& kernel) {
  const ResidentTiles tiles = tiles_in_registers(kernel);
  absl::Status status;
  const auto fail = [&](const Instr& instr, const std::string& what) {
    if (status.ok()) status = absl::InternalError(cat("kernel ", kernel.name, ": ", what, ": ", print(kernel, instr)));
  };
  each_instr(kernel.body, [&](const Instr& instr) {
    if (instr.op == InstrOp::kMma) {
      int next = 0;
      for (const TileId tile : tiles_of_product(instr)) {
        if (tiles.at(tile).first != next) fail(instr, cat("%", tile, " is in other registers elsewhere"));
        next += static_cast<int>(registers_of(instr.matrix, kernel.tiles[tile].layout).size());
      }
      if (next > kTileRegisterCount) fail(instr, cat("takes ", next, " tile registers of ", kTileRegisterCount));
    }
    std::vector<TileId> touched = {instr.result};
    if (info(instr.op).reads_arguments()) touched.insert(touched.end(), instr.args.begin(), instr.args.end());
    for (const TileId tile : touched)
      if (tiles.contains(tile))
        if (const std::string what = misuse(kernel, instr, tile); !what.empty()) fail(instr, what);
  });
  return status;
}

}  // namespace wl
