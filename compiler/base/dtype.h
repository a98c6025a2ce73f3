// Element types. Each is one row of the table in dtype.cpp. To add a type, add its name to the enum, its row to the
// table and its C spelling to the preludes (the texts that precede generated kernels).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wl {

enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, b1, f8e4m3fn, f8e5m2 };
inline constexpr int kDTypeCount = 15;

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // the dtype's name in the text of graphs
  int bytes;
  bool is_float;
  // The following fields describe floats; they are 0 for integers and b1.
  double unit_roundoff;  // half the distance from 1 to the next number of the dtype
  double smallest;       // the smallest positive denormal number of the dtype
  double largest;        // the largest finite number of the dtype
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
inline bool is_byte(DType dtype) {  // whether `dtype` is an integer of eight bits
  return dtype == DType::u8 || dtype == DType::i8;
}
// Whether conversions to the float type `dtype` saturate, as conversions to eight-bit floats do: a finite number beyond
// the largest one becomes the largest one, and so does infinity if the dtype has no infinity.
inline bool saturates(DType dtype) {
  return dtype == DType::f8e4m3fn || dtype == DType::f8e5m2;
}
// Returns how many elements of `dtype` a word holds; 0 if words cannot hold this dtype. A word is a u32 that holds
// neighbouring elements: the operand of instructions that multiply several elements in one lane. A word holds one f32;
// tf32 is the upper 19 bits of an f32.
inline int elements_of_word(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16 ? 2 : is_byte(dtype) ? 4 : dtype == DType::f32 ? 1 : 0;
}
// Returns the dtype in which the products of the elements of a word of `a` and a word of `b` are added up; nullopt if
// no instruction multiplies words of these dtypes.
std::optional<DType> sum_of_dot(DType a, DType b);
std::optional<DType> dtype_named(std::string_view name);

}  // namespace wl
