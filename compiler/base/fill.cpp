#include "compiler/base/fill.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/base/splitmix.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

uint64_t key_of(uint64_t seed, uint64_t stream) {
  return mix(mix(seed + kGolden) + (stream + 1) * kGolden);
}

[[gnu::always_inline]] inline uint64_t hash_at(uint64_t key, uint64_t index) {
  return mix(key + (index + 1) * kGolden);
}

// Returns twice the sum of the four 16-bit uniform numbers in `hash`, shifted so that its mean is 0. The result has 19
// bits and the standard deviation sqrt(4/3 * (2^32 - 1)).
[[gnu::always_inline]] inline int32_t centred(uint64_t hash) {
  const uint64_t pairs = (hash & 0x0000ffff0000ffff) + ((hash >> 16) & 0x0000ffff0000ffff);
  const auto sum = static_cast<int32_t>(static_cast<uint32_t>(pairs) + static_cast<uint32_t>(pairs >> 32));
  return 2 * sum - 4 * 65535;
}

// Returns the factor that scales the result of centred() to the fill's standard deviation. It is rounded to 32
// significant bits, so that its product with that result is exact in a double. A compiler that contracts multiply and
// add then cannot change the generated numbers.
double scale_of(const Fill& fill) {
  const double scale = fill.stddev / std::sqrt(4.0 / 3.0 * 4294967295.0);
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 32)), exponent - 32);
}

// Number of elements that are generated at a time (a block). It is a constant because g++ -O2 vectorises only loops
// with a constant trip count.
constexpr int kBlock = 64;

[[gnu::always_inline]] inline void normal_block(uint64_t key, uint64_t begin, double mean, double scale, float* out) {
  for (int i = 0; i < kBlock; ++i)
    out[i] = static_cast<float>(mean + scale * centred(hash_at(key, begin + static_cast<uint64_t>(i))));
}

void normal_blocks_any(uint64_t key, uint64_t begin, uint64_t blocks, double mean, double scale, float* out) {
  for (uint64_t b = 0; b < blocks; ++b) normal_block(key, begin + b * kBlock, mean, scale, out + b * kBlock);
}

#if defined(__x86_64__) && !defined(__clang__)  // not with clang, as clang 14 lacks the attribute prefer-vector-width
// Does the same as normal_blocks_any(), but for processors with a vector multiplication of 64-bit lanes. Both functions
// compute the same bits.
[[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]] void normal_blocks_avx512(
    uint64_t key, uint64_t begin, uint64_t blocks, double mean, double scale, float* out) {
  for (uint64_t b = 0; b < blocks; ++b) normal_block(key, begin + b * kBlock, mean, scale, out + b * kBlock);
}
#endif

void normal_blocks(uint64_t key, uint64_t begin, uint64_t blocks, double mean, double scale, float* out) {
#if defined(__x86_64__) && !defined(__clang__)  // not with clang, as clang 14 lacks the attribute prefer-vector-width
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return normal_blocks_avx512(key, begin, blocks, mean, scale, out);
#endif
  normal_blocks_any(key, begin, blocks, mean, scale, out);
}

// A float format of 8 or 16 bits: a sign, an exponent, and `mantissa` stored bits of the fraction. The largest bit
// patterns of the magnitude stand for infinity and NaN.
struct SmallFloat {
  uint32_t sign;  // the sign bit; the bits below it are the magnitude
  int mantissa;
  int emin;           // exponent of the smallest normal number of the format
  uint32_t overflow;  // bit pattern that stands for every magnitude that overflows
  uint32_t nan;
  uint32_t first_nan;  // smallest bit pattern that is NaN; every larger one is NaN too
  bool has_infinity;   // whether the bit pattern before first_nan is infinity
};
constexpr SmallFloat kF16{0x8000, 10, -14, 0x7c00, 0x7e00, 0x7c01, true};
constexpr SmallFloat kBf16{0x8000, 7, -126, 0x7f80, 0x7fc0, 0x7f81, true};
constexpr SmallFloat kF8E4M3FN{0x80, 3, -6, 0x7e, 0x7f, 0x7f, false};
constexpr SmallFloat kF8E5M2{0x80, 2, -14, 0x7b, 0x7e, 0x7d, true};

// Encodes a double in a small float format, rounded to nearest even.
uint32_t encode(double value, const SmallFloat& to) {
  const uint32_t sign = std::signbit(value) ? to.sign : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | to.nan;
  if (std::isinf(value)) return sign | (to.has_infinity ? to.first_nan - 1 : to.overflow);
  const int exponent = magnitude == 0 ? to.emin : std::max(std::ilogb(magnitude), to.emin);
  if (exponent - to.emin > static_cast<int>(to.sign >> to.mantissa)) return sign | to.overflow;
  const auto quanta = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, to.mantissa - exponent)));
  // The leading one of a normal number adds 1 to the exponent field. A fraction that rounds up to 2 adds another 1.
  const uint32_t bits = (static_cast<uint32_t>(exponent - to.emin) << to.mantissa) + quanta;
  return sign | std::min(bits, to.overflow);
}

// Encodes a block of kBlock values in a 16-bit format, with the same results as encode(). If all results are normal
// numbers, vectorised arithmetic on the bits of the doubles encodes them; else encode() is called for every element of
// the block.
void encode_block(const double* values, const SmallFloat& to, uint16_t* out) {
  const int shift = 52 - to.mantissa;
  const auto rebias = static_cast<uint64_t>(1023 + to.emin - 1) << to.mantissa;
  const uint64_t least = uint64_t{1} << to.mantissa, normals = to.overflow - least;
  uint64_t others = 0;
  for (int i = 0; i < kBlock; ++i) {
    const auto bits = std::bit_cast<uint64_t>(values[i]);
    const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
    // Adding `half` before the low bits are shifted out rounds to the nearest number, and ties to even.
    const uint64_t half = (uint64_t{1} << (shift - 1)) - 1 + (magnitude >> shift & 1);
    const uint64_t code = ((magnitude + half) >> shift) - rebias;
    others |= static_cast<uint64_t>(code - least >= normals);
    out[i] = static_cast<uint16_t>(code | bits >> 63 << 15);
  }
  if (others != 0)
    for (int i = 0; i < kBlock; ++i) out[i] = static_cast<uint16_t>(encode(values[i], to));
}

void normal_halves(uint64_t key, uint64_t begin, uint64_t blocks, double mean, double scale, const SmallFloat& to,
                   uint16_t* out) {
  double values[kBlock];
  for (uint64_t b = 0; b < blocks; ++b) {
    for (int i = 0; i < kBlock; ++i)
      values[i] = mean + scale * centred(hash_at(key, begin + b * kBlock + static_cast<uint64_t>(i)));
    encode_block(values, to, out + b * kBlock);
  }
}

double decode(uint32_t bits, const SmallFloat& from) {
  const uint32_t magnitude = bits & (from.sign - 1);
  const auto field = static_cast<int>(magnitude >> from.mantissa);
  const auto fraction = static_cast<int>(magnitude & ((1u << from.mantissa) - 1));
  double value = 0;
  if (magnitude >= from.first_nan)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (magnitude + 1 == from.first_nan && from.has_infinity)
    value = std::numeric_limits<double>::infinity();
  else if (field == 0)
    value = std::ldexp(fraction, from.emin - from.mantissa);
  else
    value = std::ldexp(fraction + (1 << from.mantissa), field - 1 + from.emin - from.mantissa);
  return bits & from.sign ? -value : value;
}

template <typename T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  // The comparison is >=, since the largest number of a 64-bit type, as a double, becomes 2^63 or 2^64, which the type
  // no longer contains.
  if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(rounded);
}

template <typename T>
T at(const void* data, uint64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void put(void* data, uint64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * sizeof(T), &value, sizeof(T));
}

double rounded_to(DType dtype, double value) {
  uint64_t memory = 0;
  store_element(dtype, &memory, 0, value);
  return load_element(dtype, &memory, 0);
}

// Returns a number at the limits of integer arithmetic, which the bits of `hash` select: the least or the largest
// number of the dtype, or a number near a power of two. The latter is 2^n - 1, 2^n, 2^n + 1 or 2^n + 2, or the negative
// of one of these, for some n below the number of bits of the dtype. A number beyond the dtype's range becomes the
// nearest one within; where a double cannot represent a neighbour of 2^n, the result is 2^n itself.
double extreme_of(DType dtype, uint64_t hash) {
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  const auto n = static_cast<int>(hash % static_cast<uint64_t>(bits));
  const double power = std::ldexp(1.0, n) + static_cast<double>(static_cast<int64_t>(hash >> 8 & 3) - 1);
  const bool negative = hash >> 16 & 1, last = (hash >> 17 & 3) == 0;
  const double magnitude = last ? std::numeric_limits<double>::infinity() : power;
  return rounded_to(dtype, negative ? -magnitude : magnitude);
}

bool is_whole(const Fill& fill, DType dtype) {
  const WholeRange whole = whole_fill(dtype);
  return size_of(dtype) > 1 && fill.low == whole.low && fill.high == whole.high;
}

// `whole` is is_whole(fill, dtype); the caller computes it once, since it is the same for all elements.
double integer_value(const Fill& fill, DType dtype, bool whole, uint64_t hash) {
  if (whole && hash & 1) return extreme_of(dtype, mix(hash));
  const uint64_t range = fill.high > fill.low ? static_cast<uint64_t>(fill.high) - static_cast<uint64_t>(fill.low) : 1;
  const auto offset = static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * range) >> 64);
  return rounded_to(dtype, static_cast<double>(static_cast<int64_t>(static_cast<uint64_t>(fill.low) + offset)));
}

}  // namespace

WholeRange whole_fill(DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double high = rounded_to(dtype, infinity);
  return {static_cast<int64_t>(rounded_to(dtype, -infinity)),
          high >= 0x1p63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(high) + 1};
}

double load_element(DType dtype, const void* data, uint64_t index) {
  switch (dtype) {
    case DType::f64:
      return at<double>(data, index);
    case DType::f32:
      return at<float>(data, index);
    case DType::f16:
      return decode(at<uint16_t>(data, index), kF16);
    case DType::bf16:
      return decode(at<uint16_t>(data, index), kBf16);
    case DType::i64:
      return static_cast<double>(at<int64_t>(data, index));
    case DType::i32:
      return at<int32_t>(data, index);
    case DType::i16:
      return at<int16_t>(data, index);
    case DType::i8:
      return at<int8_t>(data, index);
    case DType::u64:
      return static_cast<double>(at<uint64_t>(data, index));
    case DType::u32:
      return at<uint32_t>(data, index);
    case DType::u16:
      return at<uint16_t>(data, index);
    case DType::u8:
      return at<uint8_t>(data, index);
    case DType::b1:
      return at<uint8_t>(data, index) != 0;
    case DType::f8e4m3fn:
      return decode(at<uint8_t>(data, index), kF8E4M3FN);
    case DType::f8e5m2:
      return decode(at<uint8_t>(data, index), kF8E5M2);
  }
  WL_CHECK(false, "dtype row ", static_cast<int>(dtype));
}

void store_element(DType dtype, void* data, uint64_t index, double value) {
  switch (dtype) {
    case DType::f64:
      return put(data, index, value);
    case DType::f32:
      return put(data, index, static_cast<float>(value));
    case DType::f16:
      return put(data, index, static_cast<uint16_t>(encode(value, kF16)));
    case DType::bf16:
      return put(data, index, static_cast<uint16_t>(encode(value, kBf16)));
    case DType::i64:
      return put(data, index, saturate<int64_t>(value));
    case DType::i32:
      return put(data, index, saturate<int32_t>(value));
    case DType::i16:
      return put(data, index, saturate<int16_t>(value));
    case DType::i8:
      return put(data, index, saturate<int8_t>(value));
    case DType::u64:
      return put(data, index, saturate<uint64_t>(value));
    case DType::u32:
      return put(data, index, saturate<uint32_t>(value));
    case DType::u16:
      return put(data, index, saturate<uint16_t>(value));
    case DType::u8:
      return put(data, index, saturate<uint8_t>(value));
    case DType::b1:
      return put<uint8_t>(data, index, value != 0);
    case DType::f8e4m3fn:
      return put(data, index, static_cast<uint8_t>(encode(value, kF8E4M3FN)));
    case DType::f8e5m2:
      return put(data, index, static_cast<uint8_t>(encode(value, kF8E5M2)));
  }
  WL_CHECK(false, "dtype row ", static_cast<int>(dtype));
}

double fill_value(const Fill& fill, DType dtype, uint64_t seed, uint64_t stream, uint64_t index) {
  if (!fill.literal.empty()) {
    WL_CHECK(index < fill.literal.size(), "literal of ", fill.literal.size(), " values has no element ", index);
    return rounded_to(dtype, fill.literal[index]);
  }
  const uint64_t hash = hash_at(key_of(seed, stream), index);
  if (is_float(dtype)) return rounded_to(dtype, fill.mean + scale_of(fill) * centred(hash));
  if (dtype == DType::b1) return static_cast<double>(hash >> 63);
  return integer_value(fill, dtype, is_whole(fill, dtype), hash);
}

void fill_range(const Fill& fill, DType dtype, uint64_t seed, uint64_t stream, uint64_t begin, uint64_t end,
                void* out) {
  uint64_t done = begin;
  if (const bool halves = dtype == DType::bf16 || dtype == DType::f16;
      (dtype == DType::f32 || halves) && fill.literal.empty() && end > begin) {
    const uint64_t blocks = (end - begin) / kBlock, key = key_of(seed, stream);
    if (halves)
      normal_halves(key, begin, blocks, fill.mean, scale_of(fill), dtype == DType::f16 ? kF16 : kBf16,
                    static_cast<uint16_t*>(out));
    else
      normal_blocks(key, begin, blocks, fill.mean, scale_of(fill), static_cast<float*>(out));
    done = begin + blocks * kBlock;
  }
  if (!is_float(dtype) && dtype != DType::b1 && fill.literal.empty()) {
    const uint64_t key = key_of(seed, stream);
    const bool whole = is_whole(fill, dtype);
    for (; done < end; ++done)
      store_element(dtype, out, done - begin, integer_value(fill, dtype, whole, hash_at(key, done)));
  }
  for (uint64_t i = done; i < end; ++i) store_element(dtype, out, i - begin, fill_value(fill, dtype, seed, stream, i));
}

}  // namespace wl
