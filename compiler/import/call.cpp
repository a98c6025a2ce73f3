#include "compiler/import/call.h"

#include <algorithm>

#include "compiler/import/model.h"
#include "onnx/onnx_pb.h"

namespace wl::onnx_import {
Call::Call(const onnx::NodeProto& node, int opset, std::vector<CallValue*> inputs, Builder& builder, bool cache)
    : node_(node),
      opset_(opset),
      schema_(domain_of(node.domain()).empty() ? schema_of(node.op_type(), opset) : nullptr),
      inputs_(std::move(inputs)),
      builder_(builder),
      cache_(cache) {
  results_.resize(static_cast<size_t>(node.output_size()));
}

std::string_view Call::op() const {
  return node_.op_type();
}

void Call::reject(absl::StatusCode code, std::string_view message) const {
  throw Rejected{absl::Status(code, std::string(message))};
}

const CallValue& Call::value(int index) const {
  if (!has(index)) fail("input ", index, " is needed, the node has ", inputs());
  return *inputs_[static_cast<size_t>(index)];
}

namespace {

// Returns the axis along which a literal of integers counts 0, 1, 2, ..., as an iota does; -1 if there is none.
int counted_axis(const Literal& literal) {
  if (literal.values.size() < 2 || (literal.dtype != DType::i32 && literal.dtype != DType::i64)) return -1;
  const std::vector<int64_t> strides = row_major_strides(literal.shape);
  for (size_t axis = 0; axis < literal.shape.size(); ++axis) {
    if (literal.shape[axis] < 2) continue;
    bool counts = true;
    for (size_t i = 0; i < literal.values.size() && counts; ++i)
      counts = literal.values[i] == static_cast<double>(static_cast<int64_t>(i) / strides[axis] % literal.shape[axis]);
    if (counts) return static_cast<int>(axis);
  }
  return -1;
}

}  // namespace

T Call::materialise(CallValue& value) {
  if (cache_ && value.node >= 0) return T(this, value.node);
  NodeId id;
  if (value.literal && !value.literal->low.empty()) {
    id = wide_integers(value).id();
  } else if (value.literal && value.literal->is_splat()) {
    id = builder_.constant(value.literal->values[0], value.dtype, value.shape);
  } else if (const int axis = value.literal ? counted_axis(*value.literal) : -1; axis >= 0) {
    id = builder_.iota(value.dtype, value.shape, axis);
  } else {
    id = input(value);
  }
  const T result = checked(id);
  if (cache_) value.node = id;
  return result;
}

T Call::wide_integers(const CallValue& value) {
  CallValue high{.name = value.name, .dtype = value.dtype, .shape = value.shape}, low = high;
  low.name += ":low";
  high.literal = {value.dtype, value.shape, value.literal->values};
  low.literal = {value.dtype, value.shape, value.literal->low};
  T sum = materialise(high);
  // A client that supplies the weights may give the whole integers, including their low bits, to input `high`. The
  // mask removes these bits, since input `low` adds them.
  const double mask = value.dtype == DType::u64 ? 0x1p64 - 2048 : -2048;
  if (!value.literal->is_splat()) sum = apply(Op::bit_and, {sum, mask});
  return sum + materialise(low);
}

NodeId Call::input(const CallValue& value) {
  const ElementType type{value.dtype, value.per_byte};
  Fill fill = value.fill;
  if (value.literal) fill.literal = stored_values(type, *value.literal);
  const NodeId id = builder_.input(value.name, type.stored_dtype(), type.stored_shape(value.shape), std::move(fill));
  if (type.per_byte == 1) return id;
  const T all = unpacked(checked(id), value.dtype);
  return reshape(slice_axis(all, all.rank() - 1, 0, 1, std::min(all.extent(all.rank() - 1), elements(value.shape))),
                 value.shape)
      .id();
}

T Call::unpacked(T bytes, DType dtype) {
  Shape apart = bytes.shape();
  apart.push_back(2);
  const T shift = iota(DType::u8, {2}, 0) * 4.0;
  T bits = apply(Op::shift_right, {broadcast_to(unsqueeze(bytes, {bytes.rank()}), apart), shift});
  bits = apply(Op::bit_and, {bits, 15.0});
  if (dtype == DType::i8) bits = cast(apply(Op::bit_xor, {bits, 8.0}), DType::i8) - 8.0;
  Shape joined = bytes.shape();
  joined.back() *= 2;
  return reshape(bits, std::move(joined));
}

T Call::literal_tensor(Literal literal, std::string_view suffix) {
  CallValue value{.name = cat(outputs() > 0 ? node_.output(0) : node_.name(), suffix),
                  .dtype = literal.dtype,
                  .shape = literal.shape};
  value.literal = std::move(literal);
  return materialise(value);
}

T Call::in(int index) {
  value(index);
  CallValue* input = inputs_[static_cast<size_t>(index)];
  // The node of an input is made only once, even if the row asks for it again, since two graph inputs may not have the
  // same name.
  for (const auto& [made, node] : made_) {
    if (made == input) return T(this, node);
  }
  const T result = materialise(*input);
  made_.emplace_back(input, result.id());
  return result;
}

std::vector<T> Call::all() {
  std::vector<T> result;
  for (int i = 0; i < inputs(); ++i) result.push_back(in(i));
  if (result.empty()) fail("at least one input is needed");
  return result;
}

const Literal* Call::literal(int index) const {
  const auto& literal = value(index).literal;
  return literal && literal->low.empty() ? &*literal : nullptr;
}

std::vector<int64_t> Call::ints(int index) const {
  const Literal* known = literal(index);
  if (known == nullptr) {
    missing("input ", index, " ('", value(index).name,
            "') decides shapes, so its values must be constant; here they are computed from data");
  }
  if (known->shape.size() > 1) fail("input ", index, " must be a list, it has shape ", shape_text(known->shape));
  const int64_t count = elements(known->shape);
  if (count > 4096) fail("input ", index, " lists ", count, " integers; no tensor has as many axes");
  std::vector<int64_t> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(known->int_at(i));
  return result;
}

double Call::number(int index) const {
  const Literal* known = literal(index);
  if (known == nullptr) missing("input ", index, " ('", value(index).name, "') must be constant");
  if (elements(known->shape) != 1) {
    fail("input ", index, " must be one number, it has shape ", shape_text(known->shape));
  }
  return known->at(0);
}

std::vector<double> Call::numbers(int index) const {
  const Literal* known = literal(index);
  if (known == nullptr) missing("input ", index, " ('", value(index).name, "') must be constant");
  const int64_t count = elements(known->shape);
  if (known->shape.size() > 1 || count > 4096) {
    fail("input ", index, " must be a list, it has shape ", shape_text(known->shape));
  }
  std::vector<double> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(known->at(i));
  return result;
}

const onnx::AttributeProto* Call::find(std::string_view name) const {
  for (const auto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

const SchemaAttribute* Call::standard(std::string_view name) const {
  const SchemaAttribute* found = schema_ == nullptr ? nullptr : attribute_of(*schema_, name);
  return found != nullptr && found->has_default ? found : nullptr;
}

int64_t Call::attr(std::string_view name, int64_t otherwise) const {
  const auto* found = find(name);
  const SchemaAttribute* otherwise_standard = found == nullptr ? standard(name) : nullptr;
  if (otherwise_standard != nullptr) return otherwise_standard->integer;
  if (found == nullptr) return otherwise;
  if (!found->has_i()) fail("attribute ", name, " must be an integer");
  return found->i();
}

double Call::attr_number(std::string_view name, double otherwise) const {
  const auto* found = find(name);
  const SchemaAttribute* otherwise_standard = found == nullptr ? standard(name) : nullptr;
  if (otherwise_standard != nullptr) return static_cast<double>(otherwise_standard->number);
  if (found == nullptr) return static_cast<double>(static_cast<float>(otherwise));
  if (!found->has_f()) fail("attribute ", name, " must be a number");
  return static_cast<double>(found->f());
}

std::string Call::attr_text(std::string_view name, std::string_view otherwise) const {
  const auto* found = find(name);
  const SchemaAttribute* otherwise_standard = found == nullptr ? standard(name) : nullptr;
  if (otherwise_standard != nullptr) return std::string(otherwise_standard->text);
  if (found == nullptr) return std::string(otherwise);
  if (!found->has_s()) fail("attribute ", name, " must be a string");
  return found->s();
}

std::vector<int64_t> Call::attr_ints(std::string_view name, std::vector<int64_t> otherwise) const {
  const auto* found = find(name);
  if (found == nullptr) return otherwise;
  if (found->ints_size() > 4096) fail("attribute ", name, " lists ", found->ints_size(), " integers");
  return {found->ints().begin(), found->ints().end()};
}

std::vector<double> Call::attr_numbers(std::string_view name) const {
  const auto* found = find(name);
  if (found == nullptr) return {};
  return {found->floats().begin(), found->floats().end()};
}

std::vector<std::string> Call::attr_texts(std::string_view name) const {
  const auto* found = find(name);
  if (found == nullptr) return {};
  return {found->strings().begin(), found->strings().end()};
}

DType Call::dtype_attr(std::string_view name, DType otherwise) const {
  const int64_t number = attr(name, 0);
  if (number == 0) return otherwise;
  const auto dtype = dtype_of(number < 0 || number > 1000 ? -1 : static_cast<int>(number), cat("attribute ", name));
  if (!dtype.ok()) throw Rejected{dtype.status()};
  return *dtype;
}

std::optional<Literal> Call::attr_literal(std::string_view name) const {
  const auto* found = find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->has_t()) fail("attribute ", name, " must be a tensor");
  auto decoded = decode_tensor(found->t(), cat("attribute ", name));
  if (!decoded.ok()) throw Rejected{decoded.status()};
  if (!decoded->literal)
    missing("attribute ", name, ": a tensor over ", kLiteralBytes, " bytes must be an initializer");
  return *std::move(decoded->literal);
}

std::optional<std::vector<int64_t>> Call::ints_or_attr(int index, std::string_view name) const {
  if (has(index)) return ints(index);
  if (has_attr(name)) return attr_ints(name);
  return std::nullopt;
}

int64_t Call::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) fail("axis ", axis, " is out of range for a tensor of rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> Call::axes(std::vector<int64_t> axes, int64_t rank) const {
  for (int64_t& a : axes) a = axis(a, rank);
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) fail("axis ", *twice, " is given twice");
  return axes;
}

int Call::outputs() const {
  return node_.output_size();
}
bool Call::wants(int index) const {
  return index < outputs() && !node_.output(index).empty();
}

void Call::set(int index, T tensor) {
  if (wants(index)) results_[static_cast<size_t>(index)] = {std::nullopt, tensor.id()};
}

T Call::set_literal(int index, Literal literal) {
  check_shape(literal.shape);
  if (wants(index)) results_[static_cast<size_t>(index)] = {std::move(literal), -1};
  return {};
}

T Call::checked(NodeId id) {
  if (!builder_.status().ok()) throw Rejected{builder_.status()};
  return T(this, id);
}

void Call::check_shape(const Shape& shape) const {
  const auto status = onnx_import::check_shape(shape, cat("a tensor of shape ", shape_text(shape)));
  if (!status.ok()) throw Rejected{status};
}

T Call::constant(double value, DType dtype, Shape shape) {
  check_shape(shape);
  return checked(builder_.constant(value, dtype, std::move(shape)));
}

T Call::iota(DType dtype, Shape shape, int64_t axis) {
  check_shape(shape);
  return checked(builder_.iota(dtype, std::move(shape), static_cast<int>(axis)));
}

Call& T::call() const {
  if (call_ == nullptr) throw Rejected{absl::InvalidArgumentError("an input that the op needs is missing")};
  return *call_;
}
Shape T::shape() const {
  return call().builder().node(id_).shape;
}
int64_t T::extent(int64_t axis) const {
  const Shape& own = call().builder().node(id_).shape;
  if (axis < 0 || axis >= static_cast<int64_t>(own.size())) {
    call_->fail("a tensor of shape ", shape_text(own), " has no axis ", axis);
  }
  return own[static_cast<size_t>(axis)];
}
DType T::dtype() const {
  return call().builder().node(id_).dtype;
}

}  // namespace wl::onnx_import
