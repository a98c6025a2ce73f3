// Reading a pad or a concat (Domain::Operand::pieces): a chain of guarded loads, the last piece first. Where the guards
// of a load do not hold it keeps the value of the load before, so that every element is read at most once.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/kernel/builder.h"
#include "compiler/plan/domain.h"

namespace wl {

// The functions by which a lowering makes the instructions of a chain.
struct PieceReader {
  std::function<TileId(DType)> tile;  // of the space that the pieces together move in
  std::function<void(Instr)> push;
  std::function<Slice(const Access&)> slice;
  std::function<SliceGuard(const Guard&)> guard;
  std::function<int(const Access&, DType, Instr& map)> affine;  // offset + sum of strides * atoms, as part of a map
};

// The tile that holds the value.
TileId read_pieces(const std::vector<Piece>& pieces, DType dtype, const PieceReader& reader);
// The value of pieces that are one constant.
std::optional<double> only_constant(const std::vector<Piece>& pieces);
int push_constant(Instr& map, double value, DType dtype);
int push_arg(Instr& map, TileId tile, DType dtype);
int push_op(Instr& map, Op op, DType dtype, std::vector<int> operands);

}  // namespace wl
