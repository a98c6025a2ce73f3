// Random products whose rows or columns consist of several loops: convolutions with channels first or last, projections
// into attention heads, and products of bytes.
#pragma once

#include <string>
#include <utility>

#include "tests/unit/schedule/contract/shared_factor_products.h"
#include "tests/unit/schedule/tile_products.h"

namespace wl::testing {

// A convolution of images [batch, height, width, channels] (or with channels first), with zero padding or without
// padding.
struct Convolution {
  std::string dtype = "bf16";
  int64_t batch = 1, height = 8, width = 8, channels = 16, filters = 16, taps = 3, stride = 1, dilation = 1;
  bool padded = true, channels_last = true, work = false;
  std::string weights = {}, sum = {};  // dtypes of weights and result; empty: the image's dtype

  std::string text() const {
    const int64_t reach = (taps - 1) * dilation, low = padded ? reach / 2 : 0, high = padded ? reach - reach / 2 : 0;
    const int64_t rows = (height + low + high - reach - 1) / stride + 1,
                  columns = (width + low + high - reach - 1) / stride + 1;
    const auto typed = [&](const std::string& type, int64_t h, int64_t w, int64_t c) {
      return channels_last ? cat(type, "[", batch, ",", h, ",", w, ",", c, "]")
                           : cat(type, "[", batch, ",", c, ",", h, ",", w, "]");
    };
    const auto image = [&](int64_t h, int64_t w, int64_t c) { return typed(dtype, h, w, c); };
    const auto fill = [](const std::string& type) {
      return type == "u8" ? " uniform(0,255)" : type == "i8" ? " uniform(-128,127)" : " normal(0,1)";
    };
    const std::string weight = weights.empty() ? dtype : weights;
    const std::string out = typed(sum.empty() ? dtype : sum, rows, columns, filters),
                      axes = channels_last ? "[1,2]" : "[2,3]";
    const auto pads = [&](int64_t n) {
      return channels_last ? cat("[0,", n, ",", n, ",0]") : cat("[0,0,", n, ",", n, "]");
    };
    const std::string tap = cat(taps, ",", stride, ",", dilation);
    std::string windows = image(rows, columns, channels);
    windows.insert(windows.size() - 1, cat(",", taps, ",", taps));
    return cat("graph {\n  %0 = input \"x\" : ", image(height, width, channels), fill(dtype),
               "\n  %1 = input \"w\" : ", weight, "[", taps, ",", taps, ",", channels, ",", filters, "]", fill(weight),
               "\n  %2 = pad %0 low=", pads(low), " high=", pads(high),
               " value=0 : ", image(height + low + high, width + low + high, channels),
               "\n  %3 = window %2 axes=", axes, " params=[", tap, ",", tap, "] : ", windows,
               "\n  %4 = contract %3 %1 \"", channels_last ? "bhwcrs,rscf->bhwf" : "bchwrs,rscf->bfhw", "\" : ", out,
               "\n",
               work ? cat("  %5 = input \"z\" : ", out, " normal(0,1)\n  %6 = add %4 %5 : ", out,
                          "\n  %7 = tanh %6 : ", out, "\n  output \"y\" %7\n}")
                    : "  output \"y\" %4\n}");
  }
};

inline std::string product_in_runs(uint64_t seed) {
  Draw one(seed);
  const char* const dtypes[] = {"bf16", "f16", "bf16", "f32"};
  const std::string dtype = dtypes[one(0, 3)];
  if (one(0, 4) == 0) {  // a batched projection into attention heads
    const int m = one(20, 70), k = 8 * one(5, 20), heads = one(2, 9), each = one(8, 40);
    const std::string out = cat(dtype, "[3,", heads, ",", m, ",", each, "]");
    return cat("graph {\n  %0 = input \"x\" : ", dtype, "[3,", m, ",", k, "] normal(0,1)\n  %1 = input \"w\" : ", dtype,
               "[", k, ",", heads, ",", each, "] normal(0,1)\n  %2 = contract %0 %1 \"bmk,knd->bnmd\" : ", out,
               "\n  output \"y\" %2\n}");
  }
  Convolution made;
  made.dtype = dtype;
  made.batch = one(1, 2);
  made.height = one(5, 14);
  made.width = one(5, 14);
  made.channels = one(0, 2) == 0 ? one(20, 60) : 8 * one(4, 9);
  made.filters = one(0, 2) == 0 ? one(9, 60) : 8 * one(2, 9);
  made.taps = one(1, 3);
  made.stride = one(0, 3) == 0 ? 2 : 1;
  made.dilation = one(0, 4) == 0 ? 2 : 1;
  made.padded = one(0, 2) != 0;
  made.channels_last = one(0, 3) != 0;
  made.work = one(0, 2) == 0;
  return made.text();
}

// Products of u8 with i8 or of i8 with u8: convolutions, and the products of tile_products.h.
inline std::string byte_product(uint64_t seed) {
  Draw one(seed);
  if (one(0, 2) == 0) {
    Convolution made{"u8", 1, one(5, 12), one(5, 12), 4 * one(5, 20), one(20, 60)};
    made.channels_last = one(0, 3) != 0;
    made.weights = "i8";
    made.sum = "i32";
    if (one(0, 1) == 0) std::swap(made.dtype, made.weights);
    return made.text();
  }
  // Half of the products that tile_product() draws have operands of bf16; these are skipped.
  for (uint64_t next = seed * 16;; ++next)
    if (std::string text = tile_product(next); text.find("i32") != std::string::npos) return text;
}

inline std::vector<Point> matrix_points(const Space& space, size_t count, uint64_t seed) {
  if (axis_of(space.axes, kMatrix) == nullptr) return {};
  return points_with(space, count, seed, [](const Schedule& schedule) { return schedule[kMatrix] != kNoMatrix; });
}

// Draws points whose tiles of pixels continue in the next row of the image. For three of four values of `seed`, the
// points use a matrix instruction if the space offers one.
inline std::vector<Point> points_in_runs(const Space& space, size_t count, uint64_t seed) {
  const bool splits = std::any_of(space.axes.begin(), space.axes.end(), [](const Axis& axis) {
    return axis.choice == kRowRuns || axis.choice == kRowPlanes || axis.choice == kColumnRuns ||
           axis.choice == kColumnPlanes;
  });
  if (!splits) return {};
  const bool matrix = axis_of(space.axes, kMatrix) != nullptr && seed % 4 != 0;
  return points_with(space, count, seed, [matrix](const Schedule& schedule) {
    const bool split =
        rows_of_tile(schedule) > schedule[kTileRows] || columns_of_tile(schedule) > schedule[kTileColumns];
    return split && (!matrix || schedule[kMatrix] != kNoMatrix);
  });
}

}  // namespace wl::testing
