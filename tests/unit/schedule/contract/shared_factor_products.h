// Random products large enough for matrix instructions that read shared memory (compiler/kernel/shared_factors.h).
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/space.h"
#include "tests/unit/schedule/groups.h"

namespace wl::testing {

// Draws integers between `from` and `to`, both included.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int operator()(int from, int to) { return from + static_cast<int>(random_() % (to - from + 1)); }

 private:
  std::mt19937_64 random_;
};

// Returns y = a b or, with `work`, y = tanh(a) b + c. `a` and `b` give the order of each operand's axes.
inline std::string shared_factor_product_of(const std::string& dtype, int m, int n, int k, const std::string& a = "mk",
                                            const std::string& b = "kn", int batch = 1, bool work = false) {
  const auto shape = [&](const std::string& axes) {
    std::string out = cat(dtype, "[");
    for (const char axis : axes)
      append(&out, out.back() == '[' ? "" : ",", axis == 'm' ? m : axis == 'n' ? n : axis == 'k' ? k : batch);
    return out + "]";
  };
  const std::string z = batch > 1 ? "z" : "", out = shape(z + "mn");
  std::string text = cat("graph {\n  %0 = input \"a\" : ", shape(z + a),
                         " normal(0,1)\n  %1 = input \"b\" : ", shape(z + b), " normal(0,1)\n");
  if (!work)
    return cat(text, "  %2 = contract %0 %1 \"", z, a, ",", z, b, "->", z, "mn\" : ", out, "\n  output \"y\" %2\n}");
  append(&text, "  %2 = tanh %0 : ", shape(z + a), "\n  %3 = contract %2 %1 \"", z, a, ",", z, b, "->", z,
         "mn\" : ", out, "\n  %4 = input \"c\" : ", out, " normal(0,1)\n  %5 = add %3 %4 : ", out,
         "\n  output \"y\" %5\n}");
  return text;
}

inline std::string shared_factor_product(uint64_t seed) {
  Draw one(seed);
  const auto extent = [&] { return one(0, 2) == 0 ? 64 * one(1, 3) : one(40, 200); };
  const int m = extent(), n = extent(), k = one(0, 1) == 0 ? 64 * one(1, 4) : one(40, 300);
  const std::string a = one(0, 2) == 0 ? "km" : "mk", b = one(0, 1) == 0 ? "nk" : "kn";
  return shared_factor_product_of(one(0, 1) == 0 ? "bf16" : "f16", m, n, k, a, b, one(0, 3) == 0 ? 2 : 1,
                                  one(0, 3) == 0);
}

// Draws products of u8 and i8 whose K allows steps of 128.
inline std::string shared_factor_byte_product(uint64_t seed) {
  Draw one(seed);
  const int m = one(0, 2) == 0 ? 64 * one(1, 3) : one(40, 160), n = one(0, 2) == 0 ? 64 * one(1, 2) : one(40, 160);
  const int k = one(0, 1) == 0 ? 128 * one(1, 3) : one(70, 400);
  const std::string a = one(0, 2) == 0 ? "km" : "mk", b = one(0, 1) == 0 ? "kn" : "nk";
  const auto shape = [&](const std::string& axes) {
    const auto extent = [&](char axis) { return axis == 'm' ? m : axis == 'n' ? n : k; };
    return cat("[", extent(axes[0]), ",", extent(axes[1]), "]");
  };
  const bool left_is_signed = one(0, 1) == 1;
  const std::string kinds[] = {"i8", "u8"}, fills[] = {"uniform(-128,127)", "uniform(0,255)"};
  return cat("graph {\n  %0 = input \"a\" : ", kinds[left_is_signed ? 0 : 1], shape(a), " ",
             fills[left_is_signed ? 0 : 1], "\n  %1 = input \"b\" : ", kinds[left_is_signed ? 1 : 0], shape(b), " ",
             fills[left_is_signed ? 1 : 0], "\n  %2 = contract %0 %1 \"", a, ",", b, "->mn\" : i32", shape("mn"),
             "\n  output \"y\" %2\n}");
}

// Draws products with few rows or columns and a K so large that several blocks may share it.
inline std::string deep_product(uint64_t seed) {
  Draw one(seed);
  const char* const dtypes[] = {"bf16", "f16", "f32"};
  const std::string a = one(0, 2) == 0 ? "km" : "mk", b = one(0, 1) == 0 ? "nk" : "kn";
  const int m = one(2, 70), n = one(2, 70), k = 256 * one(1, 3);
  return shared_factor_product_of(dtypes[one(0, 2)], m, n, k, a, b, one(0, 3) == 0 ? 2 : 1, one(0, 3) == 0);
}

// Draws products whose factors are copied unchanged and whose K is a whole number of steps. Targets without wgmma
// compute them with mma.sync.
inline std::string copied_product(uint64_t seed, int least = 48, int deepest = 448) {
  Draw one(seed);
  const int m = least + 16 * one(0, 9), n = least + 16 * one(0, 9), k = 64 * one(2, deepest / 64);
  const std::string a = one(0, 2) == 0 ? "km" : "mk", b = one(0, 1) == 0 ? "nk" : "kn";
  return shared_factor_product_of(one(0, 1) == 0 ? "bf16" : "f16", m, n, k, a, b, one(0, 3) == 0 ? 2 : 1);
}

// Draws products of f32 that allow TF32.
inline std::string tf32_product(uint64_t seed) {
  Draw one(seed);
  const int m = one(0, 1) == 0 ? 16 * one(1, 8) : one(20, 130), n = one(0, 1) == 0 ? 16 * one(1, 8) : one(20, 130);
  const int k = one(0, 1) == 0 ? 32 * one(1, 8) : one(10, 300);
  const std::string a = one(0, 1) == 0 ? "km" : "mk", b = one(0, 1) == 0 ? "nk" : "kn";
  std::string text = shared_factor_product_of("f32", m, n, k, a, b, one(0, 3) == 0 ? 2 : 1, one(0, 3) == 0);
  const size_t einsum = text.find("mn\" :");
  return text.insert(einsum + 3, " tf32");
}

// Draws products with more tiles than the tests' machine has multiprocessors.
inline std::string product_of_tiles(uint64_t seed) {
  return copied_product(seed, 144, 256);
}

// Draws products with more tiles than the tests' machine has multiprocessors, and with a K so large that several
// blocks may share the tiles of the last round.
inline std::string many_deep_tiles(uint64_t seed) {
  Draw one(seed);
  const int m = one(135, 250), n = one(135, 250);
  return shared_factor_product_of(one(0, 1) == 0 ? "bf16" : "f16", m, n, 256, one(0, 2) == 0 ? "km" : "mk",
                                  one(0, 1) == 0 ? "nk" : "kn", 1, one(0, 3) == 0);
}

// Draws products of plain matrices in wgmma's types. Tiles need not divide rows and columns, but steps divide K.
inline std::string product_of_boxes(uint64_t seed) {
  Draw one(seed);
  const std::string a = one(0, 2) == 0 ? "km" : "mk", b = one(0, 1) == 0 ? "nk" : "kn";
  return shared_factor_product_of(one(0, 1) == 0 ? "bf16" : "f16", 8 * one(5, 40), 8 * one(5, 40), 64 * one(2, 5), a,
                                  b);
}

// Returns up to `count` points for whose schedules wanted() returns true: first a seed of the space, if there is such
// a seed, then random legal points.
template <typename Wanted>
std::vector<Point> points_with(const Space& space, size_t count, uint64_t seed, Wanted wanted) {
  std::vector<Point> points;
  for (const Point& point : space.seeds)
    if (points.empty() && wanted(space.schedule(point))) points.push_back(point);
  std::mt19937_64 random(seed);
  for (int tries = 0; points.size() < count && tries < 200'000; ++tries) {
    Point point;
    for (const auto& axis : space.axes) point.push_back(static_cast<int>(random() % axis.values.size()));
    if (wanted(space.schedule(point)) && space.is_legal(point)) points.push_back(point);
  }
  return points;
}

inline std::vector<Point> shared_factor_points(const Space& space, size_t count, uint64_t seed) {
  return points_with(space, count, seed, [](const Schedule& schedule) {
    const std::optional<MatrixOp> matrix = matrix_of(schedule);
    return matrix && multiplies_in_memory(*matrix);
  });
}

inline std::vector<Point> alongside_points(const Space& space, size_t count, uint64_t seed) {
  return points_with(space, count, seed, [](const Schedule& schedule) { return schedule[kCopyingWaves] > 0; });
}

// Returns points that multiply from shared memory and whose waves copy boxes (TMA). These choices are set in random
// points, because only one of a hundred thousand random points has all of them.
inline std::vector<Point> box_points(const Space& space, size_t count, uint64_t seed) {
  std::vector<Point> points;
  std::mt19937_64 random(seed);
  for (const Point& point : shared_factor_points(space, 16 * count, seed)) {
    Schedule schedule = space.schedule(point);
    for (const auto& [choice, value] : {std::pair{kTma, int64_t{1}},
                                        {kAsyncCopies, int64_t{1}},
                                        {kCopyingWaves, int64_t{1} << random() % 3},
                                        {kStages, static_cast<int64_t>(2 + random() % 3)},
                                        {kPersistent, static_cast<int64_t>(random() % 2)},
                                        {kReductionBlocks, int64_t{1}},
                                        {kMinBlocks, int64_t{1}}})
      if (axis_of(space.axes, choice) != nullptr) schedule.set(choice, value);
    Point boxes = point_of(space, schedule);
    if (points.size() < count && !boxes.empty() && space.is_legal(boxes)) points.push_back(std::move(boxes));
  }
  return points;
}

// Returns points whose blocks compute several tiles in turn. Every other point has waves that only copy.
inline std::vector<Point> persistent_points(const Space& space, size_t count, uint64_t seed) {
  std::vector<Point> points;
  for (size_t i = 0; i < count; ++i)
    for (Point& point : points_with(space, 1, seed + i, [i](const Schedule& schedule) {
           return schedule[kPersistent] > 0 && (schedule[kCopyingWaves] > 0) == (i % 2 == 0);
         }))
      points.push_back(std::move(point));
  return points;
}

// Returns alternately a point with waves that only copy (if the space has any), and a point without such waves that
// uses a matrix instruction.
inline std::vector<Point> last_round_points(const Space& space, size_t count, uint64_t seed) {
  const bool copies = axis_of(space.axes, kCopyingWaves) != nullptr;
  const bool matrices = axis_of(space.axes, kMatrix) != nullptr;
  std::vector<Point> points;
  for (size_t i = 0; i < count; ++i)
    for (Point& point : points_with(space, 1, seed + i, [&](const Schedule& schedule) {
           const bool first = i % 2 == 0;
           return schedule[kReductionBlocks] > 1 && schedule[kPersistent] > 0 &&
                  (!copies || (schedule[kCopyingWaves] > 0) == first) &&
                  (!matrices || first || schedule[kMatrix] != kNoMatrix);
         }))
      points.push_back(std::move(point));
  return points;
}

inline std::vector<Point> shared_points(const Space& space, size_t count, uint64_t seed) {
  return points_with(space, count, seed, [](const Schedule& schedule) { return schedule[kReductionBlocks] > 1; });
}

}  // namespace wl::testing
