// Bank conflicts of accesses to shared memory: well-known cases, and random layouts compared with a walk over all
// lanes.
#include "compiler/model/banks.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "tests/unit/fuzz.h"
#include "tests/unit/kernel/random_layout.h"

namespace wl {
namespace {

using testing::below;

const Gpu& gpu_of(const char* target) {
  return target_named(target).value()->gpu;
}

BankUse of_a_warp(const char* layout, const std::vector<int64_t>& strides, Swizzle swizzle = {}, bool stores = false,
                  int bytes = 4) {
  return bank_use(parse_layout(layout).value(), strides, 0, swizzle, bytes, gpu_of("cuda:sm_80"), 32, stores);
}

TEST(Banks, ColumnsOfASquareConflictUnlessPaddedOrSwizzled) {
  const char* const column = "[32] dim0=l0 l1 l2 l3 l4";
  EXPECT_EQ(of_a_warp(column, {1}).cycles, 1);
  EXPECT_EQ(of_a_warp(column, {2}).cycles, 2);
  EXPECT_EQ(of_a_warp(column, {32}).cycles, 32);
  EXPECT_TRUE(of_a_warp(column, {32}).conflicts());
  EXPECT_EQ(of_a_warp(column, {33}).cycles, 1);
  EXPECT_EQ(of_a_warp(column, {32}, {5, 0, 5}).cycles, 1);
  EXPECT_FALSE(of_a_warp(column, {32}, {5, 0, 5}).conflicts());
  EXPECT_EQ(of_a_warp(column, {1}, {5, 0, 5}).cycles, 1);
}

TEST(Banks, VectorsTakeACycleForEveryWordOfALane) {
  // Each lane accesses 16 bytes, and 32 banks serve 128 bytes per cycle, so only eight lanes share a cycle.
  EXPECT_EQ(of_a_warp("[128] dim0=v0 v1 l0 l1 l2 l3 l4", {1}).cycles, 4);
  // Each lane reads a vector from its own row of 32 words. Without a swizzle, all vectors start in the same bank.
  const char* const rows = "[32,4] dim0=l0 l1 l2 l3 l4; dim1=v0 v1";
  EXPECT_EQ(of_a_warp(rows, {32, 1}).cycles, 32);
  EXPECT_EQ(of_a_warp(rows, {32, 1}, {3, 2, 3}).cycles, 4);
}

TEST(Banks, LanesThatShareAWordTakeItTogether) {
  // Lanes that hold the same element share one access to its bank.
  EXPECT_EQ(of_a_warp("[4] dim0=l0 l1", {1}).cycles, 1);
  EXPECT_EQ(of_a_warp("[1]", {32}).cycles, 1);
  EXPECT_EQ(of_a_warp("[32] dim0=l0 l1 l2 l3 l4", {64}, {}, false, 2).cycles, 32);
  EXPECT_EQ(of_a_warp("[32] dim0=l0 l1 l2 l3 l4", {1}, {}, false, 2).cycles, 1);  // two elements lie in one word
  // A wave of 64 lanes takes one cycle with 64 banks, and two cycles with 32 banks.
  const Layout wide = parse_layout("[64] dim0=l0 l1 l2 l3 l4 l5").value();
  EXPECT_EQ(bank_use(wide, {1}, 0, {}, 4, gpu_of("hip:gfx950"), 64, false).cycles, 1);
  EXPECT_EQ(bank_use(wide, {1}, 0, {}, 4, gpu_of("hip:gfx942"), 64, false).cycles, 2);
}

// Counts cycles by the definition of bank conflicts: in each phase, the bank with the most distinct words decides.
int64_t cycles_by_hand(const Layout& layout, const std::vector<int64_t>& strides, int64_t offset, Swizzle swizzle,
                       int bytes, int banks, int lane_bits, int unit_bits, bool stores) {
  int64_t width = 1;  // elements that a lane accesses at a time
  const int axis = layout.vector_axis();
  if (axis >= 0 && strides[axis] == 1) {
    width = std::gcd<int64_t>(layout.lanes(), offset);
    while (width * bytes > 16) width /= 2;
    for (int a = 0; a < layout.rank(); ++a)
      if (a != axis && layout.shape[a] != 1) width = std::gcd(width, strides[a]);
  }
  const bool splat = axis >= 0 && strides[axis] == 0;
  const int64_t phase = std::min<int64_t>(1 << lane_bits, banks * 4 / std::max<int64_t>(4, width * bytes));
  // The keys name a register (by its coordinates), a part of its vector and a phase. The values are the distinct words
  // that are accessed in each bank.
  std::map<std::vector<int64_t>, std::map<int64_t, std::set<int64_t>>> reached;
  for (int64_t i = 0; i < layout.repeats(0); ++i)
    for (int64_t j = 0; j < layout.repeats(1); ++j)
      for (int64_t thread = 0; thread < int64_t{1} << (lane_bits + unit_bits); ++thread)
        for (int64_t v = 0; v < (splat ? 1 : layout.lanes()); ++v) {
          std::map<char, int> numbers;
          int64_t at[2] = {layout.first_of(0, {i, j}), layout.first_of(1, {i, j})};
          bool copy = false;
          int64_t named = 0;
          for (const Layout::Base& base : layout.bases) {
            const int number = numbers[base.kind]++;
            const int64_t bit = base.kind == 'l' ? number : lane_bits + number;
            const bool set = base.kind == 'v' ? (v >> number & 1) != 0 : base.kind != 'r' && (thread >> bit & 1) != 0;
            if (base.kind == 'l' || base.kind == 'u') named |= base.vector != 0 ? int64_t{1} << bit : 0;
            for (int a = 0; a < 2 && set; ++a) at[a] ^= static_cast<int64_t>(layout.part(base, a));
          }
          copy = (thread & ~named) != 0;
          if (stores && copy) continue;
          int64_t element = offset + at[0] * strides[0] + at[1] * strides[1];
          for (int bit = 0; bit < swizzle.bits; ++bit)
            if ((element >> (swizzle.base + swizzle.shift + bit) & 1) != 0)
              element ^= int64_t{1} << (swizzle.base + bit);
          for (int64_t byte = element * bytes; byte < (element + 1) * bytes; ++byte)
            reached[{i, j, v / width, thread / phase}][byte / 4 % banks].insert(byte / 4);
        }
  int64_t cycles = 0;
  for (const auto& [key, of_bank] : reached) {
    size_t most = 0;
    for (const auto& [bank, words] : of_bank) most = std::max(most, words.size());
    cycles += static_cast<int64_t>(most);
  }
  return cycles;
}

TEST(Banks, AgreeWithAWalkOverAllLanes) {
  std::mt19937_64 random(testing::test_seed(20261104));
  int conflicts = 0;
  for (int round = 0; round < testing::scaled(2000); ++round) {
    const bool wide = below(random, 2) == 0;
    testing::LayoutSpace space;
    space.lane_bits = below(random, 3) == 0 ? below(random, 5) : wide ? 6 : 5;
    space.unit_bits = space.lane_bits < 5 + (wide ? 1 : 0) ? 0 : below(random, 2);
    space.vector_bits = below(random, 3);
    space.shape = {int64_t{1} << below(random, 6), int64_t{1} << (2 + below(random, 4))};
    const Layout layout = testing::random_layout(random, space);
    const int bytes = 1 << below(random, 4);
    const int64_t pitch = space.shape[1] + (below(random, 2) == 0 ? below(random, 5) : 0);
    std::vector<int64_t> strides = {pitch, 1};
    if (below(random, 3) == 0) std::swap(strides[0], strides[1]);
    if (below(random, 8) == 0) strides[below(random, 2)] = 0;
    const int64_t offset = below(random, 3) == 0 ? below(random, 64) : 0;
    Swizzle swizzle;
    if (below(random, 2) == 0) {
      swizzle = {1 + below(random, 4), 0, 0};
      // the swizzle moves at least four neighbouring elements together, so it splits no vector
      swizzle.base = 2 + below(random, 2);
      swizzle.shift = swizzle.bits + below(random, 3);
      if (offset % 4 != 0 || pitch % 4 != 0) swizzle = {};
    }
    const Gpu& gpu = gpu_of(wide ? (below(random, 2) == 0 ? "hip:gfx950" : "hip:gfx90a") : "cuda:sm_90");
    const bool stores = below(random, 2) == 0;
    const BankUse use =
        bank_use(layout, strides, offset, swizzle, bytes, gpu, 1 << (space.lane_bits + space.unit_bits), stores);
    ASSERT_EQ(use.cycles, cycles_by_hand(layout, strides, offset, swizzle, bytes, gpu.banks, space.lane_bits,
                                         space.unit_bits, stores))
        << layout.text() << " strides " << strides[0] << " " << strides[1] << " offset " << offset << " bytes "
        << bytes;
    EXPECT_LE(use.least, use.cycles);
    conflicts += use.conflicts() ? 1 : 0;
  }
  EXPECT_GT(conflicts, 0);
}

}  // namespace
}  // namespace wl
