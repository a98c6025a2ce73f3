// The protocol between a worker and its runner: length-prefixed frames over a private socket. The runner is not
// trusted, so every read is bounds-checked, and an oversized or malformed frame is an error before anything is
// allocated for it.
//
// frame = length of the rest (u32) | kind (u8) | number of the request it belongs to (u32) | payload
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wl {

enum class FrameKind : uint8_t {
  kSetup,
  kLoad,
  kCheck,
  kPeek,
  kTime,
  kCanary,
  kCompile,
  kDescribe,
  kDone,
  kProgress,
  kFailed,
  kFault,
  kLog,
  kChain
};
inline constexpr int kFrameKindCount = 14;
inline constexpr size_t kFrameHeader = 9;
inline constexpr size_t kMaxFrame = 64 << 20;

struct Frame {
  FrameKind kind = FrameKind::kDone;
  uint32_t request = 0;
  std::string payload;
};

class Packer {
 public:
  Packer& integer(int64_t value) { return raw(&value, sizeof value); }
  Packer& real(double value) { return raw(&value, sizeof value); }
  Packer& text(std::string_view value) {
    return integer(static_cast<int64_t>(value.size())).raw(value.data(), value.size());
  }
  std::string take() { return std::move(bytes_); }

 private:
  Packer& raw(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  std::string bytes_;
};

// Reads fields in the order in which they were packed. After a read past the end, all further fields are zero and
// complete() is false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}
  int64_t integer() { return raw<int64_t>(); }
  double real() { return raw<double>(); }
  std::string text();
  // Reads the number of items that follow, each of at least `item_bytes` bytes; 0 if the bytes that are left cannot
  // hold so many.
  int64_t count(size_t item_bytes);
  bool complete() const { return ok_ && left_.empty(); }  // whether all fields were read and no bytes remain

 private:
  template <typename T>
  T raw() {
    T value{};
    if (left_.size() < sizeof value) {
      ok_ = false;
      left_ = {};
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view left_;
  bool ok_ = true;
};

std::string encode(const Frame& frame);

// Collects bytes until a frame is complete.
class FrameReader {
 public:
  void append(const char* data, size_t size) { bytes_.append(data, size); }
  // Returns the next complete frame. NotFound: more bytes are needed. DataLoss: the bytes are not a frame.
  absl::StatusOr<Frame> next();

 private:
  std::string bytes_;
};

// Sends the whole frame; blocks until it is sent. Unavailable: the other end is closed.
absl::Status send_frame(int fd, const Frame& frame);

}  // namespace wl
