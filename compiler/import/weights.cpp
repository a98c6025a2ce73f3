#include "compiler/import/weights.h"

#include <limits>

#include "compiler/import/literal.h"
#include "onnx/onnx_pb.h"

namespace wl {
namespace {

using onnx::TensorProto;

// Typed fields hold narrow elements widened.
template <typename Field>
void append_elements(DType dtype, const Field& field, std::string* bytes) {
  const size_t size = static_cast<size_t>(size_of(dtype));
  bytes->resize(size * static_cast<size_t>(field.size()));
  for (int i = 0; i < field.size(); ++i) {
    const auto value = field.Get(i);
    std::char_traits<char>::copy(bytes->data() + size * static_cast<size_t>(i), reinterpret_cast<const char*>(&value),
                                 size);
  }
}

// Empty when the tensor has no typed field of its element type.
std::string typed_bytes(const TensorProto& tensor, DType dtype) {
  std::string bytes;
  if (tensor.float_data_size() > 0) append_elements(dtype, tensor.float_data(), &bytes);
  if (tensor.double_data_size() > 0) append_elements(dtype, tensor.double_data(), &bytes);
  if (tensor.int64_data_size() > 0) append_elements(dtype, tensor.int64_data(), &bytes);
  if (tensor.uint64_data_size() > 0) append_elements(dtype, tensor.uint64_data(), &bytes);
  if (tensor.int32_data_size() > 0) append_elements(dtype, tensor.int32_data(), &bytes);
  return bytes;
}

}  // namespace

absl::Status visit_weights(std::string_view onnx_bytes, const WeightVisitor& visit) {
  const google::protobuf::LogSilencer silence;
  onnx::ModelProto model;
  if (onnx_bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !model.ParseFromArray(onnx_bytes.data(), static_cast<int>(onnx_bytes.size()))) {
    return invalid("not an ONNX model: the ", onnx_bytes.size(), " bytes do not parse");
  }
  for (const TensorProto& tensor : model.graph().initializer()) {
    const std::string what = cat("initializer ", tensor.name());
    WL_ASSIGN_OR_RETURN(const DType dtype, onnx_import::dtype_of(tensor.data_type(), what));
    const Shape shape(tensor.dims().begin(), tensor.dims().end());
    WL_RETURN_IF_ERROR(onnx_import::check_shape(shape, what));
    if (tensor.data_location() == TensorProto::EXTERNAL) {
      return unimplemented(what, ": its values are in another file; give them as .npz or .npy");
    }
    std::string typed;
    if (!tensor.has_raw_data()) typed = typed_bytes(tensor, dtype);
    const std::string_view bytes = tensor.has_raw_data() ? std::string_view(tensor.raw_data()) : typed;
    if (static_cast<int64_t>(bytes.size()) != elements(shape) * size_of(dtype)) {
      return invalid(what, ": ", type_text(dtype, shape), " needs ", elements(shape) * size_of(dtype),
                     " bytes, the file has ", bytes.size());
    }
    WL_RETURN_IF_ERROR(visit(tensor.name(), dtype, shape, bytes));
  }
  return absl::OkStatus();
}

}  // namespace wl
