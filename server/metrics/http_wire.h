// A non-blocking socket, with or without TLS. end() closes it.
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
  bool wants_write = false;  // the last operation waits until the socket can be written; else until it can be read

  std::optional<bool> shake();  // whether the TLS handshake has succeeded; nullopt: it goes on
  // As recv() and send(): -1 with EAGAIN if nothing can be done now, 0 at the end, and 0 after an error of TLS.
  ssize_t receive(char* to, size_t size);
  ssize_t transmit(std::string_view text);
  void end(bool politely);  // politely: with TLS's notice of the end
};

}  // namespace wl
