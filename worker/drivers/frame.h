// How a worker and its runner talk: length-prefixed frames over a socket of their own. The runner's side is untrusted,
// so every read is bounds-checked and an oversized or malformed frame is an error, never an allocation.
//   frame = length of what follows (u32) | kind (u8) | number of the request it belongs to (u32) | payload
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
  kFault
};
inline constexpr int kFrameKindCount = 12;
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

// Reads in the order of packing. After a read past the end everything is zero and `complete` is false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}
  int64_t integer() { return raw<int64_t>(); }
  double real() { return raw<double>(); }
  std::string text();
  // A number of items to follow, each of at least `item_bytes`: 0 when that many cannot follow.
  int64_t count(size_t item_bytes);
  bool complete() const { return ok_ && left_.empty(); }  // everything was there and nothing is left

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

// Collects bytes until a frame is whole.
class FrameReader {
 public:
  void append(const char* data, size_t size) { bytes_.append(data, size); }
  // Takes the next whole frame; NotFound when more bytes are needed, DataLoss when they cannot be a frame.
  absl::StatusOr<Frame> next();

 private:
  std::string bytes_;
};

// Blocking: the whole frame, or Unavailable.
absl::Status send_frame(int fd, const Frame& frame);

}  // namespace wl
