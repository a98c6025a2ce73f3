#include "worker/drivers/frame.h"

#include <sys/socket.h>

#include <cerrno>

#include "compiler/base/status.h"

namespace wl {

std::string Unpacker::text() {
  const int64_t size = integer();
  if (size < 0 || static_cast<uint64_t>(size) > left_.size()) {
    ok_ = false;
    left_ = {};
    return "";
  }
  std::string value(left_.substr(0, static_cast<size_t>(size)));
  left_.remove_prefix(static_cast<size_t>(size));
  return value;
}

int64_t Unpacker::count(size_t item_bytes) {
  const int64_t n = integer();
  if (n >= 0 && static_cast<uint64_t>(n) <= left_.size() / item_bytes) return n;
  ok_ = false;
  left_ = {};
  return 0;
}

std::string encode(const Frame& frame) {
  std::string bytes(kFrameHeader, '\0');
  const auto length = static_cast<uint32_t>(kFrameHeader - 4 + frame.payload.size());
  std::memcpy(bytes.data(), &length, 4);
  bytes[4] = static_cast<char>(frame.kind);
  std::memcpy(bytes.data() + 5, &frame.request, 4);
  return bytes + frame.payload;
}

absl::StatusOr<Frame> FrameReader::next() {
  if (bytes_.size() < kFrameHeader) return absl::NotFoundError("incomplete frame");
  uint32_t length = 0;
  std::memcpy(&length, bytes_.data(), 4);
  const auto kind = static_cast<uint8_t>(bytes_[4]);
  if (length < kFrameHeader - 4 || length > kMaxFrame || kind >= kFrameKindCount)
    return absl::DataLossError(absl::StrCat("not a frame: length ", length, ", kind ", kind));
  if (bytes_.size() < 4 + length) return absl::NotFoundError("incomplete frame");
  Frame frame;
  frame.kind = static_cast<FrameKind>(kind);
  std::memcpy(&frame.request, bytes_.data() + 5, 4);
  frame.payload = bytes_.substr(kFrameHeader, length - (kFrameHeader - 4));
  bytes_.erase(0, 4 + length);
  return frame;
}

absl::Status send_frame(int fd, const Frame& frame) {
  const std::string bytes = encode(frame);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError(absl::StrCat("cannot send to the other process: ", std::strerror(errno)));
    sent += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace wl
