// A request with Tune::kLater gets predicted kernels at once, and those of the search when it is done. The test acts as
// coordinator, and says when each half is answered.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "client/fetch/client.h"
#include "client/program/bundle.h"
#include "client/remote/ask.h"
#include "tests/unit/client/fake_coordinator.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

// The coordinator of these tests has one program for predicted kernels and another one for searches. A test can hold
// the answers of either (predicted_, searched_) or make searches fail (error_).
class LaterTest : public ProgramsTest {
 protected:
  void SetUp() override {
    first_ = program_of("y[i] = x[i] + w[i];");
    better_ = program_of("y[i] = w[i] + x[i];");
    NEEDS_COMPILER(better_);
    better_.kernels[0].plan = "plan 2";
    request_.graph = root_ + "/g.graph";
    request_.trials = 8;
    request_.tune = Tune::kLater;
    ASSERT_TRUE(write_file(request_.graph, first_.graph_text).ok());
  }
  ClientOptions options() {
    ClientOptions options;
    options.cache.folder = root_ + "/cache";
    options.pause = std::chrono::milliseconds(0);
    options.ask = [this](const BundleRequest& request, const std::string& folder, const std::stop_token& stop) {
      return answer(request, folder, stop);
    };
    return options;
  }
  absl::Status answer(const BundleRequest& request, const std::string& folder, const std::stop_token& stop) {
    const bool now = request.tune == Tune::kNow;
    ++(now ? asked_now_ : request.tune == Tune::kLater ? asked_later_ : asked_wait_);
    const std::latch& open = now ? predicted_ : searched_;
    while (!open.try_wait() && !stop.stop_requested()) std::this_thread::yield();
    if (stop.stop_requested()) {
      ++stopped_;
      return absl::CancelledError("stopped");
    }
    if (!now && !error_.ok()) return error_;
    return write_bundle(folder, now ? first_ : better_, now ? "{}" : "{\"trials\": 8}");
  }
  static Client::Clock::time_point in_no_time() { return Client::Clock::now(); }
  static void await(const auto& condition) {
    while (!condition()) std::this_thread::yield();
  }

  Program first_, better_;
  BundleRequest request_;
  std::atomic<int> asked_now_ = 0, asked_later_ = 0, asked_wait_ = 0, stopped_ = 0;
  std::latch predicted_{1}, searched_{1};  // the halves are answered once these are open
  absl::Status error_;
};

TEST_F(LaterTest, PredictedKernelsComeFirstAndTheSearchReplacesThem) {
  predicted_.count_down();
  Client client(options());
  const auto first = client.load(request_, {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->from, BundleFrom::kCoordinator);
  EXPECT_EQ(first->standing->chosen, BundleChoice::kPredicted);
  await([&] { return asked_later_ == 1; });  // nobody calls, and the search begins all the same
  const auto again = client.load(request_, {});
  EXPECT_EQ(again->from, BundleFrom::kProcess);
  EXPECT_EQ(again->bundle, first->bundle);
  EXPECT_FALSE(first->standing->replaced);
  searched_.count_down();
  await([&] { return first->standing->replaced.load(); });
  const auto found = client.load(request_, in_no_time());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->from, BundleFrom::kProcess);
  EXPECT_NE(found->bundle, first->bundle);
  EXPECT_EQ(found->standing->chosen, BundleChoice::kTuned);
  EXPECT_FALSE(found->standing->replaced);
  EXPECT_EQ(found->bundle->first().kernels[0].plan, "plan 2");
  EXPECT_EQ(asked_now_ + asked_later_, 2) << "each half is asked for once";
}

TEST_F(LaterTest, OtherProcessesAreNotGivenPredictedKernelsAsSearchedOnes) {
  predicted_.count_down();
  { EXPECT_EQ(Client(options()).load(request_, {})->standing->chosen, BundleChoice::kPredicted); }
  BundleRequest wait = request_, now = request_;
  wait.tune = Tune::kWait;
  now.tune = Tune::kNow;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Client(options()).load(wait, in_no_time()).status()));
  {
    Client other(options());
    const auto found = other.load(request_, in_no_time());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->from, BundleFrom::kDisk);
    EXPECT_EQ(found->standing->chosen, BundleChoice::kPredicted);
    searched_.count_down();
    await([&] { return found->standing->replaced.load(); });
  }
  EXPECT_EQ(asked_now_, 1) << "predicted kernels are kept on disk, too";
  const int before = asked_later_ + asked_wait_;
  for (const BundleRequest& request : {wait, now, request_}) {
    Client other(options());
    const auto found = other.load(request, in_no_time());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->from, BundleFrom::kDisk);
    EXPECT_EQ(found->standing->chosen, BundleChoice::kTuned);
  }
  EXPECT_EQ(asked_now_, 1);
  EXPECT_EQ(asked_later_ + asked_wait_, before);
}

TEST_F(LaterTest, NowSearchesNothingAndOneTrialIsNoSearch) {
  predicted_.count_down();
  request_.tune = Tune::kNow;
  BundleRequest one = request_;
  one.tune = Tune::kLater;
  one.trials = 1;
  {
    Client client(options());
    for (const BundleRequest& request : {request_, one})
      for (int i = 0; i < 2; ++i) EXPECT_EQ(client.load(request, {})->standing->chosen, BundleChoice::kPredicted);
  }
  EXPECT_EQ(asked_now_, 2);
  EXPECT_EQ(asked_later_ + asked_wait_ + stopped_, 0);
  // Without trials there is nothing to choose between.
  one.trials = 0;
  searched_.count_down();
  EXPECT_EQ(Client(options()).load(one, {})->standing->chosen, BundleChoice::kUnknown);
  EXPECT_EQ(asked_wait_, 1);
}

TEST_F(LaterTest, BothHalvesEndWithTheClient) {
  auto client = std::make_unique<Client>(options());
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->load(request_, in_no_time()).status()));
  await([&] { return asked_now_ == 1; });
  client.reset();
  EXPECT_EQ(stopped_, 1) << "the predicted half";
  EXPECT_EQ(asked_later_, 0) << "what was cancelled is not searched further";
  predicted_.count_down();
  client = std::make_unique<Client>(options());
  ASSERT_TRUE(client->load(request_, {}).ok());
  await([&] { return asked_later_ == 1; });
  client.reset();
  EXPECT_EQ(stopped_, 2) << "the search";
}

TEST_F(LaterTest, FewSearchesRunAtATimeAndNoneDelaysPredictedKernels) {
  predicted_.count_down();
  ClientOptions narrow = options();
  narrow.most_searches = 1;
  Client client(narrow);
  std::vector<Client::Found> found;
  for (int64_t trials = 8; trials < 12; ++trials) {
    request_.trials = trials;
    auto one = client.load(request_, {});  // the search of the first request is held
    ASSERT_TRUE(one.ok()) << one.status();
    found.push_back(*std::move(one));
    await([&] { return asked_later_ == 1; });
  }
  searched_.count_down();
  for (const Client::Found& one : found) await([&] { return one.standing->replaced.load(); });
  EXPECT_EQ(asked_later_, 4) << "the others follow, although nobody calls";
}

TEST_F(LaterTest, TheSameKernelsReplaceNothing) {
  predicted_.count_down();
  searched_.count_down();
  better_ = first_;
  Client client(options());
  const auto first = client.load(request_, {});
  ASSERT_TRUE(first.ok()) << first.status();
  await([&] { return first->standing->chosen == BundleChoice::kTuned; });
  const auto found = client.load(request_, {});
  EXPECT_EQ(found->bundle, first->bundle);
  EXPECT_FALSE(first->standing->replaced);
}

TEST_F(LaterTest, ASearchThatFailsLeavesThePredictedKernels) {
  predicted_.count_down();
  searched_.count_down();
  error_ = absl::UnavailableError("no coordinator answers");
  ClientOptions patient = options();
  patient.pause = std::chrono::hours(2);
  {
    Client client(patient);
    const auto first = client.load(request_, {});
    await([&] { return asked_later_ == 1; });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.load(request_, {})->bundle, first->bundle);
  }
  EXPECT_EQ(asked_later_, 1) << "a failed search rests";
  Client hasty(options());
  const auto first = hasty.load(request_, {});
  await([&] { return hasty.load(request_, {}).ok() && asked_later_ >= 4; });
  EXPECT_FALSE(first->standing->replaced);
}

// The jobs of a client that has asked for them alone end with it.
class EndedJobs : public FakeCoordinator {
 protected:
  // Asks for a graph, and stops while the job is watched. Returns how often the job was cancelled.
  int stopped(Tune tune) {
    BundleRequest request;
    request.graph = path("g.graph");
    EXPECT_TRUE(write_file(request.graph, right_record().graph).ok());
    request.trials = 8;
    request.tune = tune;
    tuning_.job.set_name("jobs/1");
    tuning_.job.set_state(v1::JOB_STATE_RUNNING);
    std::latch watched(1);
    tuning_.watch = [&](grpc::ServerContext* context, grpc::ServerWriter<v1::Job>*) {
      watched.count_down();
      while (!context->IsCancelled()) std::this_thread::yield();
      return grpc::Status::CANCELLED;
    };
    std::stop_source stop;
    std::jthread stopper([&] {
      watched.wait();
      stop.request_stop();
    });
    const int before = tuning_.cancels;
    CoordinatorAddress address;
    address.server = address_;
    const absl::Status status = ask_coordinator(address, request, path("out"), stop.get_token());
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    return tuning_.cancels - before;
  }
};

TEST_F(EndedJobs, OfPredictedKernelsAndOfSearchesForLater) {
  EXPECT_EQ(stopped(Tune::kLater), 1);
  EXPECT_TRUE(tuning_.asked.options().background());
  EXPECT_EQ(tuning_.asked.options().trials(), 8);
  EXPECT_EQ(stopped(Tune::kNow), 1);
  EXPECT_EQ(tuning_.asked.options().effort(), "now");
  EXPECT_EQ(tuning_.asked.options().trials(), 0);
  EXPECT_EQ(stopped(Tune::kWait), 0) << "a later process finds what it has found";
  EXPECT_FALSE(tuning_.asked.options().background());
}

}  // namespace
}  // namespace wl
