// Runs a bundle that `warploom tune MODEL --out DIR` wrote:  run_model DIR [WEIGHTS]
// WEIGHTS is the ONNX file, an .npz or a folder of .npy files; without it the weights are random. The inputs are zeros.
#include <cstdio>

#include "client/program/model.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: run_model DIR [WEIGHTS]\n");
    return 1;
  }
  const auto fail = [](const absl::Status& status) {
    std::fprintf(stderr, "run_model: %s\n", std::string(status.message()).c_str());
    return 2;
  };
  absl::StatusOr<wl::Model> model = wl::Model::load(argv[1]);
  if (!model.ok()) return fail(model.status());
  const absl::Status ready = argc > 2 ? model->load_weights(argv[2]) : model->generate_weights(1);
  if (!ready.ok()) return fail(ready);

  std::map<std::string, wl::Array> inputs;
  for (const wl::TensorInfo& input : model->inputs()) {
    const int64_t bytes = wl::elements(input.shape) * wl::size_of(input.dtype);
    inputs[input.name] = {input.dtype, input.shape, std::string(static_cast<size_t>(bytes), '\0')};
    std::printf("input  %s %s\n", input.name.c_str(), wl::type_text(input.dtype, input.shape).c_str());
  }
  const auto outputs = model->run(inputs);
  if (!outputs.ok()) return fail(outputs.status());
  for (const auto& [name, array] : *outputs) {
    std::printf("output %s %s: first element %g\n", name.c_str(), wl::type_text(array.dtype, array.shape).c_str(),
                array.bytes.empty() ? 0.0 : wl::load_element(array.dtype, array.bytes.data(), 0));
  }
  return 0;
}
