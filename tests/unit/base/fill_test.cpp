#include "compiler/base/fill.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

namespace wl {
namespace {

constexpr DType kAll[] = {DType::f64, DType::f32, DType::f16, DType::bf16,     DType::i64,
                          DType::i32, DType::i16, DType::i8,  DType::u64,      DType::u32,
                          DType::u16, DType::u8,  DType::b1,  DType::f8e4m3fn, DType::f8e5m2};

Fill integers(int64_t low, int64_t high) {
  Fill fill;
  fill.low = low;
  fill.high = high;
  return fill;
}

TEST(Fill, RangeAgreesWithValueBitForBitWhateverTheCut) {
  // The cases include denormals, zeros and overflows of f16.
  for (const auto& [dtype, stddev, mean] : [] {
         std::vector<std::tuple<DType, double, double>> out;
         for (DType dtype : kAll) out.emplace_back(dtype, 1.7, 0.25);
         for (DType dtype : {DType::f16, DType::bf16})
           for (const double stddev : {0.0, 1e-6, 3e-5, 5e4, 1e-39, 3e38}) out.emplace_back(dtype, stddev, 0.0);
         return out;
       }()) {
    Fill fill{.mean = mean, .stddev = stddev, .low = -3, .high = 97, .literal = {}};
    constexpr uint64_t kCount = 333;
    std::vector<char> whole(kCount * 8), expected(kCount * 8);
    for (uint64_t i = 0; i < kCount; ++i) store_element(dtype, expected.data(), i, fill_value(fill, dtype, 7, 2, i));
    for (uint64_t cut : {0, 1, 64, 100, 129, 333}) {
      fill_range(fill, dtype, 7, 2, 0, cut, whole.data());
      fill_range(fill, dtype, 7, 2, cut, kCount, whole.data() + cut * static_cast<uint64_t>(size_of(dtype)));
      EXPECT_EQ(std::memcmp(whole.data(), expected.data(), kCount * static_cast<uint64_t>(size_of(dtype))), 0)
          << name_of(dtype) << " cut at " << cut;
    }
  }
}

// Keys and recorded trials depend on the generated values, so these values must never change.
TEST(Fill, GoldenValues) {
  Fill fill;
  EXPECT_EQ(std::bit_cast<uint32_t>(static_cast<float>(fill_value(fill, DType::f32, 1, 0, 0))), 0xbf170360u);
  EXPECT_EQ(std::bit_cast<uint32_t>(static_cast<float>(fill_value(fill, DType::f32, 1, 3, 1000000007))), 0x3fa8e52fu);
  EXPECT_EQ(fill_value(integers(-50, 50), DType::i32, 9, 1, 5), -13);
}

TEST(Fill, NormalIsCentredScaledAndBounded) {
  Fill fill;
  fill.mean = 3;
  fill.stddev = 2;
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double v = fill_value(fill, DType::f64, 11, 0, static_cast<uint64_t>(i));
    ASSERT_LE(std::fabs(v - 3), 3.5 * 2);
    sum += v - 3;
    squares += (v - 3) * (v - 3);
  }
  EXPECT_NEAR(sum / kCount, 0, 0.03);
  EXPECT_NEAR(std::sqrt(squares / kCount), 2, 0.03);
}

TEST(Fill, SeedsStreamsAndIndicesDiffer) {
  Fill fill;
  const double base = fill_value(fill, DType::f64, 1, 1, 1);
  EXPECT_NE(base, fill_value(fill, DType::f64, 2, 1, 1));
  EXPECT_NE(base, fill_value(fill, DType::f64, 1, 2, 1));
  EXPECT_NE(base, fill_value(fill, DType::f64, 1, 1, 2));
}

TEST(Fill, IntegersCoverTheirRangeAndNothingElse) {
  const Fill fill = integers(-2, 3);
  std::vector<int> seen(5);
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto v = static_cast<int>(fill_value(fill, DType::i64, 5, 0, i));
    ASSERT_GE(v, -2);
    ASSERT_LT(v, 3);
    ++seen[static_cast<size_t>(v + 2)];
  }
  for (int n : seen) EXPECT_GT(n, 100);
  EXPECT_EQ(fill_value(integers(4, 4), DType::i32, 5, 0, 0), 4);  // an empty range yields its lower end
}

double saturated(DType dtype, double value) {
  uint64_t memory = 0;
  store_element(dtype, &memory, 0, value);
  return load_element(dtype, &memory, 0);
}

TEST(Fill, IntegersOfTheWholeRangeAreOftenExtreme) {
  for (const DType dtype : {DType::i16, DType::i32, DType::i64, DType::u16, DType::u32, DType::u64}) {
    const WholeRange whole = whole_fill(dtype);
    const Fill fill = integers(whole.low, whole.high);
    std::map<double, int> seen;
    for (uint64_t i = 0; i < 4000; ++i) ++seen[fill_value(fill, dtype, 5, 0, i)];
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double wanted :
         {saturated(dtype, -infinity), saturated(dtype, infinity), 0.0, 1.0, 2.0, 127.0, 128.0, 129.0})
      EXPECT_GT(seen[wanted], 0) << name_of(dtype) << " " << wanted;
    EXPECT_GT(seen.size(), 1000u) << name_of(dtype);
  }
  const WholeRange narrow = whole_fill(DType::i8), wide = whole_fill(DType::i64);
  EXPECT_EQ(narrow.low, -128);
  EXPECT_EQ(narrow.high, 128);
  EXPECT_EQ(wide.low, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(wide.high, std::numeric_limits<int64_t>::max());
}

TEST(Fill, LiteralIsTheValueItself) {
  Fill fill;
  fill.literal = {1.5, -2.25, 1e9};
  EXPECT_EQ(fill_value(fill, DType::f32, 1, 1, 1), -2.25);
  EXPECT_EQ(fill_value(fill, DType::i8, 1, 1, 2), 127);
  float out[3];
  fill_range(fill, DType::f32, 1, 1, 0, 3, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[2], 1e9f);
}

double through(DType dtype, double value) {
  uint64_t memory = 0;
  store_element(dtype, &memory, 0, value);
  return load_element(dtype, &memory, 0);
}

uint16_t bits_of(DType dtype, double value) {
  uint16_t memory = 0;
  store_element(dtype, &memory, 0, value);
  return memory;
}

TEST(Elements, EveryHalfPatternSurvives) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto pattern = static_cast<uint16_t>(bits);
      const double value = load_element(dtype, &pattern, 0);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(through(dtype, value)));
      } else {
        ASSERT_EQ(bits_of(dtype, value), pattern) << name_of(dtype) << " " << value;
      }
    }
  }
}

TEST(Elements, HalvesRoundToNearestEvenAndOverflow) {
  EXPECT_EQ(bits_of(DType::f16, 1.0), 0x3c00);
  EXPECT_EQ(bits_of(DType::f16, 1.0 + 0x1p-11), 0x3c00);      // a tie rounds to even
  EXPECT_EQ(bits_of(DType::f16, 1.0 + 3 * 0x1p-11), 0x3c02);  // a tie rounds to even, here upwards
  // The value is rounded once: rounding it to f32 first would drop the term 2^-40, and the result would be 0x3c00.
  EXPECT_EQ(bits_of(DType::f16, 1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(bits_of(DType::f16, 65504), 0x7bff);
  EXPECT_EQ(bits_of(DType::f16, 65519.99), 0x7bff);
  EXPECT_EQ(bits_of(DType::f16, 65520), 0x7c00);
  EXPECT_EQ(bits_of(DType::f16, -1e300), 0xfc00);
  EXPECT_EQ(bits_of(DType::f16, 0x1p-24), 0x0001);
  EXPECT_EQ(bits_of(DType::f16, 0x1p-25), 0x0000);
  EXPECT_EQ(bits_of(DType::f16, -0.0), 0x8000);
  EXPECT_EQ(bits_of(DType::bf16, 3.0), 0x4040);
  EXPECT_EQ(bits_of(DType::bf16, 3.4e38), 0x7f80);
  EXPECT_EQ(bits_of(DType::bf16, std::numeric_limits<float>::denorm_min()), 0x0000);
  for (int shift = -30; shift < 20; ++shift) {  // reference: f32 converted to bf16 by the usual bit manipulation
    const float f = std::ldexp(1.2345678f, shift);
    const auto word = std::bit_cast<uint32_t>(f);
    EXPECT_EQ(bits_of(DType::bf16, f), static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16));
  }
}

uint8_t byte_of(DType dtype, double value) {
  uint8_t memory = 0;
  store_element(dtype, &memory, 0, value);
  return memory;
}

TEST(Elements, EveryEightBitFloatSurvives) {
  for (DType dtype : {DType::f8e4m3fn, DType::f8e5m2}) {
    int nans = 0, infinities = 0;
    double largest = 0;
    for (int bits = 0; bits < 256; ++bits) {
      const auto pattern = static_cast<uint8_t>(bits);
      const double value = load_element(dtype, &pattern, 0);
      nans += std::isnan(value);
      infinities += std::isinf(value);
      if (std::isfinite(value)) largest = std::max(largest, value);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(through(dtype, value)));
      } else {
        EXPECT_EQ(byte_of(dtype, value), pattern) << name_of(dtype) << " " << value;
      }
    }
    EXPECT_EQ(nans, dtype == DType::f8e4m3fn ? 2 : 6);
    EXPECT_EQ(infinities, dtype == DType::f8e4m3fn ? 0 : 2);
    EXPECT_EQ(largest, info(dtype).largest);
    EXPECT_EQ(through(dtype, info(dtype).smallest), info(dtype).smallest);
    EXPECT_EQ(through(dtype, info(dtype).smallest * 0.5), 0);
    EXPECT_EQ(through(dtype, 1 + info(dtype).unit_roundoff), 1);
  }
}

TEST(Elements, EightBitFloatsRoundToNearestEvenAndSaturate) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(byte_of(DType::f8e4m3fn, 1.0), 0x38);
  EXPECT_EQ(byte_of(DType::f8e4m3fn, 1.0625), 0x38);   // a tie rounds to even
  EXPECT_EQ(byte_of(DType::f8e4m3fn, -1.1875), 0xba);  // a tie rounds to even, here away from zero
  EXPECT_EQ(byte_of(DType::f8e4m3fn, 464), 0x7e);
  EXPECT_EQ(byte_of(DType::f8e4m3fn, 1e300), 0x7e);
  EXPECT_EQ(byte_of(DType::f8e4m3fn, -inf), 0xfe);
  EXPECT_EQ(byte_of(DType::f8e5m2, 1.0), 0x3c);
  EXPECT_EQ(byte_of(DType::f8e5m2, 61440), 0x7b);
  EXPECT_EQ(byte_of(DType::f8e5m2, -1e300), 0xfb);
  EXPECT_EQ(byte_of(DType::f8e5m2, inf), 0x7c);
  EXPECT_EQ(byte_of(DType::f8e5m2, -0.0), 0x80);
}

TEST(Elements, IntegersSaturateAndRoundToEven) {
  EXPECT_EQ(through(DType::i8, 1000), 127);
  EXPECT_EQ(through(DType::i8, -1000), -128);
  EXPECT_EQ(through(DType::u8, -1), 0);
  EXPECT_EQ(through(DType::i32, 2.5), 2);
  EXPECT_EQ(through(DType::i32, 3.5), 4);
  EXPECT_EQ(through(DType::i32, std::nan("")), 0);
  int64_t big = 0;
  store_element(DType::i64, &big, 0, 1e300);
  EXPECT_EQ(big, std::numeric_limits<int64_t>::max());
  uint64_t ubig = 0;
  store_element(DType::u64, &ubig, 0, 1e300);
  EXPECT_EQ(ubig, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(through(DType::b1, 0.25), 1);
}

}  // namespace
}  // namespace wl
