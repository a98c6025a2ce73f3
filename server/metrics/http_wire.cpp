#include "server/metrics/http_wire.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace wl {
namespace {

constexpr size_t kMostAtOnce = 1 << 18;

// Translates the result of an OpenSSL call to what recv() and send() return.
ssize_t outcome_of(HttpWire& wire, int done) {
  if (done > 0) return done;
  const int why = SSL_get_error(wire.session, done);
  wire.wants_write = why == SSL_ERROR_WANT_WRITE;
  errno = EAGAIN;
  return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? -1 : 0;
}

}  // namespace

std::optional<bool> HttpWire::shake() {
  ERR_clear_error();
  const int done = SSL_accept(session);
  if (done == 1) {
    wants_write = false;
    return true;
  }
  if (outcome_of(*this, std::min(done, 0)) < 0) return std::nullopt;
  return false;
}

ssize_t HttpWire::receive(char* to, size_t size) {
  wants_write = false;
  if (session == nullptr) return recv(fd, to, size, 0);
  ERR_clear_error();
  return outcome_of(*this, SSL_read(session, to, static_cast<int>(size)));
}

ssize_t HttpWire::transmit(std::string_view text) {
  const size_t size = std::min(text.size(), kMostAtOnce);
  wants_write = true;
  if (session == nullptr) return send(fd, text.data(), size, MSG_NOSIGNAL);
  ERR_clear_error();
  return outcome_of(*this, SSL_write(session, text.data(), static_cast<int>(size)));
}

void HttpWire::end(bool politely) {
  if (session != nullptr && politely) {
    ERR_clear_error();
    SSL_shutdown(session);
  }
  SSL_free(session);
  close(fd);
}

}  // namespace wl
