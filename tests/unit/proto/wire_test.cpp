// Every record survives conversion: random records are converted to messages and back, and to bytes and back.
#include "proto/wire.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include "tests/unit/fuzz.h"
#include "tests/unit/proto/random_records.h"

namespace wl {
namespace {

using namespace wl::testing;  // NOLINT(google-build-using-namespace): the generators of this test

template <typename T>
void expect_round_trip(const T& value, uint64_t seed) {
  auto back = from_proto(to_proto(value));
  ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << back.status();
  EXPECT_TRUE(*back == value) << "seed " << seed << ": " << to_proto(value).DebugString();
}

TEST(Wire, RandomRecordsComeBackEqual) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random r(seed);
    expect_round_trip(random_source(r), seed);
    expect_round_trip(random_problem(r), seed);
    expect_round_trip(random_recipe(r), seed);
    expect_round_trip(random_trial(r), seed);
    expect_round_trip(random_device(r), seed);
    expect_round_trip(random_options(r), seed);
    expect_round_trip(random_record(r), seed);
    expect_round_trip(random_result(r), seed);
    expect_round_trip(random_progress(r), seed);

    const Batch batch = random_batch(r);
    auto back = from_proto(to_proto(batch));
    ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << back.status();
    EXPECT_TRUE(back->id == batch.id && back->problem == batch.problem && back->checks == batch.checks &&
                back->recipe == batch.recipe && back->candidates == batch.candidates && back->chains == batch.chains &&
                back->keep_objects == batch.keep_objects && back->phase == batch.phase)
        << "seed " << seed;
  }
}

TEST(Wire, JobComesBackWithItsErrorAndResult) {
  Random r(7);
  for (int state = 0; state < kJobStateCount; ++state) {
    Job job;
    job.name = "jobs/1";
    job.state = static_cast<JobState>(state);
    job.label = "model.onnx";
    job.options = random_options(r);
    job.cached = r.flip();
    job.version = r.bits();
    job.progress = random_progress(r);
    if (r.flip()) job.result = random_result(r);
    if (job.state == JobState::kFailed) job.error = absl::NotFoundError("no correct candidate");
    job.created_unix_ms = 5;
    job.finished_unix_ms = 6;
    job.device = random_device(r);
    job.cancelling = r.flip();
    auto back = from_proto(to_proto(job));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->state, job.state);
    EXPECT_EQ(back->error, job.error);
    EXPECT_TRUE(back->result == job.result && back->progress == job.progress && back->options == job.options &&
                back->device == job.device && back->version == job.version && back->name == job.name &&
                back->label == job.label);
  }
}

TEST(Wire, BytesComeBackEqual) {
  Random r(11);
  const KernelRecord record = random_record(r);
  auto back = decode_record(encode(record));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == record);
  const JobResult result = random_result(r);
  EXPECT_TRUE(*decode_result(encode(result)) == result);
  EXPECT_EQ(decode_record("\xff\xff\xff").status().code(), absl::StatusCode::kDataLoss);
}

// For any bytes that parse as a message of a record, decode_names() returns the digest, key and environment of that
// message.
TEST(Wire, NamesOfARecordAreThoseOfItsMessage) {
  Random r(test_seed(1));
  google::protobuf::LogHandler* const logged = google::protobuf::SetLogHandler(nullptr);
  int readable = 0, refused = 0;
  for (int64_t i = 0; i < scaled(4000); ++i) {
    // Two concatenated protobuf messages parse as one message with the fields of the second.
    std::string bytes = encode(random_record(r));
    if (r.flip()) bytes += encode(random_record(r));
    if (r.flip()) bytes = mutated(bytes, r);
    v1::KernelRecord message;
    const absl::StatusOr<RecordNames> names = decode_names(bytes);
    refused += names.ok() ? 0 : 1;
    if (!message.ParseFromString(bytes)) continue;
    ++readable;
    ASSERT_TRUE(names.ok()) << names.status();
    EXPECT_EQ(names->digest, message.digest());
    EXPECT_EQ(names->key, message.key());
    EXPECT_EQ(names->environment, message.environment());
  }
  google::protobuf::SetLogHandler(logged);
  EXPECT_GT(readable, 0);
  EXPECT_GT(refused, 0);
}

TEST(Wire, ChangedRecordIsRefused) {
  Random r(13);
  KernelRecord record = random_record(r);
  record.plan += "x";
  EXPECT_EQ(from_proto(to_proto(record)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Wire, EveryFieldOfARecordIsInItsDigest) {
  Random r(17);
  const KernelRecord record = random_record(r);
  const std::string digest = record_digest(record);
  const auto changed = [&](auto change) {
    KernelRecord other = record;
    change(other);
    return record_digest(other) != digest;
  };
  EXPECT_TRUE(changed([](KernelRecord& x) { x.key += "x"; }));
  EXPECT_TRUE(changed([](KernelRecord& x) { x.environment += "x"; }));
  EXPECT_TRUE(changed([](KernelRecord& x) { x.source.text += "x"; }));
  EXPECT_TRUE(changed([](KernelRecord& x) { ++x.source.grid; }));
  EXPECT_TRUE(changed([](KernelRecord& x) { x.object_sha256 += "x"; }));
  EXPECT_TRUE(changed([](KernelRecord& x) { x.samples_ns.push_back(1); }));
  EXPECT_TRUE(changed([](KernelRecord& x) { x.problem.buffers.emplace_back(); }));
  EXPECT_TRUE(changed([](KernelRecord& x) { x.check_seeds.push_back(0); }));
  EXPECT_TRUE(changed([](KernelRecord& x) { ++x.outcomes[2]; }));
  EXPECT_TRUE(changed([](KernelRecord& x) { x.device.threads += 1; }));
}

TEST(Wire, NonsenseIsRefusedAndSaysWhere) {
  v1::Problem problem;
  problem.add_buffers()->set_dtype("f7");
  EXPECT_THAT(std::string(from_proto(problem).status().message()), ::testing::HasSubstr("BufferSpec.dtype"));
  problem.mutable_buffers(0)->set_dtype("f32");
  problem.mutable_buffers(0)->add_shape(-1);
  EXPECT_FALSE(from_proto(problem).ok());
  problem.mutable_buffers(0)->set_shape(0, int64_t{1} << 40);
  problem.mutable_buffers(0)->add_shape(int64_t{1} << 40);
  EXPECT_FALSE(from_proto(problem).ok());
  v1::Trial trial;
  EXPECT_FALSE(from_proto(trial).ok()) << "no outcome";
  v1::TuneOptions options;
  options.set_effort("heroic");
  EXPECT_FALSE(from_proto(options).ok());
  options.set_effort("quick");
  options.set_libraries("cudnn");
  EXPECT_THAT(std::string(from_proto(options).status().message()), ::testing::HasSubstr("libraries"));
  Random r(19);
  Batch batch = random_batch(r);
  batch.checks.push_back({1, {{99, 0, 0, 0}}});
  EXPECT_FALSE(from_proto(to_proto(batch)).ok()) << "sample of a buffer that is not there";
  v1::Batch other = to_proto(random_batch(r));
  other.add_candidates()->set_prelude(other.preludes_size());
  EXPECT_FALSE(from_proto(other).ok()) << "a prelude that is not there";
  v1::Batch chained;
  *chained.mutable_problem() = to_proto(Problem{std::string(64, '0'), {{"x", DType::f32, {4}, false, {}, 0}}});
  *chained.mutable_recipe() = to_proto(Recipe{});
  chained.add_preludes("");
  chained.add_candidates()->mutable_source()->set_entry("k");
  v1::KernelChain* chain = chained.add_chains();
  EXPECT_FALSE(from_proto(chained).ok()) << "a chain without steps";
  v1::KernelChain::Step* step = chain->add_steps();
  step->add_arguments(0);
  chain->add_intermediates(64);
  step->add_arguments(1);
  EXPECT_TRUE(from_proto(chained).ok()) << from_proto(chained).status();
  for (const int kernel : {-1, 1}) {
    step->set_kernel(kernel);
    EXPECT_FALSE(from_proto(chained).ok()) << "a kernel that is not there";
  }
  step->set_kernel(0);
  for (const int argument : {-1, 2}) {
    step->set_arguments(1, argument);
    EXPECT_FALSE(from_proto(chained).ok()) << "a value that is not there";
  }
  step->set_arguments(1, 1);
  chain->set_intermediates(0, -1);
  EXPECT_FALSE(from_proto(chained).ok()) << "a value of less than no bytes";
}

TEST(Wire, ABatchCarriesEachPreludeOnce) {
  constexpr size_t kLength = 100'000;
  Batch batch;
  for (int i = 0; i < 8; ++i) {
    Candidate candidate;
    candidate.trial = i;
    candidate.source.entry = "k";
    candidate.source.prelude.assign(kLength, i % 2 == 0 ? 'g' : 'c');
    batch.candidates.push_back(candidate);
  }
  const v1::Batch message = to_proto(batch);
  EXPECT_LT(message.ByteSizeLong(), 3 * kLength);
  const auto back = from_proto(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->candidates, batch.candidates);
}

TEST(Wire, MessagesOfCompilersNeedNotBeUtf8) {
  Trial trial;
  trial.message = "error: \xff\xfe \xe2\x82\xac \xc0\x80 ok";
  const v1::Trial message = to_proto(trial);
  EXPECT_EQ(message.message(), "error: ?? \xe2\x82\xac ?? ok");
}

}  // namespace
}  // namespace wl
