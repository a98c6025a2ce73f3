// A shared object with visit_onnx() alone. The C library loads it when it is given an ONNX file, so that programs which
// give no such file need neither the ONNX library nor protobuf. Both are of one build: C++ types pass between them.
#include "client/onnx_weights/visit.h"

extern "C" void warploom_visit_onnx(const std::string& path, const wl::ArrayVisitor& visit, absl::Status& result) {
  result = wl::visit_onnx(path, visit);
}
