// For any bytes, the importer returns an error, or a verified graph whose weights have as many bytes as their shapes
// require. Most inputs are models with changed fields, so that protobuf parses them; inputs that are no longer models
// are replaced by cases of the import tests.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "compiler/base/status.h"
#include "compiler/import/import.h"
#include "compiler/import/weights.h"
#include "compiler/ir/text.h"
#include "tests/unit/import/cases.h"
#include "tests/unit/import/mutate.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  std::mt19937_64 rng(seed);
  if (rng() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  static const auto cases = wl::testing::import_cases();
  onnx::ModelProto model;
  if (!model.ParsePartialFromArray(data, static_cast<int>(size)) || !model.has_graph() || rng() % 64 == 0) {
    model = wl::testing::model_of(cases[rng() % cases.size()]);
  }
  wl::testing::mutate(model, 1 + static_cast<int>(rng() % 4), rng);
  const std::string bytes = model.SerializePartialAsString();
  if (bytes.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)wl::visit_weights(
      bytes, [](const std::string& name, wl::DType dtype, const wl::Shape& shape, std::string_view values) {
        WL_CHECK(static_cast<int64_t>(values.size()) == wl::elements(shape) * wl::size_of(dtype), name);
        return absl::OkStatus();
      });
  const auto imported = wl::import_onnx(bytes);
  if (!imported.ok()) return 0;
  const std::string text = wl::print(imported->graph);
  WL_CHECK(wl::parse(text).ok(), text);
  return 0;
}
