#include "compiler/import/literal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/import/typed_field.h"
#include "onnx/onnx_pb.h"

namespace wl::onnx_import {
namespace {

using onnx::TensorProto;

// Reads the elements of a TensorProto one by one, from whichever of its fields holds them.
class TensorReader {
 public:
  TensorReader(const TensorProto& tensor, DType dtype) : tensor_(tensor), dtype_(dtype) {}

  // Returns the number of stored elements; -1 if the length of the raw bytes is no multiple of the element size.
  int64_t size() const {
    if (tensor_.has_raw_data()) {
      const auto bytes = static_cast<int64_t>(tensor_.raw_data().size());
      return bytes % size_of(dtype_) == 0 ? bytes / size_of(dtype_) : -1;
    }
    return with_typed_field(tensor_, dtype_, [](const auto& field) { return static_cast<int64_t>(field.size()); });
  }

  double at(int64_t index) const {
    if (tensor_.has_raw_data()) return load_element(dtype_, tensor_.raw_data().data(), static_cast<uint64_t>(index));
    return with_typed_field(tensor_, dtype_, [&](const auto& field) {
      const auto value = field.Get(static_cast<int>(index));
      switch (dtype_) {
        case DType::f32:
        case DType::f64:
        case DType::i64:
        case DType::u32:
        case DType::u64:
          return static_cast<double>(value);
        case DType::f16:
        case DType::bf16:
        case DType::f8e4m3fn:
        case DType::f8e5m2: {
          const auto bits = static_cast<uint16_t>(value);
          return load_element(dtype_, &bits, 0);
        }
        default: {  // values beyond the range of b1 or a narrow integer saturate
          uint64_t memory = 0;
          store_element(dtype_, &memory, 0, static_cast<double>(value));
          return load_element(dtype_, &memory, 0);
        }
      }
    });
  }

  // Returns the bits of an element; the elements must be 64-bit integers.
  uint64_t bits_at(int64_t index) const {
    if (tensor_.has_raw_data()) {
      uint64_t bits = 0;
      std::memcpy(&bits, tensor_.raw_data().data() + 8 * index, sizeof bits);
      return bits;
    }
    return with_typed_field(
        tensor_, dtype_, [&](const auto& field) { return static_cast<uint64_t>(field.Get(static_cast<int>(index))); });
  }

 private:
  const TensorProto& tensor_;
  DType dtype_;
};

bool has_wide_integers(DType dtype) {
  return dtype == DType::i64 || dtype == DType::u64;
}

// Reads the elements of a tensor; elements of four bits are stored in pairs, two to a byte.
class ElementReader {
 public:
  ElementReader(const TensorReader& stored, ElementType type) : stored_(stored), type_(type) {}

  double at(int64_t index) const {
    if (type_.per_byte == 1) return stored_.at(index);
    const int bits = static_cast<int>(stored_.at(index / 2)) >> (index % 2 == 0 ? 0 : 4) & 15;
    return type_.dtype == DType::i8 ? (bits ^ 8) - 8 : bits;
  }

 private:
  const TensorReader& stored_;
  ElementType type_;
};

Fill fill_of(const TensorReader& reader, DType dtype, int64_t count) {
  Fill fill;
  double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  for (int64_t i = 0; i < count; ++i) {
    const double value = reader.at(i);
    sum += value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (is_float(dtype)) {
    const double mean = sum / static_cast<double>(count);
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) squares += (reader.at(i) - mean) * (reader.at(i) - mean);
    const double stddev = std::sqrt(squares / static_cast<double>(count));
    // The mean or the deviation of a tensor with infinities or NaN, such as a mask, is not finite. Such a tensor keeps
    // the default fill, since its generated values do not matter.
    if (std::isfinite(mean) && std::isfinite(stddev)) fill.mean = mean, fill.stddev = stddev;
    return fill;
  }
  const double limit = 4e18;
  fill.low = static_cast<int64_t>(std::clamp(low, -limit, limit));
  fill.high = static_cast<int64_t>(std::clamp(high, -limit, limit)) + 1;
  return fill;
}

}  // namespace

int64_t Literal::int_at(int64_t index) const {
  const double value = at(index);
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value <= -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

Literal make_literal(DType dtype, Shape shape, std::vector<double> values) {
  if (values.empty()) values = {0};
  // Compares the bits of doubles, so that NaN equals itself and -0 differs from 0.
  const auto same = [&](double v) { return std::bit_cast<uint64_t>(v) == std::bit_cast<uint64_t>(values[0]); };
  if (std::all_of(values.begin(), values.end(), same)) values.resize(1);
  return {dtype, std::move(shape), std::move(values)};
}

Literal literal_of_bits(DType dtype, const Shape& shape, const std::vector<uint64_t>& all) {
  if (all.empty()) return make_literal(dtype, shape, {});
  const auto number = [dtype](uint64_t bits) {
    return dtype == DType::u64 ? static_cast<double>(bits) : static_cast<double>(static_cast<int64_t>(bits));
  };
  constexpr uint64_t kLow = 2047;
  const bool exact = std::all_of(all.begin(), all.end(), [&](uint64_t bits) {
    return number(bits) - number(bits & ~kLow) == static_cast<double>(bits & kLow);
  });
  Literal literal{dtype, shape, {}};
  for (const uint64_t bits : all) {
    literal.values.push_back(number(exact ? bits : bits & ~kLow));
    if (!exact) literal.low.push_back(static_cast<double>(bits & kLow));
  }
  if (exact) return make_literal(dtype, shape, std::move(literal.values));
  if (std::all_of(all.begin(), all.end(), [&](uint64_t bits) { return bits == all[0]; })) {
    literal.values.resize(1);
    literal.low.resize(1);
  }
  return literal;
}

Literal int_literal(Shape shape, const std::vector<int64_t>& values) {
  return literal_of_bits(DType::i64, shape, std::vector<uint64_t>(values.begin(), values.end()));
}

// Numbers of element types in onnx.proto. They are defined here because the installed onnx.proto may be too old to have
// them.
constexpr int kFloat8E4M3FN = 17, kFloat8E5M2 = 19, kUint4 = 21, kInt4 = 22;

absl::StatusOr<DType> dtype_of(int onnx_type, std::string_view what) {
  switch (onnx_type) {
    case TensorProto::FLOAT:
      return DType::f32;
    case TensorProto::DOUBLE:
      return DType::f64;
    case TensorProto::FLOAT16:
      return DType::f16;
    case TensorProto::BFLOAT16:
      return DType::bf16;
    case TensorProto::INT64:
      return DType::i64;
    case TensorProto::INT32:
      return DType::i32;
    case TensorProto::INT16:
      return DType::i16;
    case TensorProto::INT8:
      return DType::i8;
    case TensorProto::UINT64:
      return DType::u64;
    case TensorProto::UINT32:
      return DType::u32;
    case TensorProto::UINT16:
      return DType::u16;
    case TensorProto::UINT8:
      return DType::u8;
    case TensorProto::BOOL:
      return DType::b1;
    case kFloat8E4M3FN:
      return DType::f8e4m3fn;
    case kFloat8E5M2:
      return DType::f8e5m2;
    default:
      break;
  }
  const std::string name = TensorProto::DataType_IsValid(onnx_type)
                               ? TensorProto::DataType_Name(static_cast<TensorProto::DataType>(onnx_type))
                               : cat("number ", onnx_type);
  return unimplemented(what, ": element type ", name,
                       " is not supported; supported are FLOAT, DOUBLE, FLOAT16, BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2, "
                       "INT8 to INT64, UINT8 to UINT64 and BOOL, and INT4 and UINT4 for inputs and initializers");
}

absl::StatusOr<ElementType> element_type_of(int onnx_type, std::string_view what) {
  if (onnx_type == kUint4) return ElementType{DType::u8, 2};
  if (onnx_type == kInt4) return ElementType{DType::i8, 2};
  WL_ASSIGN_OR_RETURN(const DType dtype, dtype_of(onnx_type, what));
  return ElementType{dtype};
}

std::vector<double> stored_values(const ElementType& type, const Literal& literal) {
  if (type.per_byte == 1) return literal.values;
  std::vector<double> bytes(static_cast<size_t>(elements(type.stored_shape(literal.shape))), 0);
  for (int64_t i = 0; i < elements(literal.shape); ++i) {
    const auto bits = static_cast<uint64_t>(literal.int_at(i)) & 15;
    bytes[static_cast<size_t>(i / 2)] += static_cast<double>(i % 2 == 0 ? bits : bits << 4);
  }
  return bytes;
}

absl::StatusOr<StoredType> stored_type_of(const TensorProto& tensor, std::string_view what) {
  WL_ASSIGN_OR_RETURN(const ElementType type, element_type_of(tensor.data_type(), what));
  const Shape shape(tensor.dims().begin(), tensor.dims().end());
  WL_RETURN_IF_ERROR(check_shape(shape, what));
  return StoredType{type.stored_dtype(), type.stored_shape(shape)};
}

Shape ElementType::stored_shape(const Shape& shape) const {
  if (per_byte == 1) return shape;
  if (shape.empty() || shape.back() % per_byte != 0) return {(elements(shape) + per_byte - 1) / per_byte};
  Shape stored = shape;
  stored.back() /= per_byte;
  return stored;
}

absl::Status check_shape(const Shape& shape, std::string_view what) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) return invalid(what, ": extent ", extent, " is negative");
    if (extent > kMaxElements) return invalid(what, ": extent ", extent, " is over the limit of ", kMaxElements);
    // In an empty tensor, an extent of 0 counts as 1, so that no product of extents can overflow.
    const int64_t factor = std::max<int64_t>(extent, 1);
    if (count > kMaxElements / factor)
      return invalid(what, ": more than ", kMaxElements, " elements, the limit of one tensor");
    count *= factor;
  }
  return absl::OkStatus();
}

absl::StatusOr<DecodedTensor> decode_tensor(const TensorProto& tensor, std::string_view what) {
  DecodedTensor result;
  WL_ASSIGN_OR_RETURN(result.type, element_type_of(tensor.data_type(), what));
  result.shape.assign(tensor.dims().begin(), tensor.dims().end());
  WL_RETURN_IF_ERROR(check_shape(result.shape, what));
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    return unimplemented(what, ": its values are in another file; only those of initializers may be");
  }
  if (tensor.has_segment()) return unimplemented(what, ": tensors stored in segments are not supported");
  const TensorReader stored(tensor, result.type.stored_dtype());
  const int64_t count = elements(result.shape), stored_count = elements(result.type.stored_shape(result.shape));
  if (stored.size() != stored_count) {
    return invalid(what, ": shape has ", stored_count, result.type.per_byte > 1 ? " bytes" : " elements", ", the data ",
                   stored.size() < 0 ? "is no whole number of them" : cat("has ", stored.size()));
  }
  const ElementReader reader(stored, result.type);
  const bool wide = has_wide_integers(result.type.dtype);
  const auto bits_at = [&](int64_t i) { return wide ? stored.bits_at(i) : std::bit_cast<uint64_t>(reader.at(i)); };
  bool splat = true;
  for (int64_t i = 1; splat && i < count; ++i) splat = bits_at(i) == bits_at(0);
  const bool kept = splat || count * size_of(result.type.dtype) <= kLiteralBytes;
  const int64_t known = splat ? std::min<int64_t>(count, 1) : count;
  if (kept && wide) {
    std::vector<uint64_t> all;
    for (int64_t i = 0; i < known; ++i) all.push_back(bits_at(i));
    result.literal = literal_of_bits(result.type.dtype, result.shape, all);
  } else if (kept) {
    std::vector<double> values;
    for (int64_t i = 0; i < known; ++i) values.push_back(reader.at(i));
    result.literal = make_literal(result.type.dtype, result.shape, std::move(values));
  } else {
    result.fill = fill_of(stored, result.type.stored_dtype(), stored_count);
  }
  return result;
}

}  // namespace wl::onnx_import
