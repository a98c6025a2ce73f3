// For any text, parse_kernel() either refuses it or returns a kernel that prints to a text which parses to the same
// kernel.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compiler/kernel/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto kernel = wl::parse_kernel(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!kernel.ok()) return 0;
  const std::string text = wl::print(*kernel);
  const auto again = wl::parse_kernel(text);
  WL_CHECK(again.ok(), again.status().ToString(), "\n", text);
  WL_CHECK(wl::print(*again) == text, text);
  return 0;
}
