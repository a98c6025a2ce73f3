// Prints converts (changes of a tile's layout) among the threads of a team. An element that stays in its thread at most
// changes its register, lanes of a wave exchange elements by shuffles, and elements that move to another wave pass
// through shared memory.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/base/log2.h"
#include "compiler/emit/exchange.h"
#include "compiler/emit/printer.h"

namespace wl {
namespace {

// Advances `repeat`, the number of the outermost repeat on each axis, to the next combination below `count`; returns
// false after the last one.
bool next_repeat(std::vector<int64_t>& repeat, const std::vector<int64_t>& count) {
  for (size_t axis = repeat.size(); axis-- > 0;) {
    if (++repeat[axis] < count[axis]) return true;
    repeat[axis] = 0;
  }
  return false;
}

}  // namespace

// Returns the expressions for a tile's elements at one outermost repeat on each axis, indexed by the bits of the
// registers' numbers. Elements beyond the tile are zero.
std::vector<std::string> Printer::registers_in(TileId tile, const Registers& registers,
                                               const std::vector<int64_t>& outermost) const {
  const Layout& layout = tile_of(tile).layout;
  std::vector<std::string> out;
  for (uint64_t bits = 0; bits < uint64_t{1} << registers.bits.size(); ++bits) {
    const std::vector<int64_t> repeat = registers.repeats(bits, outermost);
    bool inside = true;
    for (int axis = 0; axis < layout.rank(); ++axis) inside = inside && repeat[axis] < layout.repeats(axis);
    if (!inside) {
      out.push_back(spell_constant(0, tile_of(tile).dtype));
    } else if (layout.lanes() == 1) {
      out.push_back(element_name(tile, repeat));
    } else {
      out.push_back(cat("wl_part(", element_name(tile, repeat), ", ", registers.element(bits), ")"));
    }
  }
  return out;
}

std::string Printer::define_new(const std::string& value) {
  const std::string name = cat("x", temporary_++);
  out_.line(cat("const auto ", name, " = ", value, ";"));
  return name;
}

// Replaces value i by value i ^ x, where x is the XOR of listed[bit] over all bits that are set in the thread's number.
void Printer::permute(std::vector<std::string>& values, const std::vector<uint64_t>& listed) {
  for (size_t bit = 0; bit < listed.size(); ++bit) {
    if (listed[bit] == 0) continue;
    const std::vector<std::string> before = values;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = define_new(cat("(place & ", 1 << bit, ") != 0 ? ", before[i ^ listed[bit]], " : ", before[i]));
  }
}

// Prints all rounds of an exchange for one outermost repeat on each axis. Returns the expressions for the values that a
// thread takes, indexed by the bits of the numbers of the result's registers.
std::vector<std::string> Printer::exchanged(std::vector<std::string> values, const Exchange& exchange, int lane_bits) {
  permute(values, exchange.give);
  std::vector<std::string> taken;
  for (uint64_t round = 0; round < uint64_t{1} << exchange.give_round.size(); ++round) {
    const std::string& given = values[listed_sum(exchange.give_round, round)];
    const uint64_t lane = listed_sum(exchange.lane_round, round);
    if (!exchange.own_lane(lane_bits)) {
      taken.push_back(define_new(
          cat("wl_shuffle<", 1 << lane_bits, ">(", given, ", ", spell_bits("place", exchange.lane, lane), ")")));
    } else {
      taken.push_back(lane == 0 ? given : define_new(cat("wl_shuffle_xor<", lane, ">(", given, ")")));
    }
  }
  permute(taken, exchange.put);
  return taken;
}

void Printer::print_team_convert(const Instr& instr) {
  if (goes_through_memory(instr)) {
    const auto [store, load] = through_memory(instr);
    print_team_instr(store);
    out_.line(barrier());
    return print_team_instr(load);
  }
  const TileId from = instr.args[0];
  const Tile& result = tile_of(instr.result);
  const int lanes = std::min(kernel_.wave, kernel_.team), lane_bits = log2_floor(lanes);
  const Moves moves = moves_between(tile_of(from).layout, result.layout, kernel_.team, kernel_.wave);
  const Exchange exchange = exchange_of(moves, lane_bits);
  const bool moved =
      !exchange.own_lane(lane_bits) ||
      std::any_of(exchange.lane_round.begin(), exchange.lane_round.end(), [](uint64_t lane) { return lane != 0; });
  const int64_t same = replicated(result.layout) & (lanes - 1);
  std::map<std::string, std::vector<std::string>> registers;  // by register of the result: the values for its elements
  std::vector<int64_t> outermost(result.layout.rank(), 0);
  do {
    const std::vector<std::string> taken = exchanged(registers_in(from, moves.from, outermost), exchange, lane_bits);
    for (uint64_t bits = 0; bits < uint64_t{1} << moves.to.bits.size(); ++bits) {
      const std::vector<int64_t> repeat = moves.to.repeats(bits, outermost);
      bool inside = true;
      for (int axis = 0; axis < result.layout.rank(); ++axis)
        inside = inside && repeat[axis] < result.layout.repeats(axis);
      if (!inside) continue;
      std::vector<std::string>& elements = registers[element_name(instr.result, repeat)];
      elements.resize(result.layout.lanes());
      elements[moves.to.element(bits)] = taken[bits];
      if (moved && same != 0) out_.line(cat("wl_agree<", same, ">(", taken[bits], ");"));
    }
  } while (next_repeat(outermost, moves.to.outer));
  for (int64_t i = 0; i < repeats_of(result); ++i) {
    const std::string name = cat("t", instr.result, "_", i);
    const std::vector<std::string>& elements = registers.at(name);
    define(instr.result, name, elements.size() == 1 ? elements[0] : packed(from, elements, result.dtype));
  }
}

// Returns an expression for a vector of these elements: the name of a register of `from` if its elements are exactly
// these, in this order.
std::string Printer::packed(TileId from, const std::vector<std::string>& elements, DType dtype) const {
  const int lanes = static_cast<int>(elements.size());
  for (int64_t i = 0; lanes == lanes_of(from) && i < repeats_of(tile_of(from)); ++i) {
    const std::string name = cat("t", from, "_", i);
    bool own = true;
    for (int v = 0; v < lanes; ++v) own = own && elements[v] == cat("wl_part(", name, ", ", v, ")");
    if (own) return name;
  }
  return cat("wl_pack<", spell_type(dtype, lanes), ">(", absl::StrJoin(elements, ", "), ")");
}

}  // namespace wl
