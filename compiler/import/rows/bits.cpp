// Bit operations on integers, and bitcasts. Bitcasts are supported for constants, and from integers to integers.
#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {

namespace {

std::optional<DType> unsigned_of(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return DType::u8;
    case DType::i16:
      return DType::u16;
    case DType::i32:
      return DType::u32;
    case DType::i64:
      return DType::u64;
    default:
      return std::nullopt;
  }
}

}  // namespace

T bit_shift(Call& c) {
  const std::string direction = c.attr_text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    c.fail("attribute direction is '", direction, "', not LEFT or RIGHT");
  const Op op = direction == "LEFT" ? Op::shift_left : Op::shift_right;
  const T x = c.in(0), count = c.in(1);
  const auto plain = unsigned_of(x.dtype());
  if (!plain) return apply(op, {x, count});
  // Read as an unsigned number, a negative shift count is large, so all bits are shifted out.
  if (op == Op::shift_left) return cast(apply(op, {cast(x, *plain), cast(count, *plain)}), x.dtype());
  const T negative = apply(Op::lt, {x, 0.0});
  const T rest = cast(apply(op, {cast(select(negative, -x - 1.0, x), *plain), cast(count, *plain)}), x.dtype());
  return select(negative, -rest - 1.0, rest);
}

// In two's complement of any width, ~x is -x - 1.
T bitwise_not(Call& c) {
  return -c.in(0) - 1.0;
}

T bit_cast(Call& c) {
  const Literal* x = c.literal(0);
  const DType from = c.dtype(0), to = c.dtype_attr("to", from);
  if (size_of(to) != size_of(from)) {
    c.missing("from ", name_of(from), " to ", name_of(to), ": their elements have different sizes");
  }
  // A cast between integers of the same size wraps and so keeps the bits.
  if (x == nullptr && !is_float(from) && !is_float(to) && to != DType::b1) return cast(c.in(0), to);
  if (x == nullptr) c.missing("input 0 must be constant, unless integers become others");
  std::vector<double> values;
  for (const double value : x->values) {
    uint64_t memory = 0;
    store_element(x->dtype, &memory, 0, value);
    values.push_back(load_element(to, &memory, 0));
  }
  return c.set_literal(0, make_literal(to, x->shape, std::move(values)));
}

}  // namespace wl::onnx_import
