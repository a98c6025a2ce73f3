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
    char kind = 'v';      // kind of position bit: v, l, u or r
    uint64_t vector = 0;  // the coordinate bits that the position bit moves along, of all axes, axis 0 lowest
    bool operator==(const Base&) const = default;
  };
  struct Outer {
    char kind = 'r';
    int64_t count = 1;
    bool operator==(const Outer&) const = default;
  };
  std::vector<int64_t> shape;  // extents of the axes in elements; positions of partial vectors may lie beyond them
  std::vector<int> bits;       // number of coordinate bits of each axis
  std::vector<Base> bases;     // the base of each position bit; of each kind, the least significant bit first
  std::vector<Outer> outer;    // for each axis, the kind and the number of its outermost repeats
  bool operator==(const Layout&) const = default;

  int rank() const { return static_cast<int>(shape.size()); }
  // The number of positions of a kind (v, l, u or r), outermost repeats included.
  int64_t count(char kind) const;
  // The axis that vectors run along, or -1 if there are no v bits (scalars).
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
  // Both functions are about one register, which `repeat` names by a repeat number for each axis. first_of: the
  // register's coordinate along `axis` where all other position bits are zero. last_of: an upper bound of the
  // register's coordinates along `axis`.
  int64_t first_of(int axis, const std::vector<int64_t>& repeat) const;
  int64_t last_of(int axis, const std::vector<int64_t>& repeat) const;
  // Returns OK if the layout gives every element a place: all outermost repeats are of kind r (registers); there are
  // as many nonzero bases as coordinate bits, and they are linearly independent over F2; v bits are the lowest bits of
  // one axis, and no other base contains these bits; and the positions cover the shape. Otherwise the error names the
  // condition that fails.
  absl::Status check() const;
  std::string text() const;
};

// Reads a layout from what text() prints. Returns an error for any other text, whatever its bytes.
absl::StatusOr<Layout> parse_layout(std::string_view text);
// Reads the layout that begins at the cursor, and moves the cursor to the end of the layout's text.
class TextCursor;
absl::StatusOr<Layout> read_layout(TextCursor& in);

// Returns the layout of a tile that a team of `team` threads, a power of two, holds. Along `axis`, elements are
// assigned first to the `vector` lanes of each thread, then to the lanes of a wave, then to the waves, then to register
// repeats. If `axis` is -1, every thread holds all elements.
Layout team_layout(std::vector<int64_t> shape, int axis, int vector, int team, int wave);

// How one axis of a tile is distributed over the threads of a team. Each thread gets `each` neighbouring elements (a
// power of two), in a vector (kind v) or in registers (kind r). They are followed by those of the next thread along the
// axis, where `bits` are the bits of a thread's number in the team that count along the axis, and then by register
// repeats.
struct Deal {
  int64_t each = 1;
  char kind = 'r';
  std::vector<int> bits = {};
};
// Returns the layout of a tile whose axes are distributed over the threads of a team as a grid. There is one Deal for
// every axis, and each bit of a thread's number is in at most one Deal.
Layout dealt_layout(std::vector<int64_t> shape, const std::vector<Deal>& deals, int team, int wave);

// Projects a layout to the axes that `keeps` marks: the other axes get extent 1, and threads that differ only along
// those axes hold the same elements.
Layout projected(const Layout& layout, const std::vector<bool>& keeps);

// Splits `axis` in two without moving any element: the second of the new axes runs over `width` neighbours along
// `axis`, the first over the groups of `width`. `width` is a power of two. CHECKs that `width` divides the extent and,
// if it spans several outermost repeats, that their number is a multiple.
Layout split_axis(const Layout& layout, int axis, int64_t width);

// How a fragment of a matrix instruction is repeated along an axis of a tile: first 2^registers times in the registers
// of a wave, then over waves. `waves` lists bits of a wave's number, each of which doubles the repeats. If several
// waves hold one fragment together, the fragment itself uses the lowest bits of the wave's number.
struct Repeats {
  int registers = 0;
  std::vector<int> waves = {};
};
// Returns the layout of a two-dimensional fragment, repeated along both axes as `axes` says.
Layout repeated(const Layout& fragment, const std::array<Repeats, 2>& axes);

// The layouts of both factors (a, b) and of the sums (c) of a matrix instruction: of one fragment each, or of tiles of
// several fragments.
struct Fragments {
  Layout a, b, c;
};
const Fragments& fragments_of(MatrixOp op);
// Whether the 32 lanes of a wave hold blocks of eight rows by four words, as the instruction words_across requires
// (instrs.def).
bool holds_blocks(const Layout& words);
// Returns the layout with another shape, which may be smaller than what the layout's positions cover.
Layout cut_to(Layout layout, std::vector<int64_t> shape);
// Returns the layouts of both factors' tiles, `words` words long along k, for a product whose sums have layout `sums`;
// nullopt if `sums` does not consist of repeated fragments of the instruction. On machines without lanes, a step along
// k may have fewer words than a fragment, and the last fragment along an axis may be partial.
std::optional<Fragments> tiles_of(MatrixOp op, const Layout& sums, int64_t words);

// The layout of a tile on a CPU: `lanes` vector lanes along `vector_axis` (-1: none, so every element is a scalar), and
// register repeats for everything else. A partial last vector covers the rest of an extent that `lanes` does not
// divide.
Layout cpu_layout(std::vector<int64_t> shape, int vector_axis, int lanes);

}  // namespace wl
