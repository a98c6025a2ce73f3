// Converts cases to ONNX models.
#include "compiler/base/status.h"
#include "tests/unit/import/cases.h"

namespace wl::testing {
namespace {

void fill_tensor(onnx::TensorProto& proto, const CaseInput& tensor) {
  proto.set_data_type(tensor.type);
  for (const int64_t extent : tensor.shape) proto.add_dims(extent);
  if (tensor.type == kInt4 || tensor.type == kUint4) {  // integers of 4 bits: two per byte, the first in the low half
    for (size_t i = 0; i < tensor.values.size(); i += 2) {
      const int low = static_cast<int>(tensor.values[i]) & 15;
      const int high = i + 1 < tensor.values.size() ? static_cast<int>(tensor.values[i + 1]) & 15 : 0;
      proto.add_int32_data(low | high << 4);
    }
    return;
  }
  for (const double value : tensor.values) {
    switch (tensor.type) {
      case onnx::TensorProto::FLOAT:
        proto.add_float_data(static_cast<float>(value));
        break;
      case onnx::TensorProto::DOUBLE:
        proto.add_double_data(value);
        break;
      case onnx::TensorProto::INT64:
        proto.add_int64_data(static_cast<int64_t>(value));
        break;
      case onnx::TensorProto::UINT32:
        proto.add_uint64_data(static_cast<uint32_t>(value));
        break;
      default:
        proto.add_int32_data(static_cast<int32_t>(value));
    }
  }
}

void fill_attribute(onnx::AttributeProto& proto, const CaseAttribute& attribute) {
  proto.set_name(attribute.name);
  if (const auto* number = std::get_if<int>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(*number);
  } else if (const auto* real = std::get_if<double>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(*text);
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : *ints) proto.add_ints(value);
  } else if (const auto* reals = std::get_if<std::vector<double>>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::FLOATS);
    for (const double value : *reals) proto.add_floats(static_cast<float>(value));
  } else {
    proto.set_type(onnx::AttributeProto::TENSOR);
    fill_tensor(*proto.mutable_t(), std::get<CaseInput>(attribute.value));
  }
}

}  // namespace

onnx::ModelProto empty_model(int opset) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  set_opset(model, "", opset);
  return model;
}

std::string error_of(const onnx::ModelProto& model, const ImportOptions& options) {
  const auto imported = import_onnx(model.SerializeAsString(), options);
  return imported.ok() ? "no error" : std::string(imported.status().message());
}

void set_opset(onnx::ModelProto& model, const std::string& domain, int version) {
  auto* opset = model.add_opset_import();
  opset->set_domain(domain);
  opset->set_version(version);
}

void add_input(onnx::ModelProto& model, const std::string& name, int type, const std::vector<int64_t>& shape) {
  auto* input = model.mutable_graph()->add_input();
  input->set_name(name);
  auto* tensor = input->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const int64_t extent : shape) tensor->mutable_shape()->add_dim()->set_dim_value(extent);
}

void add_initializer(onnx::ModelProto& model, const std::string& name, const CaseInput& tensor) {
  auto* initializer = model.mutable_graph()->add_initializer();
  initializer->set_name(name);
  fill_tensor(*initializer, tensor);
}

onnx::NodeProto& add_node(onnx::ModelProto& model, const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::vector<CaseAttribute>& attributes) {
  auto* node = model.mutable_graph()->add_node();
  node->set_op_type(op);
  for (const auto& name : inputs) node->add_input(name);
  for (const auto& name : outputs) node->add_output(name);
  for (const auto& attribute : attributes) fill_attribute(*node->add_attribute(), attribute);
  return *node;
}

void add_output(onnx::ModelProto& model, const std::string& name, int type) {
  auto* output = model.mutable_graph()->add_output();
  output->set_name(name);
  output->mutable_type()->mutable_tensor_type()->set_elem_type(type);
}

std::string case_name(const Case& c, size_t index) {
  return cat(index, "_", c.op, "_", c.opset);
}

onnx::ModelProto model_of(const Case& c) {
  onnx::ModelProto model;
  // The oldest IR version that supports the opset and is still accepted by current runtimes.
  model.set_ir_version(c.opset >= 24 ? 11 : c.opset >= 21 ? 10 : 8);
  set_opset(model, "", c.domain.empty() ? c.opset : 18);
  if (!c.domain.empty()) set_opset(model, c.domain, c.opset);
  model.mutable_graph()->set_name(c.op);
  std::vector<std::string> inputs, outputs;
  std::string ranges;
  std::string stats;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const CaseInput& input = c.inputs[i];
    inputs.push_back(input.type == 0 ? "" : cat("x", i));
    if (input.type == 0) continue;
    if (!input.values.empty()) {
      add_initializer(model, inputs.back(), input);
      continue;
    }
    add_input(model, inputs.back(), input.type, input.shape);
    append(&ranges, ranges.empty() ? "" : ",", "\"", inputs.back(), "\":[", input.low, ",", input.high, "]");
    append(&stats, stats.empty() ? "" : ",", "\"", inputs.back(), "\":[", input.mean, ",", input.stddev, "]");
  }
  for (const auto& [key, text] : {std::pair{"warploom.int_range", ranges}, std::pair{"warploom.weight_stats", stats}}) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(cat("{", text, "}"));
  }
  for (int i = 0; i < c.outputs; ++i) outputs.push_back(cat("y", i));
  add_node(model, c.op, inputs, outputs, c.attributes).set_domain(c.domain);
  const std::string dtype = c.result.substr(0, c.result.find('['));
  const auto type = dtype == "i64"   ? onnx::TensorProto::INT64
                    : dtype == "b1"  ? onnx::TensorProto::BOOL
                    : dtype == "i32" ? onnx::TensorProto::INT32
                    : dtype == "u8"  ? onnx::TensorProto::UINT8
                    : dtype == "i8"  ? onnx::TensorProto::INT8
                    : dtype == "f64" ? onnx::TensorProto::DOUBLE
                    : dtype == "f16" ? onnx::TensorProto::FLOAT16
                                     : onnx::TensorProto::FLOAT;
  for (size_t i = 0; i < outputs.size(); ++i) {
    add_output(model, outputs[i], type);
    // Only the first output's type is given, as `type`. Readers of the model infer the types of other outputs.
    if (i > 0) model.mutable_graph()->mutable_output(static_cast<int>(i))->clear_type();
  }
  return model;
}

}  // namespace wl::testing
