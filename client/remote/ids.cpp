#include "client/remote/ids.h"

#include <cstdlib>
#include <random>

#include "compiler/base/status.h"
#include "proto/trace.h"

namespace wl {

std::string new_request_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 16; ++i) {
    unsigned byte = device() & 0xff;
    if (i == 6) byte = (byte & 0x0f) | 0x40;
    if (i == 8) byte = (byte & 0x3f) | 0x80;
    append(&id, i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", absl::Hex(byte, absl::kZeroPad2));
  }
  return id;
}

std::string trace_of_job(const std::string& given) {
  if (!given.empty()) return given;
  const char* parent = std::getenv("TRACEPARENT");
  // A TRACEPARENT that is not valid is ignored, as the W3C standard requires.
  const absl::StatusOr<std::string> trace = parse_trace(parent == nullptr ? "" : parent);
  return trace.ok() ? *trace : new_trace();
}

}  // namespace wl
