// Kernels whose tiles have random layouts, on the simulated GPU: the printed text places every element where the layout
// says, even if a coordinate is the XOR of parts that depend on several bits of the element's position.
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <regex>

#include "compiler/emit/emit.h"
#include "compiler/kernel/barriers.h"
#include "compiler/kernel/builder.h"
#include "compiler/kernel/moves.h"
#include "compiler/kernel/verify.h"
#include "tests/simulated/by_hand.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/kernel/random_layout.h"

namespace wl {
namespace {

using testing::below;
using testing::kernel_by_hand;
using testing::LayoutSpace;
using testing::random_layout;
using testing::simulated_differences;

// Returns the slice of a buffer in which a team's tile is stored row by row. The tiles of the teams follow one another,
// beginning at element `first` of the buffer.
Slice rows_of(BufferId buffer, const std::vector<int64_t>& shape, int64_t first) {
  Slice out;
  out.buffer = buffer;
  out.offset = fixed(first);
  out.offset.add(kTeamVar, elements(shape));
  out.strides.assign(shape.size(), 1);
  for (size_t axis = shape.size() - 1; axis-- > 0;) out.strides[axis] = out.strides[axis + 1] * shape[axis + 1];
  return out;
}

// A team of a machine with lanes, and a tile shape that fits the team.
struct Place {
  std::string target;
  int team = 1, teams = 1;
  LayoutSpace space;
};

// Returns a random target, team and tile space, in which a thread has at most `most` elements of the tile.
Place random_place(std::mt19937_64& random, int64_t most) {
  Place out;
  const bool wide = below(random, 2) == 0;
  out.target = wide ? "sim:hip" : "sim:cuda";
  const int wave_bits = wide ? 6 : 5, team_bits = below(random, 9);
  out.space.lane_bits = std::min(wave_bits, team_bits);
  out.space.unit_bits = team_bits - out.space.lane_bits;
  out.space.vector_bits = below(random, 3);
  out.team = 1 << team_bits;
  // Every block has at least one wave.
  out.teams = std::max(1, (1 << wave_bits) / out.team) * (below(random, 3) == 0 ? 2 : 1);
  do {
    out.space.shape.clear();
    for (int axis = 0; axis < 2; ++axis) out.space.shape.push_back((below(random, 4) == 0 ? 3 : 1) << below(random, 6));
  } while (elements(out.space.shape) > most * out.team);
  return out;
}

// Returns a random layout with at most `most` elements in the registers of a thread.
Layout small_layout(std::mt19937_64& random, const LayoutSpace& space, int64_t most) {
  Layout out = random_layout(random, space);
  while (out.count('r') * out.lanes() > most) out = random_layout(random, space);
  return out;
}

// Expects that all kernels are right, and shows the first three that are not.
void expect_right(const std::vector<Kernel>& kernels) {
  int wrong = 0;
  for (const std::string& message : simulated_differences(kernels))
    if (!message.empty() && ++wrong <= 3) ADD_FAILURE() << message;
  EXPECT_EQ(wrong, 0) << "of " << kernels.size() << " kernels";
}

class Layouts : public testing::Sharded {};

// A kernel that loads x into a tile of a random layout, stores x from there, and then stores x + x, which it computes
// from the tile.
TEST_P(Layouts, ElementsAreWhereTheLayoutSays) {
  const auto [first, last] = seeds(160, 20261101);
  std::vector<Kernel> kernels;
  for (uint64_t seed = first; seed < last; ++seed) {
    std::mt19937_64 random(seed);
    const Place place = random_place(random, 8);
    const std::vector<int64_t>& shape = place.space.shape;
    const int64_t size = elements(shape) * place.teams;
    Kernel kernel = kernel_by_hand(place.target, place.team, place.teams, 1, DType::f32, size, 2 * size);
    const Layout layout = small_layout(random, place.space, 32);
    for (int i = 0; i < 2; ++i) kernel.tiles.push_back({DType::f32, layout, {}});
    kernel.body.push_back(load_instr(0, rows_of(0, shape, 0)));
    kernel.body.push_back(map_instr(1, Op::add, DType::f32, {0, 0}));
    kernel.body.push_back(store_instr(0, rows_of(1, shape, 0), false));
    kernel.body.push_back(store_instr(1, rows_of(1, shape, size), false));
    ASSERT_TRUE(verify(kernel).ok()) << verify(kernel) << print(kernel);
    kernels.push_back(std::move(kernel));
  }
  expect_right(kernels);
}

// Returns the layout without the positions of the kinds `gone` along `axis`. The positions that remain along the axis
// are numbered anew from 0; along the other axis all positions remain.
Layout without(const Layout& layout, int axis, std::string_view gone) {
  const int other = 1 - axis;
  Layout out;
  out.shape = layout.shape;
  out.outer = layout.outer;
  out.bits = layout.bits;
  int left = 0;
  // For each remaining base: the vector by which it moves along one of the two axes, and whether that axis is `axis`.
  std::vector<std::pair<uint64_t, bool>> kept;
  for (const Layout::Base& base : layout.bases) {
    const bool along = layout.part(base, axis) != 0;
    const bool stays = !along || gone.find(base.kind) == std::string_view::npos;
    if (!stays && base.kind != 'l') continue;
    out.bases.push_back({base.kind, 0});
    kept.emplace_back(!stays ? 0 : along ? uint64_t{1} << left++ : layout.part(base, other), stays && along);
  }
  out.bits[axis] = left;
  out.outer[axis] = {'r', 1};
  out.shape[axis] = int64_t{1} << left;
  for (size_t i = 0; i < kept.size(); ++i)
    out.bases[i].vector = kept[i].first << ((kept[i].second ? axis : other) == 0 ? 0 : out.bits[0]);
  return out;
}

// Sums along one axis of a tile whose other axis is distributed over lanes as well: by the instruction fold, then by
// cross. If waves share the axis, there is one sum for each wave.
TEST_P(Layouts, CrossesCombineTheLanesOfTheirAxis) {
  const auto [first, last] = seeds(160, 20261102);
  std::vector<Kernel> kernels;
  for (uint64_t seed = first; seed < last; ++seed) {
    std::mt19937_64 random(seed);
    Place place = random_place(random, 8);
    place.space.axes_apart = true;
    const std::vector<int64_t>& shape = place.space.shape;
    const int64_t size = elements(shape) * place.teams;
    const int axis = below(random, 2);
    Layout layout = small_layout(random, place.space, 32);
    while (layout.lanes() > 1 && layout.vector_axis() != axis) layout = small_layout(random, place.space, 32);
    const Layout partial = without(layout, axis, "r"), waves = without(partial, axis, "vl");
    Kernel kernel =
        kernel_by_hand(place.target, place.team, place.teams, 1, DType::f32, size, elements(waves.shape) * place.teams);
    kernel.tiles = {{DType::f32, layout, {}}, {DType::f32, partial, {}}, {DType::f32, waves, {}}};
    kernel.body.push_back(load_instr(0, rows_of(0, shape, 0)));
    kernel.body.push_back(fill_instr(1, 0));
    kernel.body.push_back(fold_instr(1, 0, Op::add));
    kernel.body.back().axes = {axis};
    kernel.body.push_back(cross_instr(2, 1, Op::add));
    kernel.body.back().axes = {axis};
    kernel.body.push_back(store_instr(2, rows_of(1, waves.shape, 0), false));
    ASSERT_TRUE(verify(kernel).ok()) << verify(kernel) << print(kernel);
    // Expects that the interpreter computes the same sums along an axis as this test does without layouts.
    std::vector<std::vector<double>> buffers(2);
    for (int64_t i = 0; i < size; ++i) buffers[0].push_back(static_cast<double>(i));
    buffers[1].resize(elements(waves.shape) * place.teams);
    ASSERT_TRUE(interpret(kernel, buffers).ok());
    const auto sum_of = [&](const std::vector<double>& of, const std::vector<int64_t>& extents, int64_t kept) {
      double sum = 0;
      for (size_t at = 0; at < static_cast<size_t>(elements(extents)); ++at) {
        const auto i = static_cast<int64_t>(at);
        if ((axis == 0 ? i % extents[1] : i / extents[1]) == kept) sum += of[at];
      }
      return sum;
    };
    for (int64_t kept = 0; kept < shape[1 - axis]; ++kept)
      ASSERT_EQ(sum_of(buffers[1], waves.shape, kept), sum_of(buffers[0], shape, kept)) << seed << "\n"
                                                                                        << print(kernel);
    kernels.push_back(std::move(kernel));
  }
  expect_right(kernels);
}

// Returns a kernel that converts a tile to one random layout after the other, and stores the tile after each
// conversion.
constexpr int kConverts = 12;
Kernel convert_kernel(uint64_t seed) {
  const DType kTypes[] = {DType::f32, DType::f64, DType::i32};
  std::mt19937_64 random(seed);
  const Place place = random_place(random, 4);
  const std::vector<int64_t>& shape = place.space.shape;
  const int64_t size = elements(shape) * place.teams;
  const DType dtype = kTypes[below(random, 3)];
  Kernel kernel = kernel_by_hand(place.target, place.team, place.teams, 1, dtype, size, (kConverts + 1) * size);
  kernel.buffers.push_back({"moving", dtype, {size}, Level::kShared, false, false, 0});
  for (TileId tile = 0; tile <= kConverts; ++tile) {
    kernel.tiles.push_back({dtype, small_layout(random, place.space, 16), {}});
    if (tile == 0) {
      kernel.body.push_back(load_instr(0, rows_of(0, shape, 0)));
    } else {
      const Moves moves =
          moves_between(kernel.tiles[tile - 1].layout, kernel.tiles[tile].layout, kernel.team, kernel.wave);
      const bool through = !within_waves(moves, kernel.wave) || below(random, 8) == 0;
      kernel.body.push_back(convert_instr(tile, tile - 1, through ? rows_of(2, shape, 0) : Slice()));
    }
    kernel.body.push_back(store_instr(tile, rows_of(1, shape, tile * size), false));
  }
  insert_barriers(kernel);
  return kernel;
}

TEST_P(Layouts, ConvertsKeepTheElements) {
  const auto [first, last] = seeds(200, 20261103);
  std::vector<Kernel> kernels;
  for (uint64_t seed = first; seed < last; ++seed) {
    Kernel kernel = convert_kernel(seed);
    ASSERT_TRUE(verify(kernel).ok()) << verify(kernel) << print(kernel);
    const int64_t size = elements(kernel.buffers[0].shape), all = elements(kernel.buffers[1].shape);
    std::vector<std::vector<double>> buffers(2);
    for (int64_t i = 0; i < size; ++i) buffers[0].push_back(static_cast<double>(i));
    buffers[1].resize(all);
    ASSERT_TRUE(interpret(kernel, buffers).ok());
    for (int64_t i = 0; i < all; ++i) ASSERT_EQ(buffers[1][i], static_cast<double>(i % size)) << print(kernel);
    kernels.push_back(std::move(kernel));
  }
  expect_right(kernels);
}

// A tile is copied to a swizzled buffer, by stores or asynchronously, and loaded from there in another layout. The
// simulator checks where elements lie, and that vectors are aligned there.
TEST_P(Layouts, SwizzledBuffersHoldTheElements) {
  const auto [first, last] = seeds(160, 20261104);
  std::vector<Kernel> kernels;
  for (uint64_t seed = first; seed < last; ++seed) {
    std::mt19937_64 random(seed);
    Place place = random_place(random, 8);
    std::vector<int64_t>& shape = place.space.shape;
    shape = {int64_t{4} << below(random, 3), int64_t{8} << below(random, 3)};
    if (elements(shape) > int64_t{8} * place.team) shape = {4, 8};
    const int64_t size = elements(shape) * place.teams;
    const auto layout = [&] {
      Layout out = small_layout(random, place.space, 32);
      while (out.vector_axis() == 0) out = small_layout(random, place.space, 32);
      return out;
    };
    const int bits = 1 + below(random, 2);
    Kernel kernel = kernel_by_hand(place.target, place.team, place.teams, 1, DType::f32, size, size);
    kernel.buffers.push_back(
        {"swizzled", DType::f32, {size}, Level::kShared, false, false, 0, {bits, 2, bits + below(random, 3)}});
    kernel.tiles = {{DType::f32, layout(), {}}, {DType::f32, layout(), {}}};
    const Slice x = rows_of(0, shape, 0), shared = rows_of(2, shape, 0);
    if (below(random, 2) == 0) {
      Instr copy;
      copy.op = InstrOp::kAsyncLoad;
      copy.args = {0};
      copy.slice = x;
      copy.into = shared;
      kernel.body = {copy, commit_instr(), wait_instr(0)};
    } else {
      kernel.body = {load_instr(0, x), store_instr(0, shared, false)};
    }
    kernel.body.push_back(load_instr(1, shared));
    kernel.body.push_back(store_instr(1, rows_of(1, shape, 0), false));
    insert_barriers(kernel);
    ASSERT_TRUE(verify(kernel).ok()) << verify(kernel) << print(kernel);
    std::vector<std::vector<double>> buffers(2);
    for (int64_t i = 0; i < size; ++i) buffers[0].push_back(static_cast<double>(i));
    buffers[1].resize(size);
    ASSERT_TRUE(interpret(kernel, buffers).ok());
    ASSERT_EQ(buffers[1], buffers[0]) << print(kernel);
    kernels.push_back(std::move(kernel));
  }
  expect_right(kernels);
}

// The simulator notices errors in the text that moves elements among threads. Each kernel has one error, of a kind
// that fits the kernel. Some errors change no value, because another lane or register has a copy, or because no
// thread reads another thread's values after a barrier.
TEST(BrokenMoves, AreCaught) {
  const std::vector<std::pair<std::regex, const char*>> breakages = {
      {std::regex("wl_shuffle_xor<(1|2|4|8)>"), "wl_shuffle_xor<$1 * 2>"},  // a lane takes the value of the wrong lane
      {std::regex("wl_shuffle<(\\d+)>\\((.*), (\\(?place.*)\\);"), "wl_shuffle<$1>($2, $3 ^ 1);"},
      {std::regex("(= \\(place & \\d+\\)) != 0 \\?"), "$1 == 0 ?"},  // a lane takes the element of the wrong register
      {std::regex("wl_barrier\\(\\);"), ";"},
      {std::regex(" \\^ "), " | "},  // combines coordinates and lanes by OR instead of XOR
  };
  const uint64_t first = testing::test_seed(20261105);
  const auto wanted = static_cast<size_t>(std::max<int64_t>(16, testing::scaled(64)));
  std::vector<Kernel> kernels;
  std::vector<std::string> broken;
  for (uint64_t seed = first; kernels.size() < wanted; ++seed) {
    const Kernel kernel = convert_kernel(seed);
    const std::string text = emit(kernel, testing::machine_named(kernel.target))->text;
    const auto& [what, with] = breakages[seed % breakages.size()];
    const std::ptrdiff_t places =
        std::distance(std::sregex_iterator(text.begin(), text.end(), what), std::sregex_iterator());
    if (places == 0) continue;
    const auto chosen = std::next(std::sregex_iterator(text.begin(), text.end(), what),
                                  static_cast<std::ptrdiff_t>(seed * 7919 % static_cast<uint64_t>(places)));
    kernels.push_back(kernel);
    broken.push_back(cat(text.substr(0, chosen->position()), chosen->format(with),
                         text.substr(chosen->position() + chosen->length())));
  }
  size_t caught = 0;
  const std::vector<std::string> messages =
      simulated_differences(kernels, [&](size_t kernel, const std::string&) { return broken[kernel]; });
  for (const std::string& message : messages) caught += message.empty() ? 0 : 1;
  std::printf("%zu of %zu caught\n", caught, messages.size());
  EXPECT_GE(static_cast<double>(caught), 0.6 * static_cast<double>(messages.size()));
}

INSTANTIATE_TEST_SUITE_P(Shards, Layouts, ::testing::Range(0, testing::kShards));

}  // namespace
}  // namespace wl
