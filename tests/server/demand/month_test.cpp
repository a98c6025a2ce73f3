// A coordinator searches what programs run while nobody waits for its workers: a month with 200 kernels, whose load is
// skewed and drifts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <latch>
#include <thread>

#include "server/engine/engine.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

CoordinatorOptions with_background(const std::string& store) {
  CoordinatorOptions options;
  options.store = store;
  options.background = {.on = true};
  return options;
}

int64_t count_uses(const Caller& caller, const std::vector<KernelUse>& uses) {
  grpc::ClientContext context;
  v1::CountUsesRequest request;
  for (const KernelUse& use : uses) {
    v1::KernelUse* item = request.add_uses();
    item->set_key(use.key);
    item->set_calls(use.calls);
    item->set_ns(use.ns);
  }
  v1::CountUsesResponse answer;
  const grpc::Status status = caller.kernels->CountUses(&context, request, &answer);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return answer.known();
}

// Waits until the coordinator has ended this many jobs, and returns the last of them.
Job ended_job(Caller& caller, int64_t number) {
  for (;;) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_name(cat("jobs/", number));
    v1::Job job;
    if (caller.tuning->GetJob(&context, request, &job).ok()) break;
    std::this_thread::yield();
  }
  return caller.watch(cat("jobs/", number)).back();
}

constexpr int64_t kHourNs = 3'600'000'000'000;

TEST(Background, WhatProgramsRunMostIsSearchedFurther) {
  Scratch scratch;
  Service service(with_background(scratch.path("a.db")));
  FakeWorker worker(service.channel, "w");
  const Job little = service.run("little", trials(1), one_op(8));
  const Job much = service.run("much", trials(1), one_op(16));
  ASSERT_EQ(much.state, JobState::kSucceeded) << much.error;
  const std::string unknown(64, 'a');
  EXPECT_EQ(count_uses(service, {{little.result->groups[0].key, 10, kHourNs},
                                 {much.result->groups[0].key, 10, 3 * kHourNs},
                                 {unknown, 10, 100 * kHourNs}}),
            2);
  const Job first = ended_job(service, 3);
  ASSERT_EQ(first.state, JobState::kSucceeded) << first.error;
  EXPECT_EQ(first.result->groups[0].key, much.result->groups[0].key);
  EXPECT_EQ(service.record(much.result->groups[0].key)->trials_asked, 8);
  const Job second = ended_job(service, 4);
  ASSERT_EQ(second.state, JobState::kSucceeded) << second.error;
  EXPECT_EQ(second.result->groups[0].key, little.result->groups[0].key);
}

TEST(Background, NothingIsSearchedUnlessItIsOn) {
  Scratch scratch;
  CoordinatorOptions options = with_background(scratch.path("a.db"));
  options.background.on = false;
  Service service(options);
  FakeWorker worker(service.channel, "w");
  const Job job = service.run("r", trials(1), one_op(8));
  EXPECT_EQ(count_uses(service, {{job.result->groups[0].key, 10, kHourNs}}), 1) << "it is counted nevertheless";
  // A second job passes through the engine's thread, and ends long after a search could have begun.
  const Job other = service.run("s", trials(1), one_op(16));
  EXPECT_EQ(other.name, "jobs/2");
}

// Nobody asked for the search, so it makes nothing slower.
TEST(Background, AFasterRecordStays) {
  Scratch scratch;
  Service service(with_background(scratch.path("a.db")));
  std::atomic<bool> slow = false;
  FakeWorker worker(service.channel, "w", {.judge = [&](const Batch&, Trial* trial) {
                      for (int64_t& ns : trial->samples_ns) ns *= slow ? 3 : 1;
                    }});
  const Job job = service.run("r", trials(8), one_op(8));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  const std::string key = job.result->groups[0].key;
  const std::string digest = service.record(key)->digest;
  slow = true;
  EXPECT_EQ(count_uses(service, {{key, 10, 100 * kHourNs}}), 1);
  ASSERT_EQ(ended_job(service, 2).state, JobState::kSucceeded);
  EXPECT_EQ(service.record(key)->digest, digest);
}

// A graph that clients asked for in vain gets default kernels, so that they are there when it is asked for again.
TEST(Background, WhatWasMissedIsMade) {
  Scratch scratch;
  Service service(with_background(scratch.path("a.db")));
  FakeWorker worker(service.channel, "w");
  ASSERT_EQ(service.run("first", trials(1), one_op(8)).state, JobState::kSucceeded);  // the device is known
  TuneOptions asked = trials(0);
  asked.require_cached = true;
  ASSERT_EQ(service.run("missed", asked, one_op(16)).state, JobState::kNotCached);
  const Job made = ended_job(service, 3);
  ASSERT_EQ(made.state, JobState::kSucceeded) << made.error;
  EXPECT_EQ(service.run("again", asked, one_op(16)).state, JobState::kSucceeded);
}

// Of two ready batches, a worker gets that of the job for which a client waits, although the other was ready earlier.
TEST(Background, ClientsComeFirst) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  std::latch first(1), go(1);
  std::mutex mutex;
  std::vector<std::string> order;  // keys of the groups, in the order of measuring
  FakeWorker worker(service.channel, "w", {.before = [&](const Batch& batch) {
                      {
                        const std::lock_guard lock(mutex);
                        order.push_back(batch.problem.key);
                        if (order.size() > 1) return;
                      }
                      first.count_down();
                      go.wait();
                    }});
  TuneOptions background = trials(32);
  background.background = true;
  background.at_once = 2;
  const auto patient = service.create("background", background, one_op(8));
  ASSERT_TRUE(patient.ok()) << patient.status();
  first.wait();
  const auto ready = [&](const Job& job) {
    return number_in(
        scratch.path("a.db"),
        cat("SELECT count(*) FROM batches b JOIN job_groups g ON g.search_id = b.search_id WHERE b.state = "
            "'ready' AND g.job_id = ",
            job.name.substr(5)));
  };
  while (ready(*patient) == 0) std::this_thread::yield();
  const auto client = service.create("client", trials(8), one_op(16));
  ASSERT_TRUE(client.ok()) << client.status();
  while (ready(*client) == 0) std::this_thread::yield();
  go.count_down();
  const Job done = service.watch(client->name).back();
  ASSERT_EQ(done.state, JobState::kSucceeded) << done.error;
  const std::lock_guard lock(mutex);
  EXPECT_EQ(order.at(1), done.result->groups[0].key);
}

// --- A month

constexpr int kKeys = 200, kWorkers = 4, kMonth = 30, kFirstDay = 20'000;
// The days of the month are as long as this many searches.
constexpr int kSearchesAtFirst = 16, kSearchesADay = 1;

// The largest share of the default schedule's time that a search of the key can save.
double most_saved(const std::string& key) {
  return static_cast<double>(number_of(key) % 1000) / 1000 * 0.6;
}

// The time of a plan of a key: a default schedule takes 2000 ns, others less by a share that differs between keys.
double time_of(const std::string& key, const std::string& plan) {
  if (plan.ends_with(" number=0")) return 2000;
  const double luck = static_cast<double>(number_of(cat(key, plan)) % 1000) / 1000;
  return 2000 * (1 - most_saved(key) * luck);
}

// The nanoseconds that programs spend in the default schedule of the key with this rank on a day: few keys have most of
// the load, and a key in thirty changes its rank with another each day.
double load_of(int key, int day) {
  int rank = (key * 37) % kKeys;
  for (int d = 1; d <= day; ++d) {
    const int one = (d * 53) % kKeys, other = (d * 7) % 20;
    rank = rank == one ? other : rank == other ? one : rank;
  }
  return 200.0 * static_cast<double>(kHourNs) / std::pow(rank + 1, 1.5);
}

// Returns the number of trials after which searches of 32 trials for each key, in the order of the list, gain four
// fifths of what can be gained on the last day.
int64_t trials_of_equal_searches(const std::vector<std::string>& keys) {
  constexpr int kTrials = 32;
  double gained = 0, possible = 0;
  for (int i = 0; i < kKeys; ++i) possible += load_of(i, kMonth - 1) * most_saved(keys[i]);
  for (int i = 0; i < kKeys; ++i) {
    double best = 2000;
    for (int trial = 0; trial < kTrials; ++trial) best = std::min(best, time_of(keys[i], cat("another plan ", trial)));
    gained += load_of(i, kMonth - 1) * (1 - best / 2000);
    if (gained >= 0.8 * possible) return kTrials * (i + 1);
  }
  return kTrials * kKeys;
}

struct Month {
  std::map<std::string, double> best;  // for each key, the time in ns of its best kernel so far
  int64_t trials = 0;                  // number of trials, promotions not counted
};

TEST(Background, AMonthGainsMostWithATenthOfTheTrials) {
  Scratch scratch;
  std::atomic<int64_t> day = kFirstDay;
  CoordinatorOptions options = with_background(scratch.path("a.db"));
  options.today = [&day] { return day.load(); };
  Service service(options);
  std::mutex mutex;
  Month seen;
  Hooks hooks;
  hooks.judge = [&](const Batch& batch, Trial* trial) {
    if (trial->outcome != Outcome::kCorrect) return;
    const double ns = time_of(batch.problem.key, trial->plan);
    trial->samples_ns = {static_cast<int64_t>(ns)};
    const std::lock_guard lock(mutex);
    double& best = seen.best.try_emplace(batch.problem.key, 2000).first->second;
    best = std::min(best, ns);
    seen.trials += batch.phase == 0;
  };
  std::vector<std::unique_ptr<FakeWorker>> workers;
  for (int i = 0; i < kWorkers; ++i)
    workers.push_back(std::make_unique<FakeWorker>(service.channel, cat("w", i), hooks));
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i)
    keys.push_back(service.run(cat("r", i), trials(1), one_op(i + 1)).result->groups.at(0).key);
  ASSERT_EQ(seen.trials, 0);
  double gained = 0, possible = 0;
  int64_t jobs = kKeys;
  for (int d = 0; d < kMonth; ++d) {
    day = kFirstDay + d;
    std::vector<KernelUse> uses;
    for (int i = 0; i < kKeys; ++i) {
      const std::lock_guard lock(mutex);
      const double ns = load_of(i, d) * seen.best.at(keys[i]) / 2000;
      uses.push_back({keys[i], 1 + static_cast<int64_t>(ns / 2000), static_cast<int64_t>(ns)});
    }
    EXPECT_EQ(count_uses(service, uses), kKeys);
    jobs += d == 0 ? kSearchesAtFirst : kSearchesADay;
    EXPECT_EQ(ended_job(service, jobs).state, JobState::kSucceeded);
    const std::lock_guard lock(mutex);
    for (int i = 0; i < kKeys; ++i) {
      gained += load_of(i, d) * (1 - seen.best.at(keys[i]) / 2000);
      possible += load_of(i, d) * most_saved(keys[i]);
    }
  }
  const std::lock_guard lock(mutex);
  EXPECT_GE(gained, 0.8 * possible);
  const int64_t equal = trials_of_equal_searches(keys);
  EXPECT_LE(10 * seen.trials, equal);
  std::printf("%.3f of what could be gained, by %ld trials; equal searches need %ld\n", gained / possible,
              static_cast<long>(seen.trials), static_cast<long>(equal));
}

}  // namespace
}  // namespace wl
