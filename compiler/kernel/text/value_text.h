// Prints and reads the parts of a kernel's text that stand for values: variables, affine expressions, tiles, slices and
// guards.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/kernel/text/text_cursor.h"

namespace wl {

std::string text_of(const Kernel& kernel, VarId var);
std::string text_of(const Kernel& kernel, const Affine& affine);
std::string text_of(const Kernel& kernel, const Slice& slice);
std::string text_of(const Kernel& kernel, const Tile& tile);  // returns the text of the tile's type
std::string minimum_text(const Kernel& kernel, const std::vector<Affine>& of);
std::string guards_text(const Kernel& kernel, const std::vector<SliceGuard>& guards);

// Parses the texts that the functions above print. `in`: the line, whose next characters are parsed. `kernel`: what
// earlier lines of the kernel declared.
struct ValueReader {
  TextCursor in{""};
  Kernel kernel;
  int most = 0;                      // the greatest tile number that is accepted
  std::vector<bool> typed = {};      // for each tile: whether its type has been read
  std::vector<TileId> forward = {};  // tiles that an operand `shape` has named; later lines may define them

  absl::Status read_dtype(DType& value);
  absl::Status read_buffer(BufferId& id, int highest);
  absl::Status read_variable(VarId& var);
  absl::Status read_affine(Affine& value);
  absl::Status read_minimum(std::vector<Affine>& of);
  absl::Status read_slice(Slice& value);
  absl::Status read_guards(std::vector<SliceGuard>& guards);
  absl::Status read_tile(TileId& id);  // reads a tile whose type has been read before
  absl::Status read_type(TileId id);   // reads the type of a tile, and stores it in `kernel`
};

inline constexpr int64_t kMaxCount = int64_t{1} << 40;
inline constexpr int64_t kAnyLow = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kAnyHigh = std::numeric_limits<int64_t>::max();

}  // namespace wl
