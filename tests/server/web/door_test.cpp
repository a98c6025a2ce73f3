// The connections of the HTTP port, with callers that are slow, silent, send without end or do not read.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <list>
#include <thread>

#include "server/metrics/http.h"
#include "server/metrics/http_door.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kHealth[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

// A connection to a port of this machine.
class Wire {
 public:
  explicit Wire(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  ~Wire() { close(fd_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  bool say(const std::string& text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Returns what is received until the other end closes the connection or `until` was received.
  std::string hear(const std::string& until = "\r\n\r\n") const {
    std::string heard;
    char buffer[65536];
    while (heard.find(until) == std::string::npos) {
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      heard.append(buffer, static_cast<size_t>(got));
    }
    return heard;
  }
  bool closed() const {  // whether the other end has closed the connection by now
    pollfd one = {fd_, POLLIN, 0};
    char byte = 0;
    return poll(&one, 1, 0) == 1 && recv(fd_, &byte, 1, MSG_PEEK) <= 0;
  }
  // Sends a byte again and again until the other end has closed the connection.
  void drip() const {
    while (!closed() && say("x")) std::this_thread::yield();
  }
  void wait_for_end() const {
    while (!closed()) std::this_thread::yield();
  }

 private:
  const int fd_;
};

struct Listening {
  Listening() : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port = ntohs(at.sin_port);
    EXPECT_EQ(listen(fd, SOMAXCONN), 0);
  }
  const int fd;
  int port = 0;
};

// Returns options of an HttpDoor that answers each request with the result of `answer` for the request's path.
HttpDoorOptions options_with(std::function<std::string(const std::string& path)> answer) {
  HttpDoorOptions options;
  options.answer = [answer = std::move(answer)](const HttpAsked& asked) {
    const size_t from = asked.head.find(' ') + 1;
    return HttpSaid{answer(asked.head.substr(from, asked.head.find(' ', from) - from)), /*close=*/false};
  };
  options.at_once = [](std::string_view head) { return head.starts_with("GET /healthz"); };
  return options;
}

TEST(Door, ThirtyThreeConnectionsAndMoreDoNotStopTheServer) {
  const auto server = HttpServer::open({.address = "127.0.0.1:0",
                                        .tls = {},
                                        .metrics = [](const HttpQuestion&) { return std::string("m 1\n"); },
                                        .not_ready = [] { return std::string(); }});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = std::stoi((*server)->address().substr((*server)->address().rfind(':') + 1));
  std::list<Wire> slow;
  for (int i = 0; i < 200; ++i) {
    slow.emplace_back(port);
    (void)slow.back().say(i % 2 == 0 ? "GET /metrics HTTP/1.1\r\nX: " : "");
    const Wire probe(port);
    ASSERT_TRUE(probe.say(kHealth));
    EXPECT_THAT(probe.hear("alive"), StartsWith("HTTP/1.1 200 OK")) << i;
  }
  const Wire another(port);
  ASSERT_TRUE(another.say("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\nGET /readyz HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(another.hear("ready\n"), HasSubstr("m 1\n")) << "one after the other";
  const Wire parts(port);
  ASSERT_TRUE(parts.say("GET /metrics HTTP/1.1\r\nRange: bytes=0-1,0-1,0-1\r\n\r\n"));
  EXPECT_THAT(parts.hear(), StartsWith("HTTP/1.1 416"));
  const Wire foreign(port);
  ASSERT_TRUE(foreign.say("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
  EXPECT_THAT(foreign.hear("localhost"), StartsWith("HTTP/1.1 403")) << "a browser whose page is of another site";
}

TEST(Door, ARequestHasAnEnd) {
  const Listening at;
  HttpDoorOptions options = options_with([](const std::string&) { return std::string("said"); });
  options.request = std::chrono::milliseconds(300);
  const HttpDoor door(at.fd, options);
  const Wire dripping(at.port), silent(at.port), idle(at.port), long_one(at.port);
  ASSERT_TRUE(idle.say(kHealth));
  EXPECT_EQ(idle.hear("said"), "said");
  dripping.drip();
  silent.wait_for_end();
  idle.wait_for_end();
  (void)long_one.say(std::string(20'000, 'x'));
  EXPECT_THAT(Wire(at.port).hear(), "") << "nothing was asked";
}

TEST(Door, ARequestThatIsTooLongIsRefused) {
  const Listening at;
  const HttpDoor door(at.fd, options_with([](const std::string&) { return std::string("said"); }));
  const Wire one(at.port);
  ASSERT_TRUE(one.say("GET / HTTP/1.1\r\nX: " + std::string(17'000, 'x')));
  EXPECT_THAT(one.hear(), StartsWith("HTTP/1.1 431"));
}

TEST(Door, AnAnswerThatIsNotReadHasAnEnd) {
  constexpr size_t kLarge = 64 << 20;
  const Listening at;
  HttpDoorOptions options = options_with([](const std::string&) { return std::string(kLarge, 'x'); });
  options.response = std::chrono::milliseconds(300);
  options.request = std::chrono::milliseconds(1500);
  const HttpDoor door(at.fd, options);
  const Wire lazy(at.port), silent(at.port);
  ASSERT_TRUE(lazy.say("GET /large HTTP/1.1\r\n\r\n"));
  // The door disconnects `silent` after 1500 ms, and this call returns then. The 300 ms that `lazy` has for reading
  // its answer are over too.
  silent.wait_for_end();
  EXPECT_LT(lazy.hear("nothing that is said").size(), kLarge) << "what the sockets held";
}

TEST(Door, APeerHasSoManyConnections) {
  const Listening at;
  HttpDoorOptions options = options_with([](const std::string&) { return std::string("said"); });
  options.of_peer = 4;
  const HttpDoor door(at.fd, options);
  std::list<Wire> wires;
  for (int i = 0; i < 4; ++i) {
    wires.emplace_back(at.port);
    ASSERT_TRUE(wires.back().say(kHealth));
    EXPECT_EQ(wires.back().hear("said"), "said");
  }
  wires.emplace_back(at.port);
  wires.front().wait_for_end();
  ASSERT_TRUE(wires.back().say(kHealth));
  EXPECT_EQ(wires.back().hear("said"), "said");
  EXPECT_FALSE(std::next(wires.begin())->closed());
}

TEST(Door, WhoAsksHowItIsWaitsForNobody) {
  const Listening at;
  std::promise<void> over;
  std::atomic<int> begun = 0;
  const std::shared_future<void> wait(over.get_future());
  HttpDoorOptions options = options_with([&begun, wait](const std::string& path) {
    if (path == "/healthz") return path;
    ++begun;
    wait.wait();
    return path;
  });
  options.threads = 2;
  options.waiting = 1;
  const HttpDoor door(at.fd, options);
  const auto healthy = [&] {
    const Wire probe(at.port);
    return probe.say(kHealth) && probe.hear("/healthz") == "/healthz";
  };
  std::list<Wire> slow;
  const auto ask = [&] {
    slow.emplace_back(at.port);
    ASSERT_TRUE(slow.back().say("GET /slow HTTP/1.1\r\n\r\n"));
  };
  for (int thread = 1; thread <= 2; ++thread) {
    ask();
    while (begun < thread) std::this_thread::yield();
  }
  ask();  // no thread is free for this request, so it waits
  EXPECT_TRUE(healthy());
  ask();
  EXPECT_THAT(slow.back().hear(), StartsWith("HTTP/1.1 503")) << "no more wait";
  EXPECT_TRUE(healthy());
  over.set_value();
  EXPECT_EQ(slow.front().hear("/slow"), "/slow");
}

}  // namespace
}  // namespace wl
