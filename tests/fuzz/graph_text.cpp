// For any text, parse() either refuses it or returns a graph that prints to a text which parses to the same graph.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compiler/base/status.h"
#include "compiler/ir/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph = wl::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!graph.ok()) return 0;
  const std::string text = wl::print(*graph);
  const auto again = wl::parse(text);
  WL_CHECK(again.ok(), again.status().ToString(), "\n", text);
  WL_CHECK(wl::print(*again) == text, text);
  return 0;
}
