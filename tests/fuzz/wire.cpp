// For any bytes, every decoder gives a record that survives a round trip, or a Status. The first byte selects the
// decoder.
#include "proto/wire.h"

#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compiler/base/status.h"

namespace {

template <typename Decode>
void round_trip(std::string_view bytes, Decode decode) {
  const auto record = decode(bytes);
  if (!record.ok()) return;
  const std::string encoded = wl::encode(*record);
  const auto again = decode(encoded);
  WL_CHECK(again.ok(), again.status().ToString());
  WL_CHECK(wl::encode(*again) == encoded, "encoding twice gives other bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  google::protobuf::SetLogHandler(nullptr);  // protobuf would print every string that is not UTF-8
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      round_trip(bytes, wl::decode_options);
      break;
    case 1:
      round_trip(bytes, wl::decode_record);
      break;
    case 2:
      round_trip(bytes, wl::decode_result);
      break;
    default:
      round_trip(bytes, wl::decode_device);
      break;
  }
  return 0;
}
