#include "compiler/kernel/moves.h"

#include <algorithm>
#include <bit>

#include "compiler/base/log2.h"

namespace wl {
namespace {

// Returns the same layout with bits[axis] coordinate bits for each axis, at least as many as it has: outermost repeats
// become register bits.
Layout with_bits(const Layout& layout, const std::vector<int>& bits) {
  Layout out = layout;
  out.bits = bits;
  for (Layout::Base& base : out.bases) base.vector = 0;
  int shift = 0;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    for (size_t i = 0; i < layout.bases.size(); ++i) out.bases[i].vector |= layout.part(layout.bases[i], axis) << shift;
    for (int bit = layout.bits[axis]; bit < bits[axis]; ++bit) {
      out.bases.push_back({'r', uint64_t{1} << (shift + bit)});
      out.outer[axis].count = (out.outer[axis].count + 1) / 2;
    }
    shift += bits[axis];
  }
  return out;
}

// One bit of a position (`position`), and the coordinate bits that it moves along (`vector`).
struct Row {
  uint64_t vector = 0, position = 0;
};

// Returns the position bits of a layout: those of threads, then those of registers, which are also listed in
// `registers`.
std::vector<Row> rows_of(const Layout& layout, int wave_bits, Registers& registers) {
  std::vector<Row> out;
  registers.counted.assign(layout.rank(), 0);
  for (const Layout::Outer& outer : layout.outer) registers.outer.push_back(outer.count);
  int lane = 0, unit = wave_bits, element = 0;
  std::vector<Row> last;
  for (const Layout::Base& base : layout.bases) {
    if (base.kind == 'l' || base.kind == 'u') {
      out.push_back({base.vector, uint64_t{1} << (base.kind == 'l' ? lane++ : unit++)});
    } else if (base.kind == 'v') {
      registers.bits.push_back({-1, element++});
      last.push_back({base.vector, 0});
    }
  }
  for (const Layout::Base& base : layout.bases) {
    if (base.kind != 'r' || base.vector == 0) continue;
    int axis = 0;
    while (layout.part(base, axis) == 0) ++axis;
    registers.bits.push_back({axis, registers.counted[axis]++});
    last.push_back({base.vector, 0});
  }
  for (size_t i = 0; i < last.size(); ++i) out.push_back({last[i].vector, uint64_t{1} << (kRegisterBit + i)});
  return out;
}

// Inverts a layout over F2: for each coordinate bit, returns the position, of one or more set bits, that moves along
// this bit alone.
std::vector<uint64_t> inverse_of(const std::vector<Row>& rows, int bits) {
  std::vector<Row> reduced;
  for (Row row : rows) {
    for (const Row& known : reduced)
      if ((row.vector & known.vector & (~known.vector + 1)) != 0) {
        row.vector ^= known.vector;
        row.position ^= known.position;
      }
    if (row.vector == 0) continue;  // the position bit moves along no coordinate bit: it replicates elements
    const uint64_t pivot = row.vector & (~row.vector + 1);
    for (Row& known : reduced)
      if ((known.vector & pivot) != 0) {
        known.vector ^= row.vector;
        known.position ^= row.position;
      }
    reduced.push_back(row);
  }
  std::vector<uint64_t> out(bits, 0);
  for (const Row& row : reduced) {
    WL_CHECK(std::has_single_bit(row.vector), "a layout without a place for every element");
    out.at(std::countr_zero(row.vector)) = row.position;
  }
  return out;
}

}  // namespace

std::vector<int64_t> Registers::repeats(uint64_t of, const std::vector<int64_t>& outermost) const {
  std::vector<int64_t> out(counted.size(), 0);
  for (size_t axis = 0; axis < out.size(); ++axis) out[axis] = outermost[axis] << counted[axis];
  for (size_t i = 0; i < bits.size(); ++i)
    if (bits[i].axis >= 0) out[bits[i].axis] += static_cast<int64_t>(of >> i & 1) << bits[i].number;
  return out;
}

int64_t Registers::element(uint64_t of) const {
  int64_t out = 0;
  for (size_t i = 0; i < bits.size(); ++i)
    if (bits[i].axis < 0) out += static_cast<int64_t>(of >> i & 1) << bits[i].number;
  return out;
}

Moves moves_between(const Layout& from, const Layout& to, int team, int wave) {
  std::vector<int> bits;
  int total = 0;
  for (int axis = 0; axis < from.rank(); ++axis) {
    bits.push_back(std::max(from.bits[axis], to.bits[axis]));
    total += bits.back();
  }
  const int wave_bits = log2_floor(std::min(team, std::max(1, wave)));
  Moves out;
  const std::vector<Row> before = rows_of(with_bits(from, bits), wave_bits, out.from);
  const std::vector<uint64_t> inverse = inverse_of(before, total);
  for (const Row& row : before)
    if (row.vector != 0) out.held |= row.position & ((uint64_t{1} << kRegisterBit) - 1);
  out.threads.assign(log2_floor(team), 0);
  for (const Row& row : rows_of(with_bits(to, bits), wave_bits, out.to)) {
    const uint64_t position = listed_sum(inverse, row.vector);
    if (row.position >> kRegisterBit != 0) {
      out.registers.push_back(position);
    } else {
      out.threads.at(std::countr_zero(row.position)) = position;
    }
  }
  return out;
}

uint64_t listed_sum(const std::vector<uint64_t>& listed, uint64_t number) {
  uint64_t out = 0;
  for (size_t bit = 0; bit < listed.size(); ++bit)
    if ((number >> bit & 1) != 0) out ^= listed[bit];
  return out;
}

bool within_waves(const Moves& moves, int wave) {
  const uint64_t waves = moves.held & ~(static_cast<uint64_t>(std::max(1, wave)) - 1);
  for (size_t bit = 0; bit < moves.threads.size(); ++bit)
    if ((moves.threads[bit] & waves) != (uint64_t{1} << bit & waves)) return false;
  return std::all_of(moves.registers.begin(), moves.registers.end(),
                     [waves](uint64_t position) { return (position & waves) == 0; });
}

}  // namespace wl
