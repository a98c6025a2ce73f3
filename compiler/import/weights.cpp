#include "compiler/import/weights.h"

#include "compiler/import/literal.h"
#include "compiler/import/typed_field.h"
#include "onnx/onnx_pb.h"

namespace wl {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using onnx::TensorProto;

// Returns the elements of a typed protobuf field as bytes of `dtype`. The field may store them in a wider type.
template <typename Field>
std::string bytes_of(DType dtype, const Field& field) {
  const size_t size = static_cast<size_t>(size_of(dtype));
  std::string bytes(size * static_cast<size_t>(field.size()), '\0');
  for (int i = 0; i < field.size(); ++i) {
    const auto value = field.Get(i);
    std::char_traits<char>::copy(bytes.data() + size * static_cast<size_t>(i), reinterpret_cast<const char*>(&value),
                                 size);
  }
  return bytes;
}

absl::Status visit_one(TensorProto& tensor, const WeightVisitor& visit, const ExternalData& external) {
  const std::string what = cat("initializer ", tensor.name());
  WL_ASSIGN_OR_RETURN(const auto type, onnx_import::stored_type_of(tensor, what));
  const DType dtype = type.dtype;
  const Shape& shape = type.shape;
  WL_RETURN_IF_ERROR(onnx_import::embed(tensor, external, what));
  std::string typed;
  if (!tensor.has_raw_data()) {
    typed = onnx_import::with_typed_field(tensor, dtype, [&](const auto& field) { return bytes_of(dtype, field); });
  }
  const std::string_view bytes = tensor.has_raw_data() ? std::string_view(tensor.raw_data()) : typed;
  if (static_cast<int64_t>(bytes.size()) != elements(shape) * size_of(dtype)) {
    return invalid(what, ": ", type_text(dtype, shape), " needs ", elements(shape) * size_of(dtype),
                   " bytes, the file has ", bytes.size());
  }
  return visit(tensor.name(), dtype, shape, bytes);
}

class Walk : public google::protobuf::io::CopyingInputStream {
 public:
  Walk(const ByteSource& source, const WeightVisitor& visit, const ExternalData& external)
      : source_(source), visit_(visit), external_(external) {}
  int Read(void* buffer, int size) override { return source_(static_cast<char*>(buffer), size); }

  absl::Status run() {
    google::protobuf::io::CopyingInputStreamAdaptor stream(this);
    CodedInputStream file(&stream);
    const bool whole = inside(file, onnx::ModelProto::kGraphFieldNumber, [&] {
      return inside(file, onnx::GraphProto::kInitializerFieldNumber, [&] { return initializer(file); });
    });
    if (!status_.ok() || whole) return status_;
    return invalid("not an ONNX model: it does not parse at byte ", file.CurrentPosition());
  }

 private:
  // Reads one message to its end, and calls `enter` for every nested message in its field number `field`. `enter` must
  // read the nested message to its end. Returns false if the file is broken or `enter` returns false.
  template <typename Enter>
  static bool inside(CodedInputStream& file, int field, const Enter& enter) {
    while (const uint32_t tag = file.ReadTag()) {
      if (WireFormatLite::GetTagFieldNumber(tag) != field ||
          WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        if (!WireFormatLite::SkipField(&file, tag)) return false;
        continue;
      }
      int length = 0;
      if (!file.ReadVarintSizeAsInt(&length)) return false;
      const CodedInputStream::Limit outside = file.PushLimit(length);
      if (!enter() || file.BytesUntilLimit() != 0) return false;
      file.PopLimit(outside);
    }
    return file.ConsumedEntireMessage();
  }

  bool initializer(CodedInputStream& file) {
    TensorProto tensor;
    if (!tensor.ParseFromCodedStream(&file)) return false;
    status_ = visit_one(tensor, visit_, external_);
    return status_.ok();
  }

  const ByteSource& source_;
  const WeightVisitor& visit_;
  const ExternalData& external_;
  absl::Status status_;
};

}  // namespace

absl::Status visit_weights(const ByteSource& onnx_file, const WeightVisitor& visit, const ExternalData& external) {
  const google::protobuf::LogSilencer silence;
  return Walk(onnx_file, visit, external).run();
}

absl::Status visit_weights(std::string_view onnx_bytes, const WeightVisitor& visit, const ExternalData& external) {
  return visit_weights(
      [&](char* to, int most) {
        const size_t count = onnx_bytes.copy(to, static_cast<size_t>(most));
        onnx_bytes.remove_prefix(count);
        return static_cast<int>(count);
      },
      visit, external);
}

}  // namespace wl
