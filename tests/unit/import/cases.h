// One-node ONNX models, at least one for each row of the import table. The conformance test imports every case, and the
// comparison with onnxruntime (tests/python) computes it. A new row of the table needs a case here, which both tests
// then run.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "compiler/import/import.h"
#include "onnx/onnx_pb.h"

namespace wl::testing {

struct CaseInput {
  int type = 0;  // a number of onnx::TensorProto::DataType; 0 = an absent optional input
  std::vector<int64_t> shape = {};
  std::vector<double> values = {};  // if not empty, the input is an initializer with these values
  double mean = 0, stddev = 1;      // mean and deviation of a generated float input
  int64_t low = 0, high = 2;        // range of a generated integer input
};

struct CaseAttribute {
  std::string name;
  std::variant<int, double, std::string, std::vector<int64_t>, std::vector<double>, CaseInput> value;
};

struct Case {
  std::string op;
  int opset;
  std::vector<CaseInput> inputs;
  std::vector<CaseAttribute> attributes;
  std::string result;  // dtype and shape of the first output, as in graph text
  int outputs = 1;
  std::string domain = "";
  bool peer = true;  // whether onnxruntime has a kernel for this node
};

std::vector<Case> import_cases();
std::string case_name(const Case& c, size_t index);
onnx::ModelProto model_of(const Case& c);

// Short names of element types, for other tests.
constexpr int kFloat = onnx::TensorProto::FLOAT;
constexpr int kUint4 = 21, kInt4 = 22;  // numbers of types that older ONNX headers lack
onnx::ModelProto empty_model(int opset = 17);
// Returns the error message of importing the model.
std::string error_of(const onnx::ModelProto& model, const ImportOptions& options = {});
void set_opset(onnx::ModelProto& model, const std::string& domain, int version);
void add_input(onnx::ModelProto& model, const std::string& name, int type, const std::vector<int64_t>& shape);
void add_initializer(onnx::ModelProto& model, const std::string& name, const CaseInput& tensor);
onnx::NodeProto& add_node(onnx::ModelProto& model, const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::vector<CaseAttribute>& attributes = {});
void add_output(onnx::ModelProto& model, const std::string& name, int type = onnx::TensorProto::FLOAT);

}  // namespace wl::testing
