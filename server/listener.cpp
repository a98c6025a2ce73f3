#include "server/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "proto/dial.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kReservedDescriptors = 128;  // number of file descriptors kept for store, object files and gRPC
// Maximum number of connections by default; one takes some ten kilobytes of memory.
constexpr int64_t kMostConnections = 4096;
constexpr int kMostKept = 64;  // maximum number of connections that are reserved for unix sockets
constexpr auto kCountEvery = std::chrono::milliseconds(20);
constexpr auto kLogEvery = std::chrono::seconds(1);
constexpr int kRetryMs = 50;  // milliseconds of pause after accept4() failed for lack of memory or descriptors

absl::StatusOr<sockaddr_un> parse_path(const std::string& path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
    return invalid("listen address unix:", path, ": expected unix:PATH with at most ",
                   sizeof(sockaddr_un::sun_path) - 1, " bytes of path");
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Removes a socket file on which no process listens, such as a killed process leaves behind.
absl::Status clear_socket(const sockaddr_un& address) {
  const char* const path = address.sun_path;
  struct stat found = {};
  if (lstat(path, &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode))
    return absl::AlreadyExistsError(
        cat("listen address unix:", path, ": is a file that is no socket; name another path"));
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return absl::UnavailableError(cat("listen address unix:", path, ": ", std::strerror(errno)));
  const int failed = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  close(probe);
  if (failed == 0)
    return absl::UnavailableError(
        cat("listen address unix:", path, ": is in use by another process; stop it or choose another path"));
  // An error such as EACCES does not tell whether a process listens: the socket may be another user's.
  if (failed != ECONNREFUSED)
    return absl::UnavailableError(cat("listen address unix:", path,
                                      ": whether another process listens there cannot be told (", std::strerror(failed),
                                      "); remove the file or choose another path"));
  unlink(path);
  return absl::OkStatus();
}

absl::StatusOr<int> connections_of(int wanted) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  const int64_t left = static_cast<int64_t>(std::min<rlim_t>(files.rlim_cur, rlim_t{1} << 30)) - kReservedDescriptors;
  if (left < std::max(wanted, 1)) {
    return invalid("connections: the process may open ", files.rlim_cur, " files, which leaves ",
                   std::max<int64_t>(left, 0), " for connections; raise the limit (ulimit -n)",
                   wanted > 0 ? " or ask for fewer connections" : "");
  }
  return static_cast<int>(wanted > 0 ? wanted : std::min(left, kMostConnections));
}

}  // namespace

int64_t raise_descriptor_limit() {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  getrlimit(RLIMIT_NOFILE, &files);
  return static_cast<int64_t>(files.rlim_cur);
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::open(const ListenOptions& options) {
  std::unique_ptr<Listener> out(new Listener);
  WL_ASSIGN_OR_RETURN(out->max_connections_, connections_of(options.max_connections));
  out->ports_.resize(options.addresses.size());
  for (size_t i = 0; i < options.addresses.size(); ++i) {
    const std::string& name = options.addresses[i];
    WL_RETURN_IF_ERROR(name.starts_with("unix:") ? out->open_path(i, name, options.every_user)
                                                 : out->open_port(i, name, options.tls));
  }
  return out;
}

absl::Status Listener::open_path(size_t address, const std::string& name, bool every_user) {
  WL_ASSIGN_OR_RETURN(const sockaddr_un at, parse_path(name.substr(5)));
  WL_RETURN_IF_ERROR(clear_socket(at));
  WL_RETURN_IF_ERROR(listen_on(AF_UNIX, &at, sizeof at, address, name));
  if (every_user) chmod(at.sun_path, 0666);
  return absl::OkStatus();
}

absl::Status Listener::open_port(size_t address, const std::string& name, bool tls) {
  const auto parsed = parse_listen_address(name, tls);
  if (!parsed.ok())
    return invalid("listen address ", name, ": ", std::string(parsed.status().message()), " or unix:PATH");
  const HostPort& at = *parsed;
  addrinfo wanted = {};
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(at.host.c_str(), cat(at.port).c_str(), &wanted, &found); error != 0)
    return absl::UnavailableError(cat("listen address ", name, ": ", gai_strerror(error)));
  const size_t before = ends_.size();
  absl::Status status;
  for (const addrinfo* one = found; one != nullptr && !absl::IsUnavailable(status); one = one->ai_next) {
    // If the host name has several addresses and port 0 was asked for, all of them get the port that the first one got.
    const auto port = htons(static_cast<uint16_t>(ports_[address]));
    if (port != 0 && one->ai_family == AF_INET) reinterpret_cast<sockaddr_in*>(one->ai_addr)->sin_port = port;
    if (port != 0 && one->ai_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(one->ai_addr)->sin6_port = port;
    status = listen_on(one->ai_family, one->ai_addr, one->ai_addrlen, address, name);
  }
  freeaddrinfo(found);
  // One bound address suffices: without IPv6, "localhost" may still resolve to an IPv6 address, which cannot be bound.
  if (ends_.size() > before && !absl::IsUnavailable(status)) return absl::OkStatus();
  return absl::UnavailableError(status.message());
}

absl::Status Listener::listen_on(int family, const void* at, uint32_t size, size_t address, const std::string& name) {
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::FailedPreconditionError(cat("listen address ", name, ": ", std::strerror(errno)));
  const int yes = 1;
  if (family != AF_UNIX) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);  // accepted connections inherit TCP_NODELAY
  }
  const bool bound = bind(fd, static_cast<const sockaddr*>(at), size) == 0;
  // The file's mode is restricted before listen(), since processes can connect only after that call.
  if (bound && family == AF_UNIX) {
    paths_.push_back(name.substr(5));
    chmod(paths_.back().c_str(), 0600);
  }
  if (!bound || listen(fd, SOMAXCONN) != 0) {
    const int error = errno;
    close(fd);
    const std::string message =
        cat("listen address ", name, ": cannot be listened on; it is in use by another process ",
            "or not of this machine: choose another (", std::strerror(error), ")");
    return error == EADDRINUSE ? absl::UnavailableError(message) : absl::FailedPreconditionError(message);
  }
  ends_.push_back({fd, address});
  int& port = ports_[address];
  sockaddr_storage own = {};
  socklen_t own_size = sizeof own;
  if (port == 0 && getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) == 0) {
    if (own.ss_family == AF_INET) port = ntohs(reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
    if (own.ss_family == AF_INET6) port = ntohs(reinterpret_cast<const sockaddr_in6*>(&own)->sin6_port);
  }
  return absl::OkStatus();
}

Listener::~Listener() {
  stop();
}

void Listener::start(Take take) {
  take_ = std::move(take);
  wake_ = eventfd(0, EFD_CLOEXEC);
  spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  thread_ = std::thread([this] { serve(); });
}

void Listener::stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (write(wake_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
    close(wake_);
    if (spare_ >= 0) close(spare_);
  }
  for (const End& end : ends_) close(end.fd);
  ends_.clear();
  for (const std::string& path : paths_) unlink(path.c_str());
  paths_.clear();
}

void Listener::serve() {
  std::vector<pollfd> ends = {{wake_, POLLIN, 0}};
  for (const End& end : ends_) ends.push_back({end.fd, POLLIN, 0});
  for (;;) {
    if (poll(ends.data(), ends.size(), -1) < 0) continue;
    if (ends[0].revents != 0) return;
    for (size_t i = 1; i < ends.size(); ++i) {
      if (ends[i].revents == 0 || accept_one(ends_[i - 1])) continue;
      pollfd& woken = ends[0];
      poll(&woken, 1, kRetryMs);
    }
  }
}

// Accepts or refuses one pending connection, if there is one. Returns false if accept4() failed for lack of memory or
// descriptors.
bool Listener::accept_one(const End& end) {
  sockaddr_storage from = {};
  socklen_t from_size = sizeof from;
  int fd = accept4(end.fd, reinterpret_cast<sockaddr*>(&from), &from_size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EMFILE && spare_ >= 0) {
      close(spare_);
      fd = accept4(end.fd, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) close(fd);
      spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      refuse("the process has no descriptor left");
      return fd >= 0;
    }
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  }
  if (const auto before = open_.find(fd); before != open_.end()) {
    --of_peer_[before->second.peer];
    open_.erase(before);
  }
  const std::string peer = peer_of(from);
  if (full(peer) || has_enough(peer)) {
    count();
    if (full(peer) || has_enough(peer)) {
      close(fd);
      refuse(has_enough(peer) ? "one peer has as many open as any may have" : "as many as allowed are open");
      return true;
    }
  }
  struct stat own = {};
  fstat(fd, &own);
  open_.emplace(fd, Open{own.st_ino, peer});
  ++of_peer_[peer];
  take_(fd, end.address);
  return true;
}

// Whether the limit on open connections allows no further one of this peer. The last ones are reserved for unix sockets
// (their `peer` is empty), by which the operator connects.
bool Listener::full(const std::string& peer) const {
  const int kept = peer.empty() ? 0 : std::min(kMostKept, max_connections_ / 8);
  return static_cast<int>(open_.size()) >= max_connections_ - kept;
}

// Whether a peer has as many connections open as one peer may have: three quarters of all. Unix sockets have no such
// limit, since their callers are known users of this machine.
bool Listener::has_enough(const std::string& peer) const {
  const auto count = of_peer_.find(peer);
  return !peer.empty() && count != of_peer_.end() && count->second >= max_connections_ - max_connections_ / 4;
}

// Forgets closed connections and counts those of each peer anew, at most once every 20 ms (kCountEvery).
void Listener::count() {
  const Clock::time_point now = Clock::now();
  if (now - counted_ < kCountEvery) return;
  counted_ = now;
  of_peer_.clear();
  std::erase_if(open_, [&](const auto& one) {
    struct stat there = {};
    if (fstat(one.first, &there) != 0 || !S_ISSOCK(there.st_mode) || there.st_ino != one.second.socket) return true;
    ++of_peer_[one.second.peer];
    return false;
  });
}

void Listener::refuse(const char* why) {
  ++refused_.connections;
  const Clock::time_point now = Clock::now();
  if (now - refused_.logged < kLogEvery) return;
  spdlog::warn("refused {} connections: {} ({} open, --max-connections {})", refused_.connections, why, open_.size(),
               max_connections_);
  refused_ = {0, now};
}

}  // namespace wl
