// Accepts connections for a server: never more than the process can hold, and never so many from one peer that others
// get none. gRPC's own listener stops for good when the process runs out of descriptors; this one closes surplus
// connections and goes on.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/status.h"

namespace wl {

// Raises the soft limit of open files (RLIMIT_NOFILE) to the hard limit, and returns the new soft limit.
int64_t raise_descriptor_limit();

struct ListenOptions {
  std::vector<std::string> addresses;  // the addresses to listen on, each "HOST:PORT" or "unix:PATH"
  bool tls = false;                    // whether TCP connections use TLS; if not, every HOST must be a loopback address
  bool every_user = false;  // whether all users of this machine may connect to unix sockets, or only the owner
  // Limit on open connections; 0: as many as the descriptor limit allows, but at most 4096.
  int max_connections = 0;
};

class Listener {
 public:
  // Binds and listens, but accepts nothing before start(). InvalidArgument: an address is malformed or not allowed
  // without TLS, or the descriptor limit does not allow so many connections. Unavailable: an address is in use, or a
  // HOST:PORT cannot be bound. AlreadyExists: the path of a unix socket is a file of another kind. FailedPrecondition:
  // another error of a socket.
  static absl::StatusOr<std::unique_ptr<Listener>> open(const ListenOptions& options);
  ~Listener();  // calls stop()
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port(size_t address) const { return ports_[address]; }  // the bound port of an address; 0: it is a unix socket
  int max_connections() const { return max_connections_; }
  // Begins to accept connections; must be called once. `take` is called on the listener's thread with the descriptor of
  // every accepted connection, which `take` owns from then on, and with the index of its address in ListenOptions.
  using Take = std::function<void(int fd, size_t address)>;
  void start(Take take);
  void stop();  // Stops accepting; accepted connections stay open.

 private:
  struct Refused {
    int64_t connections = 0;  // number of connections refused since the last log line
    std::chrono::steady_clock::time_point logged;
  };

  struct End {
    int fd;
    size_t address;
  };

  Listener() = default;
  absl::Status open_path(size_t address, const std::string& name, bool every_user);
  absl::Status open_port(size_t address, const std::string& name, bool tls);
  absl::Status listen_on(int family, const void* at, uint32_t size, size_t address, const std::string& name);
  void serve();
  bool accept_one(const End& end);
  bool full(const std::string& peer) const;
  bool has_enough(const std::string& peer) const;
  void count();
  void refuse(const char* why);

  std::vector<End> ends_;
  std::vector<std::string> paths_;  // files of the unix sockets, which stop() removes
  std::vector<int> ports_;          // the bound port of each address, by the index of the address; 0: a unix socket
  int max_connections_ = 0;
  int wake_ = -1;
  Take take_;
  std::thread thread_;
  // The listener's thread alone uses the following members. gRPC does not report when it closes a connection, so a
  // connection counts as closed once its descriptor no longer refers to the same socket (inode).
  struct Open {
    ino_t socket;
    std::string peer;  // what identifies the peer's address (peer_of()); empty: it is a unix socket
  };
  std::map<int, Open> open_;
  std::map<std::string, int> of_peer_;
  std::chrono::steady_clock::time_point counted_;
  // A spare descriptor: when no other is left, it is closed so that a connection can be accepted and refused.
  int spare_ = -1;
  Refused refused_;
};

}  // namespace wl
