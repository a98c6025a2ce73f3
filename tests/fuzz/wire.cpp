// For any bytes, every decoder returns an error, or a record that has legal names and survives a round trip. The first
// byte of the fuzzer's input selects the decoder.
#include "proto/wire.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compiler/base/status.h"

namespace {

void legal(const wl::Source& source) {
  const bool identifier = std::all_of(source.entry.begin(), source.entry.end(), [](unsigned char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  WL_CHECK(!source.entry.empty() && identifier, "the entry ", source.entry);
}
void legal(const wl::Device& device) {
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  WL_CHECK(std::none_of(device.name.begin(), device.name.end(), control), "the device ", device.name);
}
void legal(const wl::KernelRecord& record) {
  legal(record.source);
  legal(record.device);
}
void legal(const wl::Batch& batch) {
  for (const wl::Candidate& candidate : batch.candidates) legal(candidate.source);
}
void legal(const wl::JobResult& result) {
  legal(result.device);
}
void legal(const wl::TuneOptions& options) {
  if (options.device) legal(*options.device);
}

template <typename Decode>
void round_trip(std::string_view bytes, Decode decode) {
  const auto record = decode(bytes);
  if (!record.ok()) return;
  legal(*record);
  const std::string encoded = wl::encode(*record);
  const auto again = decode(encoded);
  WL_CHECK(again.ok(), again.status().ToString());
  WL_CHECK(wl::encode(*again) == encoded, "encoding twice gives other bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // Without this, protobuf prints an error for every string that is not UTF-8.
  google::protobuf::SetLogHandler(nullptr);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      round_trip(bytes, wl::decode_options);
      break;
    case 1:
      round_trip(bytes, wl::decode_record);
      break;
    case 2:
      round_trip(bytes, wl::decode_result);
      break;
    case 3:
      round_trip(bytes, wl::decode_batch);
      break;
    default:
      round_trip(bytes, wl::decode_device);
  }
  return 0;
}
