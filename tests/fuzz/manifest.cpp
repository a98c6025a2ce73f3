// For any text, the reader of bundle manifests returns a program or an error.
#include "client/program/manifest.h"

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)wl::parse_manifest(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
