// SHA-256 and the canonical byte encoding that keys are hashed from: typed, length-prefixed, versioned; never a
// protobuf's bytes, whose serialisation is not canonical.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wl {

std::string sha256_hex(std::string_view bytes);

// Appends typed fields: tag byte, length or value in little endian, payload. Equal field sequences <=> equal bytes.
class Encoder {
 public:
  explicit Encoder(std::string_view kind, int version);
  Encoder& text(std::string_view value);
  Encoder& integer(int64_t value);
  Encoder& real(double value);
  std::string hash() const { return sha256_hex(bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace wl
