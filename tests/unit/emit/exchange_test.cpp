// Exchanges among lanes, simulated on the host: if all moves between two layouts stay within waves, every thread ends
// with the elements that its new layout assigns to it.
#include "compiler/emit/exchange.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "tests/unit/fuzz.h"
#include "tests/unit/kernel/random_layout.h"

namespace wl {
namespace {

using testing::below;
using testing::LayoutSpace;

// Returns the coordinates of the element that a thread holds at position `place` of the vector register `repeat`.
std::vector<int64_t> element_of(const Layout& layout, int lane_bits, uint64_t thread,
                                const std::vector<int64_t>& repeat, int64_t place) {
  std::map<char, int> numbers;
  std::vector<int64_t> out;
  for (int axis = 0; axis < layout.rank(); ++axis) out.push_back(layout.first_of(axis, repeat));
  for (const Layout::Base& base : layout.bases) {
    const int number = numbers[base.kind]++;
    const bool set = base.kind == 'v'   ? (place >> number & 1) != 0
                     : base.kind == 'l' ? (thread >> number & 1) != 0
                     : base.kind == 'u' ? (thread >> (lane_bits + number) & 1) != 0
                                        : false;
    for (int axis = 0; set && axis < layout.rank(); ++axis) out[axis] ^= static_cast<int64_t>(layout.part(base, axis));
  }
  return out;
}

// Exchanges elements between two layouts. Returns how many elements of `to` are misplaced, and sets `rounds` to the
// exchange's number of rounds.
int misplaced(const Layout& from, const Layout& to, int lane_bits, int team_bits, int& rounds) {
  const Moves moves = moves_between(from, to, 1 << team_bits, 1 << lane_bits);
  const Exchange exchange = exchange_of(moves, lane_bits);
  rounds = 1 << exchange.lane_round.size();
  int wrong = 0;
  std::vector<int64_t> outermost(from.rank(), 0);  // all outermost repetitions are alike, so only one is tested
  for (uint64_t thread = 0; thread < uint64_t{1} << team_bits; ++thread)
    for (uint64_t round = 0; round < static_cast<uint64_t>(rounds); ++round) {
      const uint64_t wave = thread >> lane_bits << lane_bits;
      const uint64_t other = wave | (listed_sum(exchange.lane, thread) ^ listed_sum(exchange.lane_round, round));
      const uint64_t given = listed_sum(exchange.give, other) ^ listed_sum(exchange.give_round, round);
      const uint64_t put = listed_sum(exchange.put, thread) ^ round;
      if (put >> moves.registers.size() != 0) continue;
      wrong += element_of(from, lane_bits, other, moves.from.repeats(given, outermost), moves.from.element(given)) !=
               element_of(to, lane_bits, thread, moves.to.repeats(put, outermost), moves.to.element(put));
    }
  return wrong;
}

TEST(Exchange, GivesEveryThreadItsElements) {
  std::mt19937_64 random(testing::test_seed(20261103));
  int exchanged = 0;
  const auto wanted = static_cast<int>(testing::scaled(4000));
  for (int tried = 0; exchanged < wanted; ++tried) {
    ASSERT_LT(tried, 200 * wanted);
    LayoutSpace space;
    space.lane_bits = below(random, 7);
    space.unit_bits = space.lane_bits < 5 ? 0 : below(random, 2);
    space.vector_bits = below(random, 3);
    space.shape = {int64_t{1} << below(random, 6), int64_t{3} << below(random, 5)};
    const Layout from = testing::random_layout(random, space), to = testing::random_layout(random, space);
    const int team_bits = space.lane_bits + space.unit_bits;
    const Moves moves = moves_between(from, to, 1 << team_bits, 1 << space.lane_bits);
    if (!within_waves(moves, 1 << space.lane_bits) || moves.registers.size() > 8) continue;
    ++exchanged;
    int rounds = 0;
    ASSERT_EQ(misplaced(from, to, space.lane_bits, team_bits, rounds), 0) << from.text() << "\nto\n" << to.text();
  }
}

TEST(Exchange, RenamesRegistersWithoutShuffles) {
  const Layout from = parse_layout("[4,64] dim0=r0 r1; dim1=v0 v1 l0 l1 l2 l3").value();
  const Layout to = parse_layout("[4,64] dim0=r0 r1; dim1=r2 r3 l0 l1 l2 l3").value();
  const Exchange exchange = exchange_of(moves_between(from, to, 16, 32), 4);
  EXPECT_TRUE(exchange.own_lane(4));
  for (uint64_t lane : exchange.lane_round) EXPECT_EQ(lane, 0u);
  for (uint64_t put : exchange.put) EXPECT_EQ(put, 0u);
  for (uint64_t give : exchange.give) EXPECT_EQ(give, 0u);
}

// If a square tile with one row per lane is transposed, each round moves one register by a butterfly shuffle.
TEST(Exchange, TransposesByAButterflyForEachRegister) {
  const Layout from = parse_layout("[8,8] dim0=l0 l1 l2; dim1=r0 r1 r2").value();
  const Layout to = parse_layout("[8,8] dim0=r0 r1 r2; dim1=l0 l1 l2").value();
  const Moves moves = moves_between(from, to, 8, 32);
  EXPECT_TRUE(within_waves(moves, 32));
  const Exchange exchange = exchange_of(moves, 3);
  EXPECT_TRUE(exchange.own_lane(3));
  EXPECT_EQ(exchange.lane_round, (std::vector<uint64_t>{1, 2, 4}));
}

// A shuffle cannot read the registers of another wave.
TEST(Exchange, KnowsWhatLeavesItsWave) {
  const auto layout = [](const char* text) { return parse_layout(text).value(); };
  const Layout rows = layout("[2,32] dim0=u0; dim1=l0 l1 l2 l3 l4"),
               both = layout("[2,32] dim0=r0; dim1=l0 l1 l2 l3 l4");
  EXPECT_FALSE(within_waves(moves_between(rows, both, 64, 32), 32));
  // each wave holds all elements, so no wave needs those of another
  EXPECT_TRUE(within_waves(moves_between(both, rows, 64, 32), 32));
}

}  // namespace
}  // namespace wl
