// Records are fetched from the cache of replies and from the store, whole and without sources.
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "server/services/reply_cache.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using google::protobuf::util::MessageDifferencer;

grpc::Slice bytes(size_t size) {
  return grpc::Slice(std::string(size, 'x'));
}

TEST(ReplyCache, ForgetsWhatWasAskedForLongestAgo) {
  ReplyCache cache(10'000);
  for (const char* question : {"a", "b", "c"}) cache.put(question, "key", bytes(2'500), cache.now());
  ASSERT_TRUE(cache.find("a").has_value());
  cache.put("d", "key", bytes(2'500), cache.now());
  EXPECT_FALSE(cache.find("b").has_value());
  EXPECT_EQ(cache.find("a")->size(), 2'500u);
  EXPECT_TRUE(cache.find("c").has_value() && cache.find("d").has_value());
  cache.put("larger than all", "key", bytes(20'000), cache.now());
  for (const char* question : {"a", "c", "d", "larger than all"}) EXPECT_FALSE(cache.find(question).has_value());
}

TEST(ReplyCache, KeepsNoAnswerThatIsOlderThanAChange) {
  ReplyCache cache(10'000);
  const uint64_t asked = cache.now();
  cache.drop("key");
  cache.put("a", "key", bytes(1), asked);
  EXPECT_FALSE(cache.find("a").has_value());
  for (const char* question : {"a", "b"}) cache.put(question, "key", bytes(1), cache.now());
  cache.put("c", "another key", bytes(1), cache.now());
  cache.drop("key");
  EXPECT_FALSE(cache.find("a").has_value() || cache.find("b").has_value());
  EXPECT_TRUE(cache.find("c").has_value());
}

class Fetch : public ::testing::Test {
 protected:
  std::vector<v1::KernelSummary> list() {
    grpc::ClientContext context;
    v1::ListKernelsResponse kernels;
    EXPECT_TRUE(service.kernels->ListKernels(&context, {}, &kernels).ok());
    return {kernels.kernels().begin(), kernels.kernels().end()};
  }
  absl::StatusOr<v1::KernelRecord> get(const v1::GetKernelRequest& request) {
    grpc::ClientContext context;
    v1::KernelRecord record;
    const grpc::Status status = service.kernels->GetKernel(&context, request, &record);
    if (!status.ok()) return from_grpc(status);
    return record;
  }
  absl::StatusOr<v1::KernelRecord> get(const std::string& key) {
    v1::GetKernelRequest request;
    request.set_key(key);
    return get(request);
  }

  Scratch scratch;
  Service service{scratch.path("a.db")};
};

TEST_F(Fetch, AnswersAreTheSameFromTheStoreAndFromTheCache) {
  FakeWorker worker(service.channel, "w");
  ASSERT_EQ(service.run("r", trials(8)).state, JobState::kSucceeded);
  v1::BatchGetKernelsRequest batch;
  std::vector<v1::KernelRecord> whole;
  for (const v1::KernelSummary& kernel : list()) {
    v1::GetKernelRequest by_digest, by_key, manifest;
    by_digest.set_digest(kernel.digest());
    by_key.set_key(kernel.key());
    by_key.set_environment(kernel.environment());
    manifest.set_digest(kernel.digest());
    manifest.set_manifest_only(true);
    whole.push_back(get(by_digest).value());
    ASSERT_TRUE(from_proto(whole.back()).ok()) << "its digest is checked";
    v1::KernelRecord without = whole.back();
    ASSERT_FALSE(without.source().text().empty());
    without.mutable_source()->clear_text();
    without.mutable_source()->clear_prelude();
    for (int time = 0; time < 2; ++time) {
      EXPECT_TRUE(MessageDifferencer::Equals(get(by_digest).value(), whole.back()));
      EXPECT_TRUE(MessageDifferencer::Equals(get(by_key).value(), whole.back()));
      EXPECT_TRUE(MessageDifferencer::Equals(get(manifest).value(), without));
    }
    *batch.add_items() = by_key;
    batch.add_items()->set_key(std::string(64, '0'));
    whole.emplace_back();
  }
  ASSERT_GT(whole.size(), 2u);
  for (int time = 0; time < 2; ++time) {
    grpc::ClientContext context;
    v1::BatchGetKernelsResponse answer;
    ASSERT_TRUE(service.kernels->BatchGetKernels(&context, batch, &answer).ok());
    ASSERT_EQ(answer.items_size(), static_cast<int>(whole.size()));
    for (int i = 0; i < answer.items_size(); ++i) {
      EXPECT_EQ(answer.items(i).has_record(), i % 2 == 0);
      EXPECT_TRUE(MessageDifferencer::Equals(answer.items(i).record(), whole[i]));
    }
  }
}

TEST_F(Fetch, AChangeIsSeenAtOnce) {
  FakeWorker worker(service.channel, "w");
  ASSERT_EQ(service.run("r", trials(8)).state, JobState::kSucceeded);
  const std::string key = list().at(0).key();
  const std::string first = get(key)->digest();
  EXPECT_EQ(get(key)->digest(), first);
  TuneOptions again = trials(8);
  again.retune = true;
  again.seed = 7;
  ASSERT_EQ(service.run("again", again).state, JobState::kSucceeded);
  EXPECT_NE(get(key)->digest(), first) << "the record before the last one";
  service.invalidate(key);
  EXPECT_TRUE(absl::IsNotFound(get(key).status()));
}

TEST_F(Fetch, QuestionsWithoutAnAnswerSaySo) {
  EXPECT_TRUE(absl::IsInvalidArgument(get(v1::GetKernelRequest()).status()));
  EXPECT_TRUE(absl::IsNotFound(get(std::string(64, '0')).status()));
  grpc::ClientContext context;
  v1::BatchGetKernelsRequest batch;
  for (int i = 0; i < 257; ++i) batch.add_items()->set_key("a");
  v1::BatchGetKernelsResponse answer;
  EXPECT_EQ(service.kernels->BatchGetKernels(&context, batch, &answer).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace wl
