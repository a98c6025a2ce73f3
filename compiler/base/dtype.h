// Element types: one row each. To add one, add a row and its C spelling to the preludes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wl {

enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, b1, f8e4m3fn, f8e5m2 };
inline constexpr int kDTypeCount = 15;

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // name of the dtype in graph text
  int bytes;
  bool is_float;
  // The following facts are about floats; they are 0 for integers.
  double unit_roundoff;  // half the distance from 1 to the next number
  double smallest;       // the smallest positive denormal number
  double largest;        // the largest finite number
};

const DTypeInfo& info(DType dtype);
inline int size_of(DType dtype) {
  return info(dtype).bytes;
}
inline std::string_view name_of(DType dtype) {
  return info(dtype).name;
}
inline bool is_float(DType dtype) {
  return info(dtype).is_float;
}
// Whether conversions to `dtype` saturate, as those to eight-bit floats do: a finite number beyond the largest becomes
// the largest, and so does infinity where the dtype has none.
inline bool is_byte(DType dtype) {  // an integer of eight bits
  return dtype == DType::u8 || dtype == DType::i8;
}
inline bool saturates(DType dtype) {
  return dtype == DType::f8e4m3fn || dtype == DType::f8e5m2;
}
// A word is a u32 that holds neighbouring elements, as instructions that multiply several in a lane take them. How many
// elements of a dtype it has; 0: words have none of it. Of f32 it has one, of which tf32 is the upper 19 bits.
inline int elements_of_word(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16 ? 2 : is_byte(dtype) ? 4 : dtype == DType::f32 ? 1 : 0;
}
// The dtype in which products of the elements of two words are added up; nullopt: no instruction multiplies these.
std::optional<DType> sum_of_dot(DType a, DType b);
std::optional<DType> dtype_named(std::string_view name);

}  // namespace wl
