// A coordinator asks its upstream: one call serves all callers with the same question, the number of remembered
// misses and the time of waits are limited, and false answers of a hostile upstream are not used.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "compiler/base/sha256.h"
#include "server/upstream/misses.h"
#include "server/upstream/via.h"
#include "tests/server/upstream/chain.h"
#include "tests/unit/proto/random_records.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

TEST(UpstreamMisses, AreForgottenByTimeAndByNumber) {
  Misses misses;
  const Misses::Clock::time_point now = Misses::Clock::now();
  misses.put("a", "why", now);
  EXPECT_EQ(misses.find("a", now).value(), "why");
  EXPECT_FALSE(misses.find("b", now).has_value());
  EXPECT_FALSE(misses.find("a", now + Misses::kRemembered).has_value());
  for (size_t i = 0; i < 2 * Misses::kMost; ++i) misses.put(cat(i), "", now);
  EXPECT_EQ(misses.size(), Misses::kMost);
  EXPECT_FALSE(misses.find("0", now).has_value());
  EXPECT_TRUE(misses.find(cat(2 * Misses::kMost - 1), now).has_value());
}

TEST(UpstreamVia, EndsCirclesAndLongWays) {
  EXPECT_EQ(parse_via(print_via({"a", "b"})), (Via{"a", "b"}));
  EXPECT_TRUE(parse_via("").empty());
  EXPECT_EQ(why_not_ask("c", {"a", "b"}), "");
  EXPECT_THAT(why_not_ask("a", {"a", "b"}), HasSubstr("its own upstream"));
  EXPECT_THAT(why_not_ask("x", Via(kMostHops, "y")), HasSubstr("has passed 8 coordinators"));
  EXPECT_NE(why_not_ask("x", parse_via(std::string(100'000, 'y'))), "");
}

// An upstream whose answers the test chooses.
class FakeUpstream {
 public:
  explicit FakeUpstream(const std::string& address) : kernels_(this), blobs_(this) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    for (grpc::Service* service : std::initializer_list<grpc::Service*>{&kernels_, &blobs_, &admin_})
      builder.RegisterService(service);
    server_ = builder.BuildAndStart();
  }
  ~FakeUpstream() {
    release();
    server_->Shutdown(std::chrono::system_clock::now());
  }
  // Makes all later calls for records wait until release().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  int asked() const { return asked_; }

  // the answer to every request for a record; a record without a digest makes the answer a miss
  v1::KernelRecord record;
  std::string object;  // the contents that every download returns

 private:
  struct Kernels final : v1::KernelStore::Service {
    explicit Kernels(FakeUpstream* upstream) : at(upstream) {}
    grpc::Status BatchGetKernels(grpc::ServerContext*, const v1::BatchGetKernelsRequest* request,
                                 v1::BatchGetKernelsResponse* out) override {
      ++at->asked_;
      std::unique_lock lock(at->mutex_);
      at->changed_.wait(lock, [&] { return !at->held_; });
      for (int i = 0; i < request->items_size(); ++i) {
        auto* item = out->add_items();
        if (!at->record.digest().empty()) *item->mutable_record() = at->record;
      }
      return grpc::Status::OK;
    }
    FakeUpstream* const at;
  };
  struct Blobs final : v1::BlobStore::Service {
    explicit Blobs(FakeUpstream* upstream) : at(upstream) {}
    grpc::Status Download(grpc::ServerContext*, const v1::DownloadRequest*,
                          grpc::ServerWriter<v1::DownloadResponse>* out) override {
      v1::DownloadResponse chunk;
      chunk.set_data(at->object);
      out->Write(chunk);
      return grpc::Status::OK;
    }
    FakeUpstream* const at;
  };
  struct Admin final : v1::Admin::Service {
    grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*, v1::ServerInfo*) override {
      return grpc::Status::OK;
    }
  };

  Kernels kernels_;
  Blobs blobs_;
  Admin admin_;
  std::atomic<int> asked_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  std::unique_ptr<grpc::Server> server_;
};

class Asking : public Chain {
 protected:
  Asking() {
    testing::Random draw(7);
    good = testing::random_record(draw);
    upstream.object = "the object";
    good.object_sha256 = sha256_hex(upstream.object);
    good.digest = record_digest(good);
    key("site")->sign(&good);
  }
  std::shared_ptr<const SigningKey> key(const std::string& name) const {
    return SigningKey::open(scratch.path(name + ".key")).value();
  }
  std::unique_ptr<Service> laptop(const std::vector<std::string>& trusted = {}) const {
    CoordinatorOptions out = options("laptop", "upstream");
    if (!trusted.empty()) out.signers = signers(trusted);
    return std::make_unique<Service>(out);
  }

  FakeUpstream upstream{address("upstream")};
  KernelRecord good;
};

TEST_F(Asking, ManyWhoAskMakeOneCall) {
  constexpr int kCallers = 24;
  const auto at = laptop();
  upstream.record = to_proto(good);
  upstream.hold();
  std::vector<std::thread> callers;
  std::atomic<int> found = 0;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back([&] { found += at->record(good.key).ok() ? 1 : 0; });
  while (upstream.asked() == 0) std::this_thread::yield();
  upstream.release();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(found, kCallers);
  EXPECT_EQ(upstream.asked(), 1);
}

TEST_F(Asking, AMissIsNotAskedForAgainAtOnce) {
  const auto at = laptop();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(absl::IsNotFound(at->record(good.key).status()));
  // A miss is remembered for 3 s. On a busy machine this time may pass between two of the calls, but not between all of
  // them.
  EXPECT_LT(upstream.asked(), 5);
}

// A caller waits only briefly for an upstream that hangs, and the coordinator continues to work.
TEST_F(Asking, AnUpstreamThatHangsIsNotWaitedFor) {
  const auto at = laptop();
  upstream.hold();
  const absl::Status missed = at->record(good.key).status();
  EXPECT_TRUE(absl::IsNotFound(missed)) << missed;
  EXPECT_THAT(std::string(missed.message()), HasSubstr(cat("the upstream ", address("upstream"))));
  FakeWorker worker(at->channel, "own");
  const Job job = at->run("r", trials(8));
  EXPECT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_FALSE(job.cached);
}

TEST_F(Asking, WhatIsNotSignedByThoseWhoAreTrustedIsRefused) {
  struct Case {
    const char* why;
    std::function<void(v1::KernelRecord*)> change;
  };
  const auto with_digest = [this](auto&& change) {
    return [this, change](v1::KernelRecord* message) {
      KernelRecord changed = good;
      change(changed);
      changed.digest = record_digest(changed);
      *message = to_proto(changed);
    };
  };
  const std::vector<Case> cases = {
      {"digest", [](v1::KernelRecord* message) { message->set_plan("another plan"); }},
      {"has a signature that is not of it", with_digest([](KernelRecord& record) { record.samples_ns = {1}; })},
      {"has a signature that is not of it",
       with_digest([](KernelRecord& record) { record.object_sha256 = sha256_hex("hostile"); })},
      {"which is none of --signers",
       [this](v1::KernelRecord* message) {
         KernelRecord foreign = good;
         key("mallory")->sign(&foreign);
         *message = to_proto(foreign);
       }},
      {"is not signed",
       [](v1::KernelRecord* message) {
         message->clear_signature();
         message->clear_signed_by();
       }},
      {"it is the record of the key", with_digest([](KernelRecord& record) { record.key = sha256_hex("other"); })},
  };
  for (const Case& one : cases) {
    upstream.record = to_proto(good);
    one.change(&upstream.record);
    const auto at = laptop({"site"});
    const absl::Status refused = at->record(good.key).status();
    EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("gave an answer that is not used"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr(one.why));
    EXPECT_EQ(number_in(store("laptop"), "SELECT count(*) FROM records"), 0);
  }
  upstream.record = to_proto(good);
  EXPECT_EQ(*laptop({"site"})->record(good.key), good);
}

TEST_F(Asking, AnObjectThatIsAnotherIsRefused) {
  const auto at = laptop({"site"});
  upstream.record = to_proto(good);
  upstream.object = "hostile";
  const absl::Status refused = at->record(good.key).status();
  EXPECT_TRUE(absl::IsNotFound(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("arrived damaged"));
  EXPECT_EQ(number_in(store("laptop"), "SELECT count(*) FROM records"), 0);
  EXPECT_TRUE(absl::IsNotFound(object(at->channel, good.object_sha256).status()));
}

}  // namespace
}  // namespace wl
