// SHA-256, and the canonical byte encoding (typed, length-prefixed and versioned) of which the keys of records are
// hashes. Protobuf messages are never hashed, since their serialisation is not canonical.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wl {

std::string sha256_bytes(std::string_view bytes);  // returns the hash as 32 bytes
std::string sha256_hex(std::string_view bytes);    // returns the hash as 64 hexadecimal digits in lower case

// Returns the bytes that hexadecimal digits stand for, two digits each. What is no digit counts as 0; a last single
// digit is left out. (The functions of abseil that do this differ between its releases.)
std::string bytes_of_hex(std::string_view digits);

// Encodes a sequence of typed fields. A field is a tag byte followed by its value in eight bytes (little endian); a
// text field has its length in these eight bytes, and its characters after them. Two sequences of fields are equal if
// and only if their encodings are.
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
