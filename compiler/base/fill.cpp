#include "compiler/base/fill.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

// The finaliser of splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
[[gnu::always_inline]] inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t key_of(uint64_t seed, uint64_t stream) {
  return mix(mix(seed + kGolden) + (stream + 1) * kGolden);
}

[[gnu::always_inline]] inline uint64_t hash_at(uint64_t key, uint64_t index) {
  return mix(key + (index + 1) * kGolden);
}

// Twice the sum of four 16-bit uniforms, centred: 19 bits, standard deviation sqrt(4/3 * (2^32 - 1)).
[[gnu::always_inline]] inline int32_t centred(uint64_t hash) {
  const uint64_t pairs = (hash & 0x0000ffff0000ffff) + ((hash >> 16) & 0x0000ffff0000ffff);
  const auto sum = static_cast<int32_t>(static_cast<uint32_t>(pairs) + static_cast<uint32_t>(pairs >> 32));
  return 2 * sum - 4 * 65535;
}

// Rounded to 32 significant bits, so that its product with `centred` is exact in a double and a compiler that contracts
// multiply and add cannot change a bit of the result.
double scale_of(const Fill& fill) {
  const double scale = fill.stddev / std::sqrt(4.0 / 3.0 * 4294967295.0);
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 32)), exponent - 32);
}

constexpr int kBlock = 64;  // a constant trip count is what g++ -O2 wants before it vectorises

[[gnu::always_inline]] inline void normal_block(uint64_t key, uint64_t begin, double mean, double scale, float* out) {
  for (int i = 0; i < kBlock; ++i)
    out[i] = static_cast<float>(mean + scale * centred(hash_at(key, begin + static_cast<uint64_t>(i))));
}

void normal_blocks_any(uint64_t key, uint64_t begin, uint64_t blocks, double mean, double scale, float* out) {
  for (uint64_t b = 0; b < blocks; ++b) normal_block(key, begin + b * kBlock, mean, scale, out + b * kBlock);
}

#if defined(__x86_64__) && !defined(__clang__)  // clang 14 cannot prefer a vector width
// The same loop for machines that multiply 64-bit lanes; every build of it computes the same bits.
[[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]] void normal_blocks_avx512(
    uint64_t key, uint64_t begin, uint64_t blocks, double mean, double scale, float* out) {
  for (uint64_t b = 0; b < blocks; ++b) normal_block(key, begin + b * kBlock, mean, scale, out + b * kBlock);
}
#endif

void normal_blocks(uint64_t key, uint64_t begin, uint64_t blocks, double mean, double scale, float* out) {
#if defined(__x86_64__) && !defined(__clang__)  // clang 14 cannot prefer a vector width
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return normal_blocks_avx512(key, begin, blocks, mean, scale, out);
#endif
  normal_blocks_any(key, begin, blocks, mean, scale, out);
}

// A 16-bit float with `mantissa` stored bits and smallest normal exponent `emin`; round to nearest even.
uint16_t encode_half(double value, int mantissa, int emin) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const auto infinity = static_cast<uint16_t>((0x7fff >> mantissa) << mantissa);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | 1 << (mantissa - 1));
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity);
  const int exponent = magnitude == 0 ? emin : std::max(std::ilogb(magnitude), emin);
  if (exponent > 1 - emin) return static_cast<uint16_t>(sign | infinity);
  const auto quanta = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, mantissa - exponent)));
  // Normal numbers carry their leading one into the exponent field, and so does a rounding overflow (up to infinity).
  const uint32_t bits = (static_cast<uint32_t>(exponent - emin) << mantissa) + quanta;
  return static_cast<uint16_t>(sign | std::min<uint32_t>(bits, infinity));
}

double decode_half(uint16_t bits, int mantissa, int emin) {
  const int field = (bits & 0x7fff) >> mantissa;
  const int fraction = bits & ((1 << mantissa) - 1);
  double magnitude = 0;
  if (field == 0x7fff >> mantissa)
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (field == 0)
    magnitude = std::ldexp(fraction, emin - mantissa);
  else
    magnitude = std::ldexp(fraction + (1 << mantissa), field - 1 + emin - mantissa);
  return bits & 0x8000 ? -magnitude : magnitude;
}

constexpr int kF16Mantissa = 10, kF16Emin = -14;
constexpr int kBf16Mantissa = 7, kBf16Emin = -126;

template <typename T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  // The bound of a 64-bit type rounds up to 2^63 or 2^64, which is already out of range: hence >=.
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

}  // namespace

double load_element(DType dtype, const void* data, uint64_t index) {
  switch (dtype) {
    case DType::f64:
      return at<double>(data, index);
    case DType::f32:
      return at<float>(data, index);
    case DType::f16:
      return decode_half(at<uint16_t>(data, index), kF16Mantissa, kF16Emin);
    case DType::bf16:
      return decode_half(at<uint16_t>(data, index), kBf16Mantissa, kBf16Emin);
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
      return put(data, index, encode_half(value, kF16Mantissa, kF16Emin));
    case DType::bf16:
      return put(data, index, encode_half(value, kBf16Mantissa, kBf16Emin));
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
  const uint64_t range = fill.high > fill.low ? static_cast<uint64_t>(fill.high) - static_cast<uint64_t>(fill.low) : 1;
  const auto offset = static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * range) >> 64);
  return rounded_to(dtype, static_cast<double>(static_cast<int64_t>(static_cast<uint64_t>(fill.low) + offset)));
}

void fill_range(const Fill& fill, DType dtype, uint64_t seed, uint64_t stream, uint64_t begin, uint64_t end,
                void* out) {
  uint64_t done = begin;
  if (dtype == DType::f32 && fill.literal.empty() && end > begin) {
    const uint64_t blocks = (end - begin) / kBlock;
    normal_blocks(key_of(seed, stream), begin, blocks, fill.mean, scale_of(fill), static_cast<float*>(out));
    done = begin + blocks * kBlock;
  }
  for (uint64_t i = done; i < end; ++i) store_element(dtype, out, i - begin, fill_value(fill, dtype, seed, stream, i));
}

}  // namespace wl
