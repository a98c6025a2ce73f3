// Every record survives conversion: random records are converted to messages and back, and to bytes and back.
#include "proto/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace wl {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool flip() { return below(2) == 0; }
  double real() {
    return std::ldexp(static_cast<double>(below(1 << 30)) - (1 << 29), static_cast<int>(below(60)) - 30);
  }
  uint64_t bits() { return engine_(); }
  std::string text() {
    std::string out;
    for (int64_t i = below(20); i > 0; --i) out.push_back(static_cast<char>(' ' + below(95)));
    return out;
  }
  template <typename Make>
  auto list(Make make) {
    std::vector<decltype(make())> out;
    for (int64_t i = below(5); i > 0; --i) out.push_back(make());
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

Fill random_fill(Random& r) {
  return {r.real(), r.real(), r.below(100), r.below(100), r.list([&] { return r.real(); })};
}
BufferSpec random_buffer(Random& r) {
  return {
      r.text(), static_cast<DType>(r.below(kDTypeCount)), r.list([&] { return r.below(9); }), r.flip(), random_fill(r),
      r.bits()};
}
Problem random_problem(Random& r) {
  return {r.text(), r.list([&] { return random_buffer(r); })};
}
Source random_source(Random& r) {
  return {r.text(),
          r.text(),
          r.text(),
          r.text(),
          r.text(),
          r.below(1000),
          static_cast<int>(r.below(64)),
          r.below(1 << 20),
          static_cast<int>(r.below(17)),
          static_cast<int>(r.below(17))};
}
Device random_device(Random& r) {
  return {"cpu" + r.text(), r.text(),         1 + static_cast<int>(r.below(64)), r.below(1 << 20),
          r.below(1 << 20), r.below(1 << 20), r.list([&] { return r.text(); }),  r.text(),
          r.text()};
}
CodeFacts random_code(Random& r) {
  const auto small = [&] { return static_cast<int>(r.below(100)); };
  return {1 + small(),
          r.below(1 << 20),
          r.below(1 << 20),
          r.below(1 << 20),
          r.below(1 << 20),
          small(),
          small(),
          small(),
          small(),
          r.flip(),
          static_cast<double>(r.below(9)) / 8};
}
Trial random_trial(Random& r) {
  return {r.below(100),
          r.text(),
          static_cast<Outcome>(r.below(kOutcomeCount)),
          r.list([&] { return r.below(1 << 30); }),
          r.flip(),
          r.real(),
          r.real(),
          r.text(),
          r.real(),
          r.real(),
          r.real(),
          r.text(),
          r.flip() ? random_code(r) : CodeFacts{},
          static_cast<int>(r.below(2000)),
          r.list([&] { return r.below(2000); })};
}
Recipe random_recipe(Random& r) {
  const int least = 1 + static_cast<int>(r.below(9));
  return {r.flip(),
          least,
          least + static_cast<int>(r.below(9)),
          r.below(1 << 30),
          1 + r.below(1 << 30),
          r.real(),
          r.below(1 << 30),
          r.flip(),
          static_cast<int>(r.below(9))};
}
Batch random_batch(Random& r) {
  Batch batch;
  batch.id = r.text();
  batch.problem = random_problem(r);
  batch.problem.buffers.push_back({"y", DType::f32, {7, 9}, true, {}, 0});
  const int last = static_cast<int>(batch.problem.buffers.size()) - 1;
  batch.checks = r.list([&] {
    return Check{r.bits(), r.list([&] { return Check::Sample{last, r.below(63), r.real(), r.real()}; })};
  });
  batch.recipe = random_recipe(r);
  batch.candidates = r.list([&] { return Candidate{r.below(100), r.text(), random_source(r)}; });
  batch.keep_objects = r.flip();
  batch.phase = r.below(5);
  if (r.flip()) batch.limits = {32, 1024, 2048, 32, 255, 65536, r.below(1 << 20), r.below(1 << 20)};
  return batch;
}
OutcomeCounts random_counts(Random& r) {
  OutcomeCounts out{};
  for (int64_t& count : out) count = r.below(5);
  return out;
}
KernelRecord random_record(Random& r) {
  KernelRecord out;
  out.key = r.text();
  out.environment = r.text();
  out.device = random_device(r);
  out.graph = r.text();
  out.plan = r.text();
  out.default_plan = r.text();
  out.problem = random_problem(r);
  out.source = random_source(r);
  out.object_sha256 = r.text();
  out.samples_ns = r.list([&] { return r.below(1 << 30); });
  out.default_samples_ns = r.list([&] { return r.below(1 << 30); });
  out.max_error = r.real();
  out.bound = r.real();
  out.check_seeds = r.list([&] { return r.bits(); });
  out.strategy = r.text();
  out.trials_asked = r.below(1000);
  out.budget_s = r.real();
  out.outcomes = random_counts(r);
  out.bytes = r.below(1 << 30);
  out.ops = r.below(99);
  out.flops = r.real();
  out.compile_s = r.real();
  out.check_s = r.real();
  out.measure_s = r.real();
  out.digest = record_digest(out);
  return out;
}
TuneOptions random_options(Random& r) {
  TuneOptions out;
  out.target = "cpu" + r.text();
  out.trials = r.below(1000);
  out.budget_s = static_cast<double>(r.below(1000)) / 8;
  out.seed = r.bits();
  out.strategy = "s" + r.text();
  out.effort = r.flip() ? "quick" : "thorough";
  out.cover = "c" + r.text();
  out.cold = r.flip();
  out.retune = r.flip();
  out.require_cached = !out.retune && r.flip();
  if (r.flip()) out.device = random_device(r);
  return out;
}
JobResult random_result(Random& r) {
  JobResult out;
  out.groups = r.list([&] {
    return GroupResult{r.text(),
                       r.text(),
                       r.below(9),
                       r.below(9),
                       r.text(),
                       r.below(9),
                       r.below(9),
                       r.below(1 << 30),
                       r.below(1 << 30),
                       r.real(),
                       r.real(),
                       r.real(),
                       r.list([&] { return r.below(1 << 30); }),
                       random_counts(r),
                       r.real(),
                       r.real(),
                       r.text(),
                       r.text()};
  });
  out.groups.emplace_back();
  out.buffers = r.list([&] {
    return ResultBuffer{r.text(), static_cast<DType>(r.below(kDTypeCount)), r.list([&] { return r.below(9); }),
                        static_cast<ResultBuffer::Kind>(r.below(3))};
  });
  out.buffers.emplace_back();
  const auto buffer = [&] { return static_cast<int>(r.below(static_cast<int64_t>(out.buffers.size()))); };
  out.steps = r.list([&] {
    return Step{static_cast<int>(r.below(static_cast<int64_t>(out.groups.size()))), r.list(buffer)};
  });
  out.inputs = r.list([&] { return Binding{r.text(), buffer()}; });
  out.outputs = r.list([&] { return Binding{r.text(), buffer()}; });
  out.graph_hash = r.text();
  out.kernels_default = r.below(99);
  out.kernels = r.below(99);
  out.bytes_default = r.below(1 << 30);
  out.bytes = r.below(1 << 30);
  out.default_ns = r.real();
  out.best_ns = r.real();
  out.trials = r.below(999);
  out.enumerate_s = r.real();
  out.compile_s = r.real();
  out.check_s = r.real();
  out.measure_s = r.real();
  out.total_s = r.real();
  out.device = random_device(r);
  out.environment = r.text();
  out.warploom_version = r.text();
  out.cover_rounds = r.below(9);
  out.cover_certified = r.below(2) == 1;
  return out;
}
JobProgress random_progress(Random& r) {
  JobProgress out;
  out.groups = r.list([&] {
    return GroupProgress{r.text(), r.text(),         r.below(99), r.below(99), r.below(9), r.real(),
                         r.real(), random_counts(r), r.flip(),    r.flip(),    r.flip()};
  });
  out.trials_done = r.below(999);
  out.trials_total = r.below(999);
  out.elapsed_s = r.real();
  out.left_s = r.real();
  out.workers = static_cast<int>(r.below(9));
  out.phase = r.text();
  return out;
}

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
                back->recipe == batch.recipe && back->candidates == batch.candidates &&
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
  Random r(19);
  Batch batch = random_batch(r);
  batch.checks.push_back({1, {{99, 0, 0, 0}}});
  EXPECT_FALSE(from_proto(to_proto(batch)).ok()) << "sample of a buffer that is not there";
  v1::Batch other = to_proto(random_batch(r));
  other.add_candidates()->set_prelude(other.preludes_size());
  EXPECT_FALSE(from_proto(other).ok()) << "a prelude that is not there";
}

TEST(Wire, ABatchCarriesEachPreludeOnce) {
  constexpr size_t kLength = 100'000;
  Batch batch;
  for (int i = 0; i < 8; ++i) {
    Candidate candidate;
    candidate.trial = i;
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
