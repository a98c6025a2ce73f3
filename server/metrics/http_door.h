// The connections of the HTTP side. One thread holds all of them, and none can hold it: it reads what has come, hands
// over requests that are whole, and writes what can be written. A request has a time in which all of it must have come,
// and an answer one in which it must be gone, however little moves meanwhile. Where there is no room, whoever has
// waited longest for its own caller gives way, first of the peer that has most.
#pragma once

#include <openssl/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "proto/tls.h"

namespace wl {

// The beginning of a request, up to its empty line; no address takes more.
struct HttpAsked {
  std::string head;
  std::optional<PeerIdentity> certificate;  // the valid one that the caller showed
};
struct HttpSaid {
  std::string bytes;
  bool close = true;  // the connection, once they are sent
};

struct HttpDoorOptions {
  SSL_CTX* context = nullptr;  // null: plain text
  std::function<HttpSaid(const HttpAsked&)> answer;
  // Whether a request is answered on the thread of the connections, before all others: it must not wait for anything.
  std::function<bool(std::string_view head)> at_once;
  std::chrono::milliseconds request{10'000};  // for a handshake and the beginning of a request, or without any
  std::chrono::milliseconds response{30'000};
  size_t connections = 1024, of_peer = 768;  // a peer is an IPv4 address, or 64 bits of an IPv6 one
  size_t head_bytes = 16 << 10;
  int threads = 8;
  size_t waiting = 64;           // requests that wait for a thread
  size_t held_bytes = 64 << 20;  // of answers that are not sent yet
};

class HttpDoor {
 public:
  // Serves the connections of a socket that listens, and owns it. `options.context` must outlive it.
  HttpDoor(int listening, HttpDoorOptions options);
  ~HttpDoor();  // Answers that are being made end first.
  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl
