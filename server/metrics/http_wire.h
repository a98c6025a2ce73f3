// A socket that does not block, with or without TLS. It is closed by end().
#pragma once

#include <openssl/types.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace wl {

struct HttpWire {
  int fd = -1;
  SSL* session = nullptr;    // null: plain text
  bool wants_write = false;  // what was tried last goes on once the socket can be written, else once it can be read

  std::optional<bool> shake();  // whether the handshake has succeeded; nullopt: it goes on
  // As recv() and send(): -1 with EAGAIN when nothing can be done now, and 0 at the end.
  ssize_t receive(char* to, size_t size);
  ssize_t transmit(std::string_view text);
  void end(bool politely);  // politely: says so by TLS
};

}  // namespace wl
