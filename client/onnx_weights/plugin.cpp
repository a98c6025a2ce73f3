// The shared object libwarploom-onnx, which exports visit_onnx() under the name warploom_visit_onnx. The C library
// loads it when it is given an ONNX file, so that other programs need neither the ONNX library nor protobuf. C++ types
// pass between the C library and this object, so both must be of one build.
#include "client/onnx_weights/visit.h"

extern "C" void warploom_visit_onnx(const std::string& path, const wl::ArrayVisitor& visit, absl::Status& result) {
  result = wl::visit_onnx(path, visit);
}
