// Layouts are linear maps over index bits (Zhou et al., "Linear Layouts", arXiv 2505.23819). A position of the hardware
// is (v: element within a vector, l: lane, u: unit, r: register repeat); each of its bits maps to a vector of logical
// coordinate bits over F2, usually one bit. Beyond the bits, each axis may have one outermost repeat of any count
// (768 = 16 v x 48 r). A position bit that maps to zero means replicated.
//
// Text, per axis from the least significant bit, then the outermost repeat:
//   "[4,1536] dim0=u0 u1; dim1=v0 v1 l0 l1 l2 l3 l4 r0 r1 3r".
// Bits that move along several coordinate bits, or none, are listed instead: "[4,4] bits [2,2] outer 1r 1r bases v0=1
// ...". A coordinate is the XOR of what the bits of its position move along. On a CPU v is the SIMD lanes, l and u are
// empty.
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
    uint64_t vector = 0;  // over the concatenated axis bits, axis 0 lowest
    bool operator==(const Base&) const = default;
  };
  struct Outer {
    char kind = 'r';
    int64_t count = 1;
    bool operator==(const Outer&) const = default;
  };
  std::vector<int64_t> shape;  // logical extents; positions may exceed them (tails)
  std::vector<int> bits;       // coordinate bits of each axis
  std::vector<Base> bases;     // per kind in order of significance
  std::vector<Outer> outer;    // one per axis
  bool operator==(const Layout&) const = default;

  int rank() const { return static_cast<int>(shape.size()); }
  // Number of positions of a kind, outer repeats included.
  int64_t count(char kind) const;
  // The axis whose lowest coordinate bits are the v bits in order, or -1 when there are none (scalars) ...
  int vector_axis() const;
  // ... and how many lanes there are (1 when there are none).
  int lanes() const;
  // The coordinate bits of one axis that a base moves along.
  uint64_t part(const Base& base, int axis) const;
  // Positions along an axis before registers repeat: vector, lane and unit bits.
  int64_t width(int axis) const;
  // Register repeats that count for an axis: r bits first, then the outermost. An r bit that moves along several axes
  // counts for the first of them, so that one repeat for each axis names one register.
  int64_t repeats(int axis) const;
  // The coordinate along an axis of the register with these repeats, one for each axis, where all other position bits
  // are zero; and a bound that no coordinate along the axis in that register exceeds.
  int64_t first_of(int axis, const std::vector<int64_t>& repeat) const;
  int64_t last_of(int axis, const std::vector<int64_t>& repeat) const;
  // Whether it says of every element where it is: registers alone repeat outermost, the bases that are not replicated
  // are as many as the coordinate bits and independent over F2, v bits are the lowest bits of one axis, which no other
  // base reaches, and the positions cover the shape. The error says what it has instead.
  absl::Status check() const;
  std::string text() const;
};

// The layout that prints as `text`; never crashes, whatever the bytes.
absl::StatusOr<Layout> parse_layout(std::string_view text);
// Reads the layout that the cursor stands before, and moves the cursor behind it.
class TextCursor;
absl::StatusOr<Layout> read_layout(TextCursor& in);

// The layout of a tile held by a team: along `axis` (-1: every thread holds all) first `vector` lanes of each thread,
// then the lanes of a wave, then its waves, then register repeats. The team is a power of two.
Layout team_layout(std::vector<int64_t> shape, int axis, int vector, int team, int wave);

// How an axis is distributed over the threads of a team: `each` neighbouring elements to a thread (a power of two; kind
// v or r), then thread after thread, numbered by these bits of its place in the team, then repeats.
struct Deal {
  int64_t each = 1;
  char kind = 'r';
  std::vector<int> bits = {};
};
// The layout of a tile held by the threads of a team as a grid: one Deal for every axis, each place bit in at most one.
Layout dealt_layout(std::vector<int64_t> shape, const std::vector<Deal>& deals, int team, int wave);

// The layout of what moves along some axes of a tile only: the others have extent 1, and threads that differ along them
// hold the same.
Layout projected(const Layout& layout, const std::vector<bool>& keeps);

// The same registers, with an axis in two: places along the second are `width` neighbours along the axis, a power of
// two. CHECKs that width divides what repeats.
Layout split_axis(const Layout& layout, int axis, int64_t width);

// How a fragment of a matrix instruction is repeated along an axis of a tile: 2^registers times in the registers of a
// wave, then in other waves, one bit of the wave's number for each doubling. A fragment of several waves has the lowest
// bits for itself.
struct Repeats {
  int registers = 0;
  std::vector<int> waves = {};
};
// The layout of a fragment with two axes, repeated along both.
Layout repeated(const Layout& fragment, const std::array<Repeats, 2>& axes);

// The layouts of both factors and of the sums of a matrix instruction: of a wave, or of tiles that are several of
// these.
struct Fragments {
  Layout a, b, c;
};
const Fragments& fragments_of(MatrixOp op);
// Whether 32 lanes hold blocks of eight rows and four words, which is how words of elements that are not neighbours are
// loaded across rows (words_across in instrs.def).
bool holds_blocks(const Layout& words);
// A layout whose shape is only a part of what its positions cover.
Layout cut_to(Layout layout, std::vector<int64_t> shape);
// The tiles of factors with so many words along k for sums in a layout; nullopt where that is not the fragment
// repeated. Without lanes a step along k may have fewer words, and the last fragment along an axis may be cut.
std::optional<Fragments> tiles_of(MatrixOp op, const Layout& sums, int64_t words);

// The CPU's layout of a tile: `lanes` vector lanes along `vector_axis` (-1: none, every element a scalar), everything
// else register repeats. Extents that lanes do not divide are covered by a partial last vector.
Layout cpu_layout(std::vector<int64_t> shape, int vector_axis, int lanes);

}  // namespace wl
