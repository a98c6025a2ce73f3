// Any bytes: the importer gives a verified graph or a Status, and the weights' bytes fit their shapes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compiler/base/status.h"
#include "compiler/import/import.h"
#include "compiler/import/weights.h"
#include "compiler/ir/text.h"

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
