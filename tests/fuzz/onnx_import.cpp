// Any bytes: the importer gives a verified graph or a Status.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compiler/base/status.h"
#include "compiler/import/import.h"
#include "compiler/ir/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto imported = wl::import_onnx(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!imported.ok()) return 0;
  const std::string text = wl::print(imported->graph);
  WL_CHECK(wl::parse(text).ok(), text);
  return 0;
}
