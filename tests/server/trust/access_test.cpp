// Every rpc is called by callers of every kind, to test who may call what.
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "proto/tls.h"
#include "tests/server/trust/doorstep.h"

namespace wl {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// Returns a channel over the socket file that is connected as another user, for which the test must run as root.
std::shared_ptr<grpc::Channel> as_somebody(const std::string& path, uid_t uid = kSomebody) {
  int fd = -1;
  std::thread([&] {
    // The raw system call changes the user of this thread only; the function of the C library changes it for all
    // threads.
    EXPECT_EQ(syscall(SYS_setresuid, uid, uid, uid), 0) << std::strerror(errno);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << std::strerror(errno);
  }).join();
  return grpc::CreateInsecureChannelFromFd("somebody", fd);
}

// Lets every user of the machine connect to the socket file.
void open_to_all(const Scratch& scratch, const std::string& path) {
  chmod(scratch.path("").c_str(), 0755);
  chmod(path.c_str(), 0666);
}

struct CallerKind {
  const char* who;
  std::shared_ptr<grpc::Channel> channel;
  Roles roles;
};

void expect_as_said(const CallerKind& asking) {
  for (const RpcRule& rule : rpc_rules()) {
    const grpc::Status status = call_of(asking.channel, rule.path);
    EXPECT_EQ(is_refused(status), (asking.roles & rule.roles) == 0)
        << asking.who << " calls " << rule.path << ": " << status.error_code() << " " << status.error_message();
    if (!is_refused(status)) continue;
    EXPECT_THAT(status.error_message(), AnyOf(HasSubstr(": call "), HasSubstr(": ask "), HasSubstr(": say ")))
        << "says what to do";
  }
}

TEST(Access, EveryRpcSaysWhoMayCallIt) {
  const std::vector<RpcRule> rules = rpc_rules();
  EXPECT_GE(rules.size(), 24);
  for (const RpcRule& rule : rules) EXPECT_NE(rule.roles, kNoRole) << rule.path;
}

TEST(Access, EveryRpcIsAnsweredToThoseItIsFor) {
  const Doorstep at;
  const std::string path = "unix:" + at.socket(), loopback = at.plain.addresses()[0];
  std::vector<CallerKind> kinds = {
      {"the owner on the socket", dial(path), kEveryRole},
      {"a caller over loopback", dial(loopback), kClient | kWorker},
      {"a certificate that names its role", at.by_tls("worker"), kWorker},
      {"a certificate with a row", at.by_tls("operator"), kOperator},
      {"a certificate that is revoked", at.by_tls("lost"), kNoRole},
      {"a certificate without a role", at.by_tls("stranger"), kNoRole},
      {"TLS without anything", at.by_tls(""), kNoRole},
  };
  const char* const names[] = {"the token of a client", "the token of a worker", "the token of an operator",
                               "the token of a cache"};
  const Roles roles[] = {kClient, kWorker, kOperator, kCache};
  for (int i = 0; i < 4; ++i) {
    const std::string& token = at.tokens[i];
    kinds.push_back({names[i], at.by_tls("", token), roles[i]});
    kinds.push_back({names[i], at.by_tls("operator", token), roles[i]});
    kinds.push_back({names[i], at.by_token(path, token), roles[i]});
    kinds.push_back({names[i], at.by_token(loopback, token), roles[i]});
  }
  for (const char* token : {"old", "unknown"}) {
    kinds.push_back({token, at.by_tls("operator", token), kNoRole});
    kinds.push_back({token, at.by_token(path, token), kNoRole});
    kinds.push_back({token, at.by_token(loopback, token), kNoRole});
  }
  for (const CallerKind& kind : kinds) expect_as_said(kind);
  if (geteuid() != 0) GTEST_SKIP() << "only root can call as another user";
  chmod(at.scratch.path("").c_str(), 0755);
  expect_as_said({"another user", as_somebody(at.socket()), kNoRole});
  expect_as_said({"another user with a row", as_somebody(at.socket(), kSomebody + 1), kClient});
}

TEST(Access, ACertificateByAnotherCaReachesNothing) {
  const Doorstep at;
  const grpc::Status status = call_of(at.by_tls("foreign"), "/warploom.v1.Admin/GetServerInfo");
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE);
  EXPECT_THAT(tls_problem(at.tls.addresses()[1], {.cert = at.scratch.path("foreign.pem"),
                                                  .key = at.scratch.path("foreign.key"),
                                                  .ca = at.scratch.path("ca.pem")}),
              HasSubstr("does not accept the certificate"));
}

TEST(Access, ATokenThatIsRevokedIsKnownNoMore) {
  const Doorstep at;
  const auto channel = at.by_token("unix:" + at.socket(), at.tokens[2]);
  EXPECT_TRUE(call_of(channel, "/warploom.v1.Admin/Drain").ok());
  std::ofstream(at.callers()) << "user * client\n";
  grpc::Status status;
  while (status.ok()) status = call_of(channel, "/warploom.v1.Admin/Drain");
  EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("no longer, known here"));
  std::ofstream(at.callers()) << "token damaged\n";
  EXPECT_EQ(call_of(channel, "/warploom.v1.Admin/Drain").error_code(), grpc::UNAUTHENTICATED);
}

TEST(Access, ARefusalSaysWhatToDo) {
  Scratch scratch;
  Service service(scratch.path("a.db"), 15, "127.0.0.1:0");
  const grpc::Status status = call_of(dial(service.coordinator.addresses()[0]), "/warploom.v1.Admin/Drain");
  EXPECT_EQ(status.error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(
      status.error_message(),
      "Drain needs the role operator; a caller over TCP from this machine, who is not known, has client, worker: "
      "call over a unix socket of the coordinator (--listen unix:PATH), as the user that runs it, or with a token "
      "(`warploomd token`)");
  EXPECT_FALSE(service.server_info().draining());
}

TEST(Access, ManyUsersAreToldApartAndTheRestAreNobody) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can call as another user";
  Scratch scratch;
  const std::string path = scratch.path("s");
  Service service(scratch.path("a.db"), 15, "unix:" + path);
  open_to_all(scratch, path);
  constexpr uid_t kToldApart = 16;
  for (uid_t uid = kSomebody; uid < kSomebody + 20; ++uid) {
    const grpc::Status status = call_of(as_somebody(path, uid), "/warploom.v1.Admin/GetServerInfo");
    EXPECT_EQ(status.error_code(), grpc::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(),
                HasSubstr(uid < kSomebody + kToldApart ? cat("user ", uid) : "a user of this machine"));
  }
  EXPECT_TRUE(call_of(as_somebody(path, 0), "/warploom.v1.Admin/Drain").ok()) << "root is told apart from all others";
}

TEST(Access, HealthIsForEverybodyAndWhatIsNoCallForNobody) {
  Scratch scratch;
  Service service(scratch.path("a.db"), 15, "127.0.0.1:0");
  const auto channel = dial(service.coordinator.addresses()[0]);
  EXPECT_NE(call_of(channel, "/grpc.health.v1.Health/Check").error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(call_of(channel, "/warploom.v1.Admin/Explode").error_code(), grpc::UNIMPLEMENTED);
  EXPECT_EQ(call_of(channel, "/x").error_code(), grpc::UNIMPLEMENTED);
}

}  // namespace
}  // namespace wl
