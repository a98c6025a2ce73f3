// For any text, the reader of manifests gives a program or a Status.
#include <cstddef>
#include <cstdint>
#include <string>

#include "client/program/bundle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)wl::parse_manifest(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
