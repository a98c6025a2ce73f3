// Runs a bundle that `warploom tune MODEL --out DIR` wrote:
//
//     run_model DIR [WEIGHTS]
//
// WEIGHTS is the ONNX file, an .npz file or a folder of .npy files; without it weights are random. Inputs are zeros.
#include <cstdio>
#include <warploom.hpp>

namespace {

void print(const char* what, const warploom::Tensor& tensor) {
  std::printf("%s %s %s[", what, tensor.name.c_str(), warploom_dtype_name(tensor.dtype));
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    std::printf("%s%lld", i == 0 ? "" : ",", static_cast<long long>(tensor.shape[i]));
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: run_model DIR [WEIGHTS]\n");
    return 1;
  }
  try {
    warploom::Model model(argv[1]);
    if (argc > 2)
      model.load_weights(argv[2]);
    else
      model.generate_weights(1);
    for (const warploom::Tensor& input : model.inputs()) {
      print("input ", input);
      std::printf("\n");
    }
    warploom::Executor executor(model);
    executor.run();
    size_t index = 0;
    for (const warploom::Tensor& output : model.outputs()) {
      const void* const values = executor.output(index++);
      print("output", output);
      if (output.dtype == WARPLOOM_F32 && output.bytes > 0)
        std::printf(": first element %g", static_cast<double>(*static_cast<const float*>(values)));
      std::printf("\n");
    }
  } catch (const warploom::Error& error) {
    std::fprintf(stderr, "run_model: %s\n", error.what());
    return 2;
  }
  return 0;
}
