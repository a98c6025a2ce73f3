// Reads a pad or a concat (Domain::Operand::pieces) by a chain of guarded loads, the last piece first. Where the guards
// of a load do not hold, the value of the preceding load is kept, so that the final value is that of the first piece
// whose guards hold. A load reads memory only where its guards hold.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/domain/domain.h"
#include "compiler/kernel/builder.h"

namespace wl {

// The functions by which read_pieces() makes instructions for the kernel that the caller lowers.
struct PieceReader {
  std::function<TileId(DType)> tile;  // makes a tile that has every axis along which some piece varies
  std::function<void(Instr)> push;    // appends an instruction to the code of the kernel
  std::function<Slice(const Access&)> slice;
  std::function<SliceGuard(const Guard&)> guard;
  // Appends the value of an access (offset + sum of strides * atoms) to the expression of `map`; returns its position.
  std::function<int(const Access&, DType, Instr& map)> affine;
};

// Makes the instructions that read the pieces, and returns the tile that holds their value.
TileId read_pieces(const std::vector<Piece>& pieces, DType dtype, const PieceReader& reader);
// If there is only one piece, and it is a constant, returns its value; otherwise nullopt.
std::optional<double> only_constant(const std::vector<Piece>& pieces);
// Each of these functions appends a constant, a tile or an operation to the expression of `map`, and returns its
// position there.
int push_constant(Instr& map, double value, DType dtype);
int push_arg(Instr& map, TileId tile, DType dtype);
int push_op(Instr& map, Op op, DType dtype, std::vector<int> operands);

}  // namespace wl
