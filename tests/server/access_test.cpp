// Who may call what: every rpc by every kind of caller.
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "server/services/authorizer.h"
#include "tests/server/scratch.h"
#include "tests/server/service.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kSomebody = 4321;

// Makes a call with an empty request, whatever the form of the rpc, and returns how it ended.
grpc::Status call_of(const std::shared_ptr<grpc::Channel>& channel, const std::string& path) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  grpc::CompletionQueue queue;
  const grpc::Slice empty("", 0);
  const auto pending = stub.PrepareUnaryCall(&context, path, grpc::ByteBuffer(&empty, 1), &queue);
  grpc::ByteBuffer answer;
  grpc::Status status;
  pending->StartCall();
  pending->Finish(&answer, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  return status;
}

bool is_refused(const grpc::Status& status) {
  return status.error_code() == grpc::PERMISSION_DENIED || status.error_code() == grpc::UNAUTHENTICATED;
}

// A channel over the socket file, connected by another user. Needs root.
std::shared_ptr<grpc::Channel> as_somebody(const std::string& path, uid_t uid = kSomebody) {
  int fd = -1;
  std::thread([&] {
    // The system call changes the thread alone.
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
    EXPECT_THAT(status.error_message(), HasSubstr(": call ")) << "says what to do";
  }
}

TEST(Access, EveryRpcSaysWhoMayCallIt) {
  const std::vector<RpcRule> rules = rpc_rules();
  EXPECT_GE(rules.size(), 24);
  for (const RpcRule& rule : rules) EXPECT_NE(rule.roles, kNoRole) << rule.path;
}

TEST(Access, EveryRpcIsAnsweredToThoseItIsFor) {
  Scratch scratch;
  const std::string path = scratch.path("s");
  Service service(scratch.path("a.db"), 15, "unix:" + path + ",127.0.0.1:0");
  const std::vector<std::string> addresses = service.coordinator.addresses();
  expect_as_said({"the owner", dial("unix:" + path), kEveryRole});
  expect_as_said({"a caller over loopback", dial(addresses[1]), kClient | kWorker});
  expect_as_said({"this process", service.channel, kEveryRole});
  if (geteuid() != 0) GTEST_SKIP() << "only root can call as another user";
  open_to_all(scratch, path);
  expect_as_said({"another user", as_somebody(path), kNoRole});
}

TEST(Access, ARefusalSaysWhatToDo) {
  Scratch scratch;
  Service service(scratch.path("a.db"), 15, "127.0.0.1:0");
  const grpc::Status status = call_of(dial(service.coordinator.addresses()[0]), "/warploom.v1.Admin/Drain");
  EXPECT_EQ(status.error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(
      status.error_message(),
      "Drain is for the roles operator; a caller over TCP from this machine, who is not known, has client, worker: "
      "call over a unix socket of the coordinator (--listen unix:PATH), as the user that runs it");
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(service.admin->GetServerInfo(&context, {}, &info).ok());
  EXPECT_FALSE(info.draining());
}

TEST(Access, ManyUsersAreToldApartAndTheRestAreNobody) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can call as another user";
  Scratch scratch;
  const std::string path = scratch.path("s");
  Service service(scratch.path("a.db"), 15, "unix:" + path);
  open_to_all(scratch, path);
  for (uid_t uid = kSomebody; uid < kSomebody + 20; ++uid) {
    const grpc::Status status = call_of(as_somebody(path, uid), "/warploom.v1.Admin/GetServerInfo");
    EXPECT_EQ(status.error_code(), grpc::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(), HasSubstr(uid < kSomebody + 16 ? cat("user ", uid) : "a user of this machine"));
  }
  EXPECT_THAT(call_of(as_somebody(path, 0), "/warploom.v1.Admin/Drain").error_message(),
              HasSubstr("a user of this machine"));
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
