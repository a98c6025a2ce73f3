// A non-blocking socket, with or without TLS, which end() closes.
#pragma once

#include <openssl/types.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace wl {

struct HttpWire {
  int fd = -1;
  SSL* session = nullptr;  // the TLS session; null: the connection is in plain text
  // Whether the last operation waits until the socket can be written; otherwise it waits until the socket can be read.
  bool wants_write = false;

  std::optional<bool> shake();  // whether the TLS handshake has succeeded; nullopt: it is still going on
  // Like recv() and send(), return -1 with EAGAIN if nothing can be done now, 0 at the end, and 0 after a TLS error.
  ssize_t receive(char* to, size_t size);
  ssize_t transmit(std::string_view text);
  void end(bool politely);  // closes the socket; `politely`: TLS's notice of the end is sent first
};

}  // namespace wl
