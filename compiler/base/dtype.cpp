#include "compiler/base/dtype.h"

#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr DTypeInfo kDTypes[kDTypeCount] = {
    {DType::f64, "f64", 8, true, 0x1p-53, 0x1p-1074, 0x1.fffffffffffffp1023},
    {DType::f32, "f32", 4, true, 0x1p-24, 0x1p-149, 0x1.fffffep127},
    {DType::f16, "f16", 2, true, 0x1p-11, 0x1p-24, 65504},
    {DType::bf16, "bf16", 2, true, 0x1p-8, 0x1p-133, 0x1.fep127},
    {DType::i64, "i64", 8, false, 0, 0, 0},
    {DType::i32, "i32", 4, false, 0, 0, 0},
    {DType::i16, "i16", 2, false, 0, 0, 0},
    {DType::i8, "i8", 1, false, 0, 0, 0},
    {DType::u64, "u64", 8, false, 0, 0, 0},
    {DType::u32, "u32", 4, false, 0, 0, 0},
    {DType::u16, "u16", 2, false, 0, 0, 0},
    {DType::u8, "u8", 1, false, 0, 0, 0},
    {DType::b1, "b1", 1, false, 0, 0, 0},
    {DType::f8e4m3fn, "f8e4m3fn", 1, true, 0x1p-4, 0x1p-9, 448},
    {DType::f8e5m2, "f8e5m2", 1, true, 0x1p-3, 0x1p-16, 57344},
};

}  // namespace

const DTypeInfo& info(DType dtype) {
  const int row = static_cast<int>(dtype);
  WL_CHECK(row < kDTypeCount && kDTypes[row].dtype == dtype, "dtype row ", row);
  return kDTypes[row];
}

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeInfo& row : kDTypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

std::optional<DType> sum_of_dot(DType a, DType b) {
  if (a == DType::bf16 && b == DType::bf16) return DType::f32;
  if (is_byte(a) && is_byte(b) && a != b) return DType::i32;
  return std::nullopt;
}

}  // namespace wl
