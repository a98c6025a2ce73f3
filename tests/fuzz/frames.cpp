// For any bytes from a runner, in pieces of any size, the reader of frames returns frames or an error. The payload of
// every frame is a message that packs to the same bytes, or gives an error. The first byte of the fuzzer's input is the
// size of the pieces, minus one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "compiler/base/status.h"
#include "worker/drivers/frame.h"
#include "worker/drivers/messages.h"

namespace {

template <typename Message>
void round_trip(const std::string& bytes) {
  const auto message = wl::unpack<Message>(bytes);
  if (!message.ok()) {
    WL_CHECK(absl::IsDataLoss(message.status()), message.status().ToString());
    return;
  }
  const std::string packed = wl::pack(*message);
  const auto again = wl::unpack<Message>(packed);
  WL_CHECK(again.ok() && wl::pack(*again) == packed, "a message that was read is not read again");
}

template <typename... Messages>
void round_trips(const std::string& bytes) {
  (round_trip<Messages>(bytes), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  round_trips<wl::SetupCommand, wl::LoadCommand, wl::ChainCommand, wl::CheckCommand, wl::CheckAnswer, wl::PeekCommand,
              wl::PeekAnswer, wl::TimeCommand, wl::TimeAnswer, wl::CanaryAnswer, wl::CompileCommand, wl::CompileAnswer,
              wl::DescribeAnswer, wl::ProgressNote>(bytes);
  wl::FrameReader reader;
  const size_t piece = 1 + data[0];
  for (size_t at = 0; at < bytes.size(); at += piece) {
    reader.append(bytes.data() + at, std::min(piece, bytes.size() - at));
    for (;;) {
      const auto frame = reader.next();
      if (frame.ok()) {
        const std::string sent = wl::encode(*frame);
        WL_CHECK(sent.size() == wl::kFrameHeader + frame->payload.size() && sent.ends_with(frame->payload),
                 "another frame");
        continue;
      }
      if (absl::IsDataLoss(frame.status())) return 0;
      WL_CHECK(absl::IsNotFound(frame.status()), frame.status().ToString());
      break;
    }
  }
  return 0;
}
