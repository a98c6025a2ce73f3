// Layouts compared with brute force: count(), lanes() and repeats() agree with a walk over all positions of a layout.
#include "compiler/kernel/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/unit/kernel/random_layout.h"

namespace wl {
namespace {

// Returns the coordinates of the element at a position of a layout, computed without layout.cpp. `position` has one
// number for each letter of `kinds` (v: vector, l: lane, u: wave, r: register). Bit i of a number selects the i-th base
// of that kind; the remaining high bits count the kind's outermost repeats, axis by axis, the last axis fastest.
std::vector<int64_t> place_of(const Layout& layout, const std::string& kinds, std::vector<int64_t> position) {
  uint64_t vector = 0;
  for (const Layout::Base& base : layout.bases) {
    int64_t& left = position[kinds.find(base.kind)];
    if (left % 2 != 0) vector ^= base.vector;
    left /= 2;
  }
  std::vector<int64_t> out(layout.shape.size());
  for (int axis = layout.rank() - 1; axis >= 0; --axis) {
    int64_t& left = position[kinds.find(layout.outer[axis].kind)];
    out[axis] = (left % layout.outer[axis].count) << layout.bits[axis];
    left /= layout.outer[axis].count;
  }
  for (int axis = 0; axis < layout.rank(); ++axis) {
    out[axis] += static_cast<int64_t>(vector & ((uint64_t{1} << layout.bits[axis]) - 1));
    vector >>= layout.bits[axis];
  }
  return out;
}

TEST(Layout, CpuLayoutsCoverEveryElementOnce) {
  for (int64_t rows : {1, 2, 3, 5})
    for (int64_t columns : {1, 4, 7, 16, 33})
      for (int lanes : {1, 2, 4, 8, 16})
        for (int axis : {-1, 0, 1}) {
          if ((axis < 0) != (lanes == 1)) continue;
          const Layout layout = cpu_layout({rows, columns}, axis, lanes);
          SCOPED_TRACE(layout.text());
          EXPECT_EQ(layout.lanes(), lanes);
          EXPECT_EQ(layout.vector_axis(), axis);
          std::set<std::vector<int64_t>> met;
          for (int64_t r = 0; r < layout.count('r'); ++r) {
            const std::vector<int64_t> start = place_of(layout, "vr", {0, r});
            for (int64_t v = 0; v < lanes; ++v) {
              const std::vector<int64_t> place = place_of(layout, "vr", {v, r});
              EXPECT_TRUE(met.insert(place).second);
              // The elements of a vector are neighbours along the vector axis.
              for (int a = 0; a < 2; ++a) EXPECT_EQ(place[a], start[a] + (a == axis ? v : 0));
            }
          }
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j) EXPECT_TRUE(met.contains({i, j})) << i << "," << j;
          EXPECT_EQ(layout.repeats(0) * layout.repeats(1), layout.count('r'));
          for (int a = 0; a < 2; ++a) {
            const int64_t width = a == axis ? lanes : 1;
            EXPECT_EQ(layout.repeats(a), (layout.shape[a] + width - 1) / width);
          }
          const auto again = parse_layout(layout.text());
          ASSERT_TRUE(again.ok()) << again.status();
          EXPECT_EQ(*again, layout);
        }
}

Layout any_layout(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return static_cast<int>(random() % n); };
  Layout layout;
  int total = 0;
  const int rank = below(4);
  for (int axis = 0; axis < rank; ++axis) {
    layout.bits.push_back(below(4));
    layout.outer.push_back({"vlur"[below(4)], 1 + below(3)});
    layout.shape.push_back((layout.outer.back().count << layout.bits.back()) - below(2));
    total += layout.bits.back();
  }
  const bool plain = below(2) == 0;
  std::string kinds;
  for (int i = 0; i < total; ++i) kinds += "vlur"[below(4)];
  if (plain)
    std::sort(kinds.begin(), kinds.end(),
              [](char a, char b) { return std::string_view("vlur").find(a) < std::string_view("vlur").find(b); });
  std::vector<int> order;
  for (int i = 0; i < total; ++i) order.push_back(i);
  std::shuffle(order.begin(), order.end(), random);
  for (int i = 0; i < total; ++i)
    layout.bases.push_back({kinds[i], plain ? uint64_t{1} << order[i] : random() % (uint64_t{1} << total)});
  return layout;
}

// dealt_layout() puts every element into exactly one register of one thread, and first_of() and last_of() bound the
// coordinates that a register holds.
TEST(Layout, DealtLayoutsCoverEveryElementOnce) {
  for (int wave : {4, 8})
    for (int64_t each : {1, 2, 4}) {
      const std::vector<Deal> deals = {{each, 'r', {2, 4}}, {2, 'v', {0, 1, 3}}};
      const Layout layout = dealt_layout({8 * each, 48}, deals, 32, wave);
      EXPECT_EQ(layout.count('l') * layout.count('u'), 32);
      EXPECT_EQ(layout.lanes(), 2);
      std::set<std::vector<int64_t>> seen;
      for (int64_t v = 0; v < 2; ++v)
        for (int64_t l = 0; l < layout.count('l'); ++l)
          for (int64_t u = 0; u < layout.count('u'); ++u)
            for (int64_t r = 0; r < layout.count('r'); ++r) {
              const std::vector<int64_t> at = place_of(layout, "vlur", {v, l, u, r});
              EXPECT_TRUE(seen.insert(at).second) << layout.text();
              const int64_t inner = r % each, down = r / each / 3, across = r / each % 3;
              const std::vector<int64_t> repeat = {inner + down * each, across};
              for (int axis = 0; axis < 2; ++axis) {
                EXPECT_LE(layout.first_of(axis, repeat), at[axis]);
                EXPECT_GE(layout.last_of(axis, repeat), at[axis]);
              }
              const int64_t place = l + u * layout.count('l');
              EXPECT_EQ(at[1] / 2 % 8, place % 4 + (place / 8 % 2) * 4) << layout.text();
            }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), 8 * each * 48);
    }
  // The layout of an operand that varies along one axis only keeps the position bits of that axis. The bits of the
  // other axis become zero bases (l0=0), which are kept only if a higher bit of the same kind follows.
  EXPECT_EQ(dealt_layout({1, 8}, {{}, {2, 'v', {0, 1}}}, 8, 4).text(), "[1,8] dim1=v0 l0 l1");
  EXPECT_EQ(dealt_layout({4, 1}, {{1, 'r', {1, 2}}, {}}, 8, 4).text(),
            "[4,1] bits [2,0] outer 1r 1r bases l0=0 l1=1 u0=2");
}

// The repeats of all axes together enumerate each register once, even if bases are XORs of coordinate bits. An
// element's coordinates are the first coordinates of its repeat XOR the bases of its lane, wave and vector position.
TEST(Layout, RepeatsNameRegistersOfAnyLayout) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 1000; ++round) {
    const Layout layout = testing::random_layout(random, {{int64_t{1} << (round % 5), 24}, 3, 2, round % 3});
    SCOPED_TRACE(layout.text());
    ASSERT_TRUE(layout.check().ok()) << layout.check();
    std::set<std::vector<int64_t>> held;
    ASSERT_EQ(layout.repeats(0) * layout.repeats(1), layout.count('r'));
    for (int64_t i = 0; i < layout.repeats(0); ++i)
      for (int64_t j = 0; j < layout.repeats(1); ++j)
        for (int64_t place = 0; place < layout.count('l') * layout.count('u') * layout.lanes(); ++place) {
          const int64_t v = place % layout.lanes(), l = place / layout.lanes() % layout.count('l');
          const std::vector<int64_t> moved =
              place_of(layout, "vlur", {v, l, place / layout.lanes() / layout.count('l'), 0});
          std::vector<int64_t> at;
          for (int axis = 0; axis < 2; ++axis) {
            at.push_back(layout.first_of(axis, {i, j}) ^ moved[axis]);
            ASSERT_LE(at[axis], layout.last_of(axis, {i, j}));
          }
          held.insert(at);
        }
    EXPECT_EQ(static_cast<int64_t>(held.size()), layout.shape[0] * layout.shape[1]);
  }
}

TEST(Layout, CheckSaysWhatIsWrong) {
  const auto message = [](const char* text) { return parse_layout(text)->check().ToString(); };
  EXPECT_EQ(message("[4,4] bits [2,2] outer 1r 1r bases v0=1 v1=2 l0=12 l1=4"), "OK");
  EXPECT_EQ(message("[4] bits [2] outer 1r bases l0=1 l1=0 r0=3"), "OK");
  EXPECT_THAT(message("[4] bits [2] outer 1r bases l0=1 l1=1 r0=2"), ::testing::HasSubstr("must be independent"));
  EXPECT_THAT(message("[4] bits [2] outer 1r bases l0=3"), ::testing::HasSubstr("one has no position"));
  EXPECT_THAT(message("[5] bits [2] outer 1r bases l0=1 l1=2"), ::testing::HasSubstr("along axis 0 have no position"));
  EXPECT_THAT(message("[4] bits [2] outer 1r bases v0=2 l0=1"), ::testing::HasSubstr("must be neighbours"));
  EXPECT_THAT(message("[4] bits [2] outer 1r bases v0=1 l0=3"), ::testing::HasSubstr("multiples of their length"));
  EXPECT_THAT(message("[8] dim0=v0 l0 2l"), ::testing::HasSubstr("must be registers"));
}

TEST(Layout, CountsArePositions) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    const Layout layout = any_layout(random);
    // The numbers of positions in a vector, of lanes, waves and registers, multiplied, must equal the number of all
    // positions: 2^(number of bases) times the outermost repeats of all axes.
    int64_t product = 1, counted = 1;
    for (char kind : {'v', 'l', 'u', 'r'}) counted *= layout.count(kind);
    for (size_t i = 0; i < layout.bases.size(); ++i) product *= 2;
    for (const Layout::Outer& outer : layout.outer) product *= outer.count;
    EXPECT_EQ(counted, product) << layout.text();
  }
}

TEST(Layout, TextReadsBackAnyLayout) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 5000; ++round) {
    const Layout layout = any_layout(random);
    const auto again = parse_layout(layout.text());
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << layout.text();
    ASSERT_EQ(*again, layout) << layout.text() << "\n" << again->text();
  }
}

TEST(Layout, TextIsTheDesignsForm) {
  const char* const text = "[4,1536] dim0=u0 u1; dim1=v0 v1 l0 l1 l2 l3 l4 r0 r1 3r";
  const auto layout = parse_layout(text);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->text(), text);
  EXPECT_EQ(layout->count('v'), 4);
  EXPECT_EQ(layout->count('l'), 32);
  EXPECT_EQ(layout->count('u'), 4);
  EXPECT_EQ(layout->count('r'), 12);
  EXPECT_EQ(layout->vector_axis(), 1);
  EXPECT_EQ(layout->repeats(1), 12);
}

TEST(Layout, TextErrorsSayWhatWasExpected) {
  EXPECT_THAT(parse_layout("4").status().ToString(), ::testing::HasSubstr("expected '['"));
  EXPECT_THAT(parse_layout("[4] dim1=v0").status().ToString(), ::testing::HasSubstr("from 0 to 0"));
  EXPECT_THAT(parse_layout("[4] dim0=v1").status().ToString(), ::testing::HasSubstr("bit v0 is missing"));
  EXPECT_THAT(parse_layout("[4] dim0=v0 v0").status().ToString(), ::testing::HasSubstr("bit v1 is missing"));
  EXPECT_THAT(parse_layout("[4] nonsense").status().ToString(), ::testing::HasSubstr("the end of the layout"));
  EXPECT_FALSE(parse_layout("[1099511627776,1099511627776]").ok());
}

}  // namespace
}  // namespace wl
