#include "compiler/base/sha256.h"

#include <openssl/evp.h>

#include <bit>
#include <cstring>

#include "compiler/base/status.h"

namespace wl {
namespace {

void append_u64(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

}  // namespace

std::string sha256_bytes(std::string_view bytes) {
  // The algorithm is fetched once, because OpenSSL looks up EVP_sha256() under a lock at every use.
  static const EVP_MD* const kSha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  WL_CHECK(kSha256 != nullptr, "OpenSSL has no SHA-256");
  std::string digest(32, 0);
  WL_CHECK(EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, kSha256,
                      nullptr) == 1,
           "EVP_Digest");
  return digest;
}

std::string sha256_hex(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  const std::string digest = sha256_bytes(bytes);
  std::string out;
  out.reserve(2 * digest.size());
  for (const char byte : digest) {
    const auto value = static_cast<unsigned char>(byte);
    out.push_back(kHex[value >> 4]);
    out.push_back(kHex[value & 15]);
  }
  return out;
}

std::string bytes_of_hex(std::string_view digits) {
  const auto value = [](char digit) {
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : 0;
  };
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(16 * value(digits[i]) + value(digits[i + 1])));
  return bytes;
}

Encoder::Encoder(std::string_view kind, int version) {
  text(kind).integer(version);
}

Encoder& Encoder::text(std::string_view value) {
  bytes_.push_back('t');
  append_u64(bytes_, value.size());
  bytes_.append(value);
  return *this;
}

Encoder& Encoder::integer(int64_t value) {
  bytes_.push_back('i');
  append_u64(bytes_, static_cast<uint64_t>(value));
  return *this;
}

Encoder& Encoder::real(double value) {
  bytes_.push_back('r');
  append_u64(bytes_, std::bit_cast<uint64_t>(value));
  return *this;
}

}  // namespace wl
