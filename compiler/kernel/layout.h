// A layout says which place of the hardware holds which element of a tile. It is a linear map over index bits (Zhou et
// al., "Linear Layouts", arXiv 2505.23819). A position of the hardware is (v: element within a vector, l: lane, u:
// unit, which is a wave of the team, r: register repeat). Each bit of a position maps to a vector of logical coordinate
// bits over F2, usually to one bit. Beyond the bits, each axis may have one outermost repeat of any count (768 = 16 v x
// 48 r). A position bit that maps to zero means that the elements are replicated.
//
// As text: for each axis the position bits from the least significant coordinate bit on, then the outermost repeat:
//   "[4,1536] dim0=u0 u1; dim1=v0 v1 l0 l1 l2 l3 l4 r0 r1 3r".
// Where a bit moves along several coordinate bits, or along none, the text lists the vector of every bit instead:
// "[4,4] bits [2,2] outer 1r 1r bases v0=1 ...". A coordinate is the XOR of the vectors of the bits that are set in its
// position. On a CPU v is the SIMD lanes, and l and u are empty.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/status.h"
#include "compiler/target/matrix.h"

namespace wl {

struct Layout {
  struct Base {
    char kind = 'v';      // v, l, u, r
    uint64_t vector = 0;  // the coordinate bits, those of all axes concatenated, axis 0 lowest
    bool operator==(const Base&) const = default;
  };
  struct Outer {
    char kind = 'r';
    int64_t count = 1;
    bool operator==(const Outer&) const = default;
  };
  std::vector<int64_t> shape;  // logical extents; positions may exceed them (partial last vectors or tiles)
  std::vector<int> bits;       // coordinate bits of each axis
  std::vector<Base> bases;     // in the order of significance within each kind
  std::vector<Outer> outer;    // one per axis
  bool operator==(const Layout&) const = default;

  int rank() const { return static_cast<int>(shape.size()); }
  // The number of positions of a kind, outermost repeats included.
  int64_t count(char kind) const;
  // The axis whose lowest coordinate bits are the v bits in order, or -1 when there are no v bits (scalars).
  int vector_axis() const;
  // The number of vector lanes; 1 when there are no v bits.
  int lanes() const;
  // The coordinate bits of one axis that a base (the vector of one position bit) moves along.
  uint64_t part(const Base& base, int axis) const;
  // The number of positions along an axis that one register covers over all threads: vector, lane and unit bits.
  int64_t width(int axis) const;
  // The number of register repeats that count for an axis: those of r bits, and the outermost ones. An r bit that moves
  // along several axes counts for the first of them, so that one repeat number for each axis names one register.
  int64_t repeats(int axis) const;
  // The register that `repeat` names (one repeat number for each axis): first_of is its coordinate along `axis` where
  // all other position bits are zero; last_of is a bound that no coordinate along `axis` in that register exceeds.
  int64_t first_of(int axis, const std::vector<int64_t>& repeat) const;
  int64_t last_of(int axis, const std::vector<int64_t>& repeat) const;
  // OK where the layout says of every element where it is: outermost repeats are of registers only; the bases that are
  // not zero are as many as the coordinate bits and independent over F2; v bits are the lowest bits of one axis, and no
  // other base reaches these; and the positions cover the shape. The error says which of these does not hold.
  absl::Status check() const;
  std::string text() const;
};

// Reads a layout from what text() prints. Returns an error for any other text, whatever its bytes.
absl::StatusOr<Layout> parse_layout(std::string_view text);
// Reads the layout that begins at the cursor, and moves the cursor behind it.
class TextCursor;
absl::StatusOr<Layout> read_layout(TextCursor& in);

// The layout of a tile that a team of `team` threads, a power of two, holds. Along `axis` come first the `vector` lanes
// of each thread, then the lanes of a wave, then the waves, then register repeats. `axis` = -1: every thread holds all
// elements.
Layout team_layout(std::vector<int64_t> shape, int axis, int vector, int team, int wave);

// How an axis is distributed over the threads of a team. Each thread gets `each` neighbouring elements (a power of
// two), in a vector or in registers, as `kind` says (v or r). Then comes thread after thread, numbered by these bits of
// the thread's number in the team, then register repeats.
struct Deal {
  int64_t each = 1;
  char kind = 'r';
  std::vector<int> bits = {};
};
// The layout of a tile whose axes are distributed over the threads of a team as a grid: one Deal for every axis, and
// each bit of a thread's number in at most one of them.
Layout dealt_layout(std::vector<int64_t> shape, const std::vector<Deal>& deals, int team, int wave);

// The layout of the part of a tile that varies along the axes in `keeps`: the other axes have extent 1, and threads
// that differ along those only hold the same elements.
Layout projected(const Layout& layout, const std::vector<bool>& keeps);

// The layout with `axis` split in two and every element where it was: the second of the two axes runs over `width`
// neighbours along `axis`, the first over these groups. `width` is a power of two. CHECKs that `width` divides the
// extent, and the outermost repeats where it cuts through them.
Layout split_axis(const Layout& layout, int axis, int64_t width);

// How a fragment of a matrix instruction is repeated along an axis of a tile: first 2^registers times in the registers
// of a wave, then over waves, one bit of the wave's number for each doubling. A fragment that several waves hold
// together uses the lowest bits of the wave's number itself.
struct Repeats {
  int registers = 0;
  std::vector<int> waves = {};
};
// The layout of a fragment with two axes, repeated along both as `axes` says.
Layout repeated(const Layout& fragment, const std::array<Repeats, 2>& axes);

// The layouts of both factors (a, b) and of the sums (c) of a matrix instruction, for one fragment or for tiles of
// several.
struct Fragments {
  Layout a, b, c;
};
const Fragments& fragments_of(MatrixOp op);
// Whether the 32 lanes of a wave hold blocks of eight rows by four words, as loading words across rows demands
// (words_across in instrs.def).
bool holds_blocks(const Layout& words);
// The layout with another shape, which may be smaller than what its positions cover.
Layout cut_to(Layout layout, std::vector<int64_t> shape);
// The layouts of the factors' tiles, with `words` words along k, that belong to sums in layout `sums`; nullopt where
// `sums` is not the instruction's fragment, repeated. Without lanes, a step along k may have fewer words than a
// fragment, and the last fragment along an axis may be cut.
std::optional<Fragments> tiles_of(MatrixOp op, const Layout& sums, int64_t words);

// The layout of a tile on a CPU: `lanes` vector lanes along `vector_axis` (-1: none, so every element is a scalar), and
// register repeats for everything else. A partial last vector covers the rest of an extent that `lanes` does not
// divide.
Layout cpu_layout(std::vector<int64_t> shape, int vector_axis, int lanes);

}  // namespace wl
