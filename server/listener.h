// Takes connections in for a server, never more than the process can hold, and never so many of one peer that no other
// has any. gRPC's own listener stops for good when
// the process has no descriptor left; this one closes what is too much and goes on.
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

// Lets the process open as many files as its hard limit allows. Returns how many that is.
int64_t raise_descriptor_limit();

struct ListenOptions {
  std::vector<std::string> addresses;  // "HOST:PORT" or "unix:PATH"
  bool tls = false;                    // without it every HOST must be a loopback address
  bool every_user = false;             // of this machine may connect to a unix socket; without it the owner alone
  int max_connections = 0;             // at once; 0: as many as the limit of descriptors leaves, at most 4096
};

class Listener {
 public:
  // Listens, but accepts nothing before start(). InvalidArgument: an address cannot be listened on by its form, or
  // the limit of descriptors does not leave so many connections. Unavailable: an address is in use.
  static absl::StatusOr<std::unique_ptr<Listener>> open(const ListenOptions& options);
  ~Listener();  // stop()
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port(size_t address) const { return ports_[address]; }  // 0 for "unix:PATH"
  int max_connections() const { return max_connections_; }
  // Once. `take` is called on the listener's thread with every connection and the number of the address by which it
  // came in, and owns it from then on.
  using Take = std::function<void(int fd, size_t address)>;
  void start(Take take);
  void stop();  // Connections that were taken stay.

 private:
  struct Refused {
    int64_t connections = 0;  // since the last line of the log
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
  std::vector<std::string> paths_;  // of socket files, to be removed
  std::vector<int> ports_;          // by address
  int max_connections_ = 0;
  int wake_ = -1;
  Take take_;
  std::thread thread_;
  // The listener's thread only. gRPC does not say when it closes a connection, so a descriptor that no longer has the
  // socket of its connection is one that was closed.
  struct Open {
    ino_t socket;
    std::string peer;  // empty: of a unix socket
  };
  std::map<int, Open> open_;
  std::map<std::string, int> of_peer_;
  std::chrono::steady_clock::time_point counted_;
  int spare_ = -1;  // a descriptor to give up when none is left
  Refused refused_;
};

}  // namespace wl
