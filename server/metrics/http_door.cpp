#include "server/metrics/http_door.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "proto/dial.h"
#include "server/metrics/http_wire.h"
#include "server/metrics/https.h"

namespace wl {
namespace {

using HttpClock = std::chrono::steady_clock;

// Numbers that epoll events carry: those of the listening socket and of the wake-up descriptor. Connections have
// numbers above kFirst.
constexpr uint64_t kListening = 0, kWake = 1, kFirst = 2;
constexpr auto kLookEvery = std::chrono::milliseconds(100);
constexpr int kMostRequests = 100;  // most requests on one connection
// Most connections that are accepted in a row, before existing ones are handled again.
constexpr int kMostAccepted = 64;
constexpr auto kAcceptAgain = std::chrono::milliseconds(100);
constexpr std::string_view kEnd = "\r\n\r\n";
constexpr std::string_view kTooLong =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
constexpr std::string_view kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

}  // namespace

struct HttpDoor::Impl {
  struct Connection {
    enum class State { kShaking, kReading, kAnswering, kWriting } state = State::kReading;
    HttpWire wire;
    std::string peer, in, out;
    size_t sent = 0;
    int requests = 0;
    bool close = false, watched = true;
    HttpClock::time_point since, until;  // when the connection entered its state, and when this state must have ended
    std::optional<PeerIdentity> certificate;
  };

  using Connections = std::map<uint64_t, Connection>;

  HttpDoorOptions options;
  int listening = -1, epoll = -1, wake = -1;
  uint64_t last = kFirst;
  Connections all;
  std::map<std::string, size_t> of_peer;
  size_t held = 0;                       // bytes of all answers that are not sent yet
  HttpClock::time_point accept_again{};  // when to accept again, after no file descriptor was left for a connection
  bool accepting = true;

  std::mutex mutex;  // guards the next four members
  std::condition_variable changed;
  std::deque<std::pair<uint64_t, HttpAsked>> asked;
  std::vector<std::pair<uint64_t, HttpSaid>> said;
  bool stopping = false;

  std::vector<std::thread> threads;
  std::thread thread;

  void serve();
  void work();
  void accept_all();
  bool make_room(const std::string& peer);
  bool evict(const std::string* of);
  void step(Connections::iterator at);
  bool read(Connections::iterator at);
  bool take_request(Connections::iterator at);
  bool write(Connections::iterator at);
  void say(Connections::iterator at, HttpSaid what);
  void begin(Connection& one, Connection::State state);
  void watch(Connections::iterator at);
  void end(Connections::iterator at);
  void take_answers();
  void end_late(HttpClock::time_point now);
  void poke() const {
    const uint64_t one = 1;
    while (::write(wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
};

HttpDoor::HttpDoor(int listening, HttpDoorOptions options) : impl_(std::make_unique<Impl>()) {
  Impl& impl = *impl_;
  impl.options = std::move(options);
  impl.listening = listening;
  fcntl(listening, F_SETFL, fcntl(listening, F_GETFL) | O_NONBLOCK);
  listen(listening, SOMAXCONN);
  impl.epoll = epoll_create1(EPOLL_CLOEXEC);
  impl.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const auto& [fd, name] : {std::pair(listening, kListening), std::pair(impl.wake, kWake)}) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = name}};
    epoll_ctl(impl.epoll, EPOLL_CTL_ADD, fd, &event);
  }
  for (int i = 0; i < impl.options.threads; ++i) impl.threads.emplace_back([&impl] { impl.work(); });
  impl.thread = std::thread([&impl] { impl.serve(); });
}

HttpDoor::~HttpDoor() {
  Impl& impl = *impl_;
  {
    const std::lock_guard lock(impl.mutex);
    impl.stopping = true;
  }
  impl.changed.notify_all();
  impl.poke();
  impl.thread.join();
  for (std::thread& thread : impl.threads) thread.join();
  while (!impl.all.empty()) impl.end(impl.all.begin());
  for (const int fd : {impl.listening, impl.epoll, impl.wake}) close(fd);
}

// Makes answers to requests until the object is destroyed. Runs on each of `threads`.
void HttpDoor::Impl::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stopping || !asked.empty(); });
    if (stopping) return;
    const auto [id, question] = std::move(asked.front());
    asked.pop_front();
    lock.unlock();
    HttpSaid answer = options.answer(question);
    lock.lock();
    said.emplace_back(id, std::move(answer));
    poke();
  }
}

void HttpDoor::Impl::serve() {
  std::array<epoll_event, 64> events = {};
  for (;;) {
    const int count =
        epoll_wait(epoll, events.data(), static_cast<int>(events.size()), static_cast<int>(kLookEvery.count()));
    for (int i = 0; i < count; ++i) {
      const uint64_t name = events[static_cast<size_t>(i)].data.u64;
      if (name == kListening) {
        accept_all();
      } else if (name == kWake) {
        uint64_t ignored = 0;
        (void)!::read(wake, &ignored, sizeof ignored);
      } else if (const auto at = all.find(name); at != all.end()) {
        step(at);
      }
    }
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
    }
    take_answers();
    end_late(HttpClock::now());
  }
}

void HttpDoor::Impl::accept_all() {
  for (int i = 0; i < kMostAccepted; ++i) {
    sockaddr_storage address = {};
    socklen_t size = sizeof address;
    const int fd = accept4(listening, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      // No descriptor is left: a connection that waits for its caller is closed; if there is none, accepting has to
      // wait.
      if ((errno == EMFILE || errno == ENFILE) && evict(nullptr)) continue;
      epoll_event none = {.events = 0, .data = {.u64 = kListening}};
      epoll_ctl(epoll, EPOLL_CTL_MOD, listening, &none);
      accepting = false;
      accept_again = HttpClock::now() + kAcceptAgain;
      return;
    }
    const std::string peer = peer_of(address);
    if (!make_room(peer)) {
      close(fd);
      continue;
    }
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const auto at = all.emplace(++last, Connection()).first;
    Connection& one = at->second;
    one.wire.fd = fd;
    one.peer = peer;
    ++of_peer[peer];
    begin(one, options.context == nullptr ? Connection::State::kReading : Connection::State::kShaking);
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = at->first}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0 ||
        (options.context != nullptr &&
         ((one.wire.session = SSL_new(options.context)) == nullptr || SSL_set_fd(one.wire.session, fd) != 1))) {
      end(at);
    }
  }
}

// Makes room for a connection of a peer. Returns false if no connection can be closed, because all are being answered.
bool HttpDoor::Impl::make_room(const std::string& peer) {
  const auto count = of_peer.find(peer);
  if (count != of_peer.end() && count->second >= options.of_peer && !evict(&peer)) return false;
  return all.size() < options.connections || evict(nullptr);
}

// Closes the connection that has waited longest for its own caller: first one that waits for a request, else one whose
// caller has to take its answer. It is a connection of the peer `of` or, if that is null, of the peer with the most
// connections. Returns false if there is none.
bool HttpDoor::Impl::evict(const std::string* of) {
  const auto most = std::max_element(of_peer.begin(), of_peer.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (of == nullptr && most == of_peer.end()) return false;
  const std::string peer = of == nullptr ? most->first : *of;
  auto victim = all.end();
  for (auto at = all.begin(); at != all.end(); ++at) {
    const Connection& one = at->second;
    if (one.peer != peer || one.state == Connection::State::kAnswering) continue;
    const auto rank = [](const Connection& of_one) {
      return std::pair(of_one.state == Connection::State::kWriting, of_one.since);
    };
    if (victim == all.end() || rank(one) < rank(victim->second)) victim = at;
  }
  if (victim == all.end()) return false;
  end(victim);
  return true;
}

void HttpDoor::Impl::begin(Connection& one, Connection::State state) {
  one.state = state;
  one.since = HttpClock::now();
  one.until = one.since + (state == Connection::State::kWriting ? options.response : options.request);
}

// Reads from and writes to a connection for as long as that does not block.
void HttpDoor::Impl::step(Connections::iterator at) {
  Connection& one = at->second;
  if (one.state == Connection::State::kShaking) {
    const std::optional<bool> shaken = one.wire.shake();
    if (!shaken) return watch(at);
    if (!*shaken) return end(at);
    one.certificate = identity_of_peer(one.wire.session);
    one.state = Connection::State::kReading;  // the deadline of the handshake also holds for the request
  }
  for (;;) {
    if (one.state == Connection::State::kReading) {
      if (!read(at)) return end(at);
      if (one.state == Connection::State::kReading) break;
    }
    if (one.state == Connection::State::kAnswering) break;
    if (!write(at)) return end(at);
    if (one.state == Connection::State::kWriting) break;
  }
  watch(at);
}

// Reads from a connection until the head of a request is complete or no data is left. Returns false if the caller has
// disconnected.
bool HttpDoor::Impl::read(Connections::iterator at) {
  Connection& one = at->second;
  if (take_request(at)) return true;  // the request arrived together with the one before it
  std::array<char, 4096> buffer = {};
  for (;;) {
    const ssize_t got = one.wire.receive(buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) return false;
    one.in.append(buffer.data(), static_cast<size_t>(got));
    if (take_request(at)) return true;
  }
}

// If the head of a request has arrived or is too long, handles the request and returns true; otherwise returns false.
bool HttpDoor::Impl::take_request(Connections::iterator at) {
  Connection& one = at->second;
  const size_t end = one.in.find(kEnd);
  if (std::min(end, one.in.size()) > options.head_bytes) {
    say(at, {std::string(kTooLong), true});
    return true;
  }
  if (end == std::string::npos) return false;
  HttpAsked question{one.in.substr(0, end + kEnd.size()), one.certificate};
  one.in.erase(0, question.head.size());
  begin(one, Connection::State::kAnswering);
  if (options.at_once(question.head)) {
    say(at, options.answer(question));
    return true;
  }
  bool taken = false;
  {
    const std::lock_guard lock(mutex);
    taken = asked.size() < options.waiting && held < options.held_bytes;
    if (taken) asked.emplace_back(at->first, std::move(question));
  }
  if (taken)
    changed.notify_one();
  else
    say(at, {std::string(kBusy), true});
  return true;
}

void HttpDoor::Impl::say(Connections::iterator at, HttpSaid what) {
  Connection& one = at->second;
  one.out = std::move(what.bytes);
  one.sent = 0;
  // The number of requests on a connection is limited, because a caller that asks without a pause could otherwise
  // occupy the thread that handles all connections.
  one.close = what.close || ++one.requests == kMostRequests;
  held += one.out.size();
  begin(one, Connection::State::kWriting);
}

// Sends as much of the answer as the socket takes now. Returns false if the connection has to be closed.
bool HttpDoor::Impl::write(Connections::iterator at) {
  Connection& one = at->second;
  while (one.sent < one.out.size()) {
    const ssize_t put = one.wire.transmit(std::string_view(one.out).substr(one.sent));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (put == 0) return false;
    one.sent += static_cast<size_t>(put);
  }
  held -= one.out.size();
  one.out = std::string();
  one.sent = 0;
  if (one.close) {
    // Data that has arrived is read first: if it were unread, close() would reset the connection and perhaps lose the
    // answer.
    std::array<char, 1 << 16> ignored = {};
    (void)!recv(one.wire.fd, ignored.data(), ignored.size(), 0);
    return false;
  }
  begin(one, Connection::State::kReading);
  return true;
}

void HttpDoor::Impl::watch(Connections::iterator at) {
  Connection& one = at->second;
  // While an answer is being made, the socket is not watched, so a disconnect is noticed only when the answer is sent.
  const bool watched = one.state != Connection::State::kAnswering;
  epoll_event event = {.events = one.wire.wants_write ? EPOLLOUT : EPOLLIN, .data = {.u64 = at->first}};
  if (watched || one.watched)
    epoll_ctl(epoll, !watched ? EPOLL_CTL_DEL : one.watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, one.wire.fd, &event);
  one.watched = watched;
}

void HttpDoor::Impl::end(Connections::iterator at) {
  Connection& one = at->second;
  held -= one.out.size();
  one.wire.end(/*politely=*/one.state != Connection::State::kShaking);
  if (const auto count = of_peer.find(one.peer); --count->second == 0) of_peer.erase(count);
  all.erase(at);
}

void HttpDoor::Impl::take_answers() {
  std::vector<std::pair<uint64_t, HttpSaid>> made;
  {
    const std::lock_guard lock(mutex);
    made.swap(said);
  }
  for (auto& [id, answer] : made) {
    const auto at = all.find(id);
    if (at == all.end()) continue;
    say(at, std::move(answer));
    step(at);
  }
}

void HttpDoor::Impl::end_late(HttpClock::time_point now) {
  for (auto at = all.begin(); at != all.end();) {
    const auto next = std::next(at);
    if (at->second.state != Connection::State::kAnswering && at->second.until < now) end(at);
    at = next;
  }
  if (accepting || now < accept_again) return;
  accepting = true;
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kListening}};
  epoll_ctl(epoll, EPOLL_CTL_MOD, listening, &event);
}

}  // namespace wl
