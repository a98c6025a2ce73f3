// Limits that keep a coordinator able to serve: on connections, on bytes in transfer, and on calls that wait.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <list>
#include <mutex>

#include "compiler/base/sha256.h"
#include "compiler/base/status.h"
#include "proto/rpc.h"
#include "server/coordinator.h"
#include "server/services/work_pool.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"
#include "warploom/v1/blob.grpc.pb.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

// An upload of an object in `chunks` equal chunks, which stays open until finish() or cancel().
class Upload {
 public:
  Upload(v1::BlobStore::Stub& blobs, int chunks) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::UploadRequest chunk;
    chunk.set_data(std::string(kBlobChunkBytes, 'x'));
    std::string bytes;
    for (int i = 0; i < chunks; ++i) bytes += chunk.data();
    chunk.set_digest(sha256_hex(bytes));
    writer_ = blobs.Upload(&context_, &answer_);
    for (int i = 0; i < chunks && writer_->Write(chunk); ++i) {
    }
  }
  grpc::Status finish() {
    writer_->WritesDone();
    return writer_->Finish();
  }
  grpc::Status cancel() {
    context_.TryCancel();
    return writer_->Finish();
  }

 private:
  grpc::ClientContext context_;
  v1::UploadResponse answer_;
  std::unique_ptr<grpc::ClientWriter<v1::UploadRequest>> writer_;
};

TEST(Uploads, HoldNoMoreThanTheirShareOfMemory) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.listen = "unix:" + scratch.path("s");
  constexpr int kChunks = 16;
  options.max_transfer_bytes = 4 * kChunks * kBlobChunkBytes;
  Coordinator coordinator;
  ASSERT_TRUE(coordinator.start(options).ok());
  const auto blobs = v1::BlobStore::NewStub(dial(options.listen));
  for (int round = 0; round < 3; ++round) {
    const grpc::Status refused = Upload(*blobs, 5 * kChunks).finish();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << refused.error_message();
    EXPECT_THAT(refused.error_message(), HasSubstr("try again"));
    EXPECT_EQ(Upload(*blobs, 2 * kChunks).cancel().error_code(), grpc::StatusCode::CANCELLED);
    // The memory of uploads that have ended is free again once the coordinator has noticed that they ended.
    while (!Upload(*blobs, 3 * kChunks).finish().ok()) {
    }
  }
}

TEST(Uploads, ComeInChunksOfTheAgreedSize) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  Coordinator coordinator;
  ASSERT_TRUE(coordinator.start(options).ok());
  const auto blobs = v1::BlobStore::NewStub(coordinator.in_process_channel());
  for (const std::vector<size_t>& sizes : {std::vector<size_t>{kBlobChunkBytes + 1}, {3, 0}, {0, 0}}) {
    grpc::ClientContext context;
    v1::UploadResponse answer;
    const auto writer = blobs->Upload(&context, &answer);
    for (const size_t size : sizes) {
      v1::UploadRequest chunk;
      chunk.set_digest(sha256_hex("xxx"));
      chunk.set_data(std::string(size, 'x'));
      writer->Write(chunk);
    }
    const grpc::Status status = writer->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("chunk"));
  }
}

TEST(Calls, WhoseAnswerDoesNotFitIntoMemoryEndWithAnError) {
  const auto much = [](size_t bytes) -> absl::StatusOr<std::string> {
    if (bytes > 3) throw std::bad_alloc();
    return std::string(bytes, 'x');
  };
  EXPECT_EQ(*within_memory([&] { return much(3); }), "xxx");
  EXPECT_TRUE(absl::IsResourceExhausted(within_memory([&] { return much(4); }).status()));
}

// A coordinator cannot find out whether another process uses a datagram socket, so it leaves the socket's file alone.
TEST(Listening, LeavesSocketsThatItCannotAsk) {
  Scratch scratch;
  const std::string path = scratch.path("s");
  const int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(other, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.listen = "unix:" + path;
  Coordinator coordinator;
  const absl::Status started = coordinator.start(options);
  EXPECT_TRUE(absl::IsUnavailable(started)) << started;
  EXPECT_THAT(std::string(started.message()), HasSubstr("remove the file or choose another path"));
  EXPECT_TRUE(std::filesystem::exists(path));
  close(other);
}

TEST(Connections, BeyondTheirNumberAreClosedAndTheOthersServed) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.listen = "127.0.0.1:0";
  options.max_connections = 3;
  Coordinator coordinator;
  ASSERT_TRUE(coordinator.start(options).ok());
  const std::string address = cat("127.0.0.1:", coordinator.port());
  const auto ask = [&](const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::ServerInfo info;
    return v1::Admin::NewStub(channel)->GetServerInfo(&context, {}, &info);
  };
  grpc::ChannelArguments own = channel_arguments();
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // gives each channel a connection of its own
  const auto connect = [&] { return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own); };
  std::list<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 3; ++i) {
    channels.push_back(connect());
    EXPECT_TRUE(ask(channels.back()).ok());
  }
  EXPECT_EQ(ask(connect()).error_code(), grpc::StatusCode::UNAVAILABLE);
  for (const auto& channel : channels) EXPECT_TRUE(ask(channel).ok());
  channels.pop_front();
  // The closed connection no longer counts once the coordinator has noticed that it ended.
  grpc::Status status;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    status = ask(connect());
  } while (!status.ok() && std::chrono::steady_clock::now() < give_up);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// Opens a TCP connection that sends `says` and no more, and returns its socket, which the caller closes. `from`: the
// local address, since there is a limit for each address.
int silent_connection(int port, const std::string& from, std::string_view says) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = {}, other = {};
  own.sin_family = other.sin_family = AF_INET;
  other.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(inet_pton(AF_INET, from.c_str(), &own.sin_addr), 1);
  EXPECT_EQ(inet_pton(AF_INET, "127.0.0.1", &other.sin_addr), 1);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&other), sizeof other), 0);
  EXPECT_EQ(send(fd, says.data(), says.size(), MSG_NOSIGNAL), static_cast<ssize_t>(says.size()));
  return fd;
}

// The operator can connect over the unix socket even while callers over TCP have all connections that they may have.
TEST(Connections, OverTcpLeaveRoomForTheUnixSocket) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.listen = cat("127.0.0.1:0,unix:", scratch.path("s"));
  options.max_connections = 16;
  Coordinator coordinator;
  ASSERT_TRUE(coordinator.start(options).ok());
  std::vector<int> idle;
  for (int i = 0; i < 32; ++i) idle.push_back(silent_connection(coordinator.port(), cat("127.0.0.", 1 + i % 4), ""));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::ServerInfo info;
  const grpc::Status status = v1::Admin::NewStub(dial("unix:" + scratch.path("s")))->GetServerInfo(&context, {}, &info);
  EXPECT_TRUE(status.ok()) << status.error_message();
  for (int fd : idle) close(fd);
}

TEST(Connections, ThatMakeNoCallAreClosed) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.listen = "127.0.0.1:0";
  options.silence_ms = 200;
  Coordinator coordinator;
  ASSERT_TRUE(coordinator.start(options).ok());
  // The connection preface of HTTP/2 and an empty SETTINGS frame, which are all that a client must send before its
  // first call.
  const std::string_view hello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  const int fd = silent_connection(coordinator.port(), "127.0.0.1", hello);
  char said[4096];
  ssize_t size = 0;
  while ((size = recv(fd, said, sizeof said, 0)) > 0) {
  }
  EXPECT_TRUE(size == 0 || errno == ECONNRESET);
  close(fd);
}

TEST(Connections, AreNoMoreThanTheDescriptorsAllow) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.listen = "127.0.0.1:0";
  options.max_connections = 1 << 30;
  Coordinator coordinator;
  const absl::Status status = coordinator.start(options);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -n"));
}

// Long polls of one worker, all of which wait at the same time.
class Polls {
 public:
  Polls(v1::WorkerService::Stub& workers, int count) {
    for (int i = 0; i < count; ++i) {
      Poll& poll = polls_.emplace_back();
      poll.request.set_worker("w");
      poll.request.set_epoch(1);
      poll.request.set_wait_s(55);
      workers.async()->AcquireLeases(&poll.context, &poll.request, &poll.answer, [this, &poll](grpc::Status status) {
        const std::lock_guard lock(mutex_);
        poll.status = std::move(status);
        changed_.notify_all();
      });
    }
  }
  ~Polls() {
    for (Poll& poll : polls_) poll.context.TryCancel();
    EXPECT_TRUE(wait(polls_.size()));
  }
  // Waits for at most 20 s until `count` polls have ended. Returns whether they have.
  bool wait(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return ended().size() >= count; });
  }
  // ends() returns the statuses of the polls that have ended; leases() returns how many leases these polls got.
  std::vector<grpc::Status> ends() {
    const std::lock_guard lock(mutex_);
    return ended();
  }
  int leases() {
    const std::lock_guard lock(mutex_);
    int count = 0;
    for (const Poll& poll : polls_) count += poll.status ? poll.answer.leases_size() : 0;
    return count;
  }

 private:
  struct Poll {
    grpc::ClientContext context;
    v1::AcquireLeasesRequest request;
    v1::AcquireLeasesResponse answer;
    std::optional<grpc::Status> status;  // the status of the poll, once the poll has ended
  };
  std::vector<grpc::Status> ended() const {
    std::vector<grpc::Status> out;
    for (const Poll& poll : polls_)
      if (poll.status) out.push_back(*poll.status);
    return out;
  }

  std::mutex mutex_;  // guards the polls' answers and statuses
  std::condition_variable changed_;
  std::list<Poll> polls_;
};

TEST(WaitingCalls, BeyondTheirNumberAreRefusedAndTheOthersGetLeases) {
  constexpr int kMost = 10, kMore = 5;
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.max_waiting_calls = kMost;
  Service service(options);
  const auto watch_nothing = [&] {
    grpc::ClientContext context;
    v1::WatchJobRequest request;
    request.set_name("jobs/999");
    return service.tuning->WatchJob(&context, request)->Finish().error_code();
  };
  service.register_worker("w");
  Polls polls(*service.workers, kMost + kMore);
  ASSERT_TRUE(polls.wait(kMore));
  for (const grpc::Status& refused : polls.ends()) {
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << refused.error_message();
    EXPECT_THAT(refused.error_message(), HasSubstr("too many calls"));
  }
  EXPECT_EQ(polls.ends().size(), static_cast<size_t>(kMore));
  EXPECT_EQ(watch_nothing(), grpc::StatusCode::UNAVAILABLE);
  // Beyond the limit of calls that wait, calls of other kinds are still answered, and the calls that already wait get
  // leases.
  ASSERT_TRUE(service.create("r", trials(8)).ok());
  ASSERT_TRUE(polls.wait(kMore + 1));
  EXPECT_GT(polls.leases(), 0);
  // A call that has ended counts towards the limit until the coordinator has noticed the call's end.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  grpc::StatusCode found;
  do {
    found = watch_nothing();
  } while (found == grpc::StatusCode::UNAVAILABLE && std::chrono::steady_clock::now() < give_up);
  EXPECT_EQ(found, grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace wl
