#include "compiler/base/dtype.h"

#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr DTypeInfo kDTypes[kDTypeCount] = {
    {DType::f64, "f64", 8, true, 0x1p-53}, {DType::f32, "f32", 4, true, 0x1p-24},
    {DType::f16, "f16", 2, true, 0x1p-11}, {DType::bf16, "bf16", 2, true, 0x1p-8},
    {DType::i64, "i64", 8, false, 0},      {DType::i32, "i32", 4, false, 0},
    {DType::i16, "i16", 2, false, 0},      {DType::i8, "i8", 1, false, 0},
    {DType::u64, "u64", 8, false, 0},      {DType::u32, "u32", 4, false, 0},
    {DType::u16, "u16", 2, false, 0},      {DType::u8, "u8", 1, false, 0},
    {DType::b1, "b1", 1, false, 0},
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

}  // namespace wl
