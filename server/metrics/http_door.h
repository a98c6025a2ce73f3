// The connections of the HTTP server. One thread handles all of them and never blocks: it reads what has arrived, hands
// over complete requests, and writes what a socket takes. A request must arrive completely within a fixed time, and an
// answer must be sent completely within another fixed time, however slowly bytes move meanwhile. If there is no room
// for a new connection, the one that has waited longest for its own caller is closed, among those of the peer with the
// most connections.
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

// The head of a request, up to its empty line. Requests have no body in this server.
struct HttpAsked {
  std::string head;
  std::optional<PeerIdentity> certificate;  // names in the caller's verified certificate; nullopt: it showed none
};
struct HttpSaid {
  std::string bytes;
  bool close = true;  // whether the connection is closed once `bytes` are sent
};

struct HttpDoorOptions {
  SSL_CTX* context = nullptr;  // the settings of TLS; null: connections are in plain text
  std::function<HttpSaid(const HttpAsked&)> answer;
  // Whether the request with this head is answered at once, by the thread that handles all connections. Making the
  // answer to such a request must never block.
  std::function<bool(std::string_view head)> at_once;
  std::chrono::milliseconds request{10'000};  // time limit for a handshake, a request's head, or an idle connection
  std::chrono::milliseconds response{30'000};
  // Most connections, in all and of one peer. A peer is an IPv4 address, or the first 64 bits of an IPv6 address.
  size_t connections = 1024, of_peer = 768;
  size_t head_bytes = 16 << 10;
  int threads = 8;
  size_t waiting = 64;           // most requests that wait for one of `threads`
  size_t held_bytes = 64 << 20;  // most bytes of answers that are not sent yet
};

class HttpDoor {
 public:
  // Listens on the bound socket `listening`, which this object owns from then on, and serves its connections.
  // `options.context` must outlive the object.
  HttpDoor(int listening, HttpDoorOptions options);
  ~HttpDoor();  // Waits until answers that are being made are complete.
  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl
