// The queue of ready batches, without a server: which call gets which batch, and what happens when a call is cancelled,
// fails or reaches its deadline.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <latch>
#include <list>
#include <map>
#include <mutex>

#include "server/engine/ready_queue.h"
#include "tests/server/fakes.h"

namespace wl {
namespace {

constexpr auto kQueuePatience = std::chrono::seconds(20);

// A worker's call that waits at the queue for a lease, and the call's answer.
class Asking {
 public:
  AcquireDone done() {
    return [this](absl::StatusOr<Acquired> out) { answer_.set_value(std::move(out)); };
  }
  absl::StatusOr<Acquired> wait() {
    if (future_.wait_for(kQueuePatience) != std::future_status::ready) return absl::DeadlineExceededError("no answer");
    return future_.get();
  }
  bool waits() const { return future_.wait_for(std::chrono::seconds(0)) != std::future_status::ready; }

 private:
  std::promise<absl::StatusOr<Acquired>> answer_;
  std::future<absl::StatusOr<Acquired>> future_ = answer_.get_future();
};

Device other_device() {
  Device device = fake_device();
  device.name = "other";
  return device;
}

class Queue : public ::testing::Test {
 protected:
  ReadyQueue::Request request(const std::string& worker = "w", Device device = fake_device(), int max = 1) {
    return {.worker = worker,
            .epoch = 1,
            .devices = {std::move(device)},
            .max = max,
            .deadline = Clock::now() + std::chrono::hours(1)};
  }
  absl::StatusOr<std::optional<LeaseGrant>> lease(const std::string& id, const ReadyQueue::Request& by) {
    if (on_lease) on_lease(id, by);
    ++leased;
    if (!fails.ok() && by.worker == "unlucky") return fails;
    auto batch = std::make_shared<Batch>();
    batch->id = id;
    return LeaseGrant{"lease of " + id, 1, batch};
  }

  std::function<void(const std::string&, const ReadyQueue::Request&)> on_lease;
  std::atomic<int> leased = 0;
  absl::Status fails;
  std::atomic<bool> paused = false;
  std::list<Asking> calls;  // declared before the queue, which may still answer these calls while it is destroyed
  ReadyQueue queue{{.paused = [this] { return paused.load(); },
                    .lease = [this](const auto& id, const auto& by) { return lease(id, by); },
                    .release =
                        [this](const std::string&, const LeaseRef& ref) {
                          queue.put(ref.lease_id.substr(9), {fake_device(), {}});
                        }}};
};

std::string only_batch(const absl::StatusOr<Acquired>& acquired) {
  if (!acquired.ok()) return std::string(acquired.status().message());
  return acquired->leases.size() == 1 ? acquired->leases[0].batch->id : cat(acquired->leases.size(), " leases");
}

TEST_F(Queue, OneBatchWakesTheCallThatHasWaitedLongest) {
  std::vector<std::shared_ptr<LeaseCall>> waiting;
  for (int i = 0; i < 50; ++i) waiting.push_back(queue.wait(request(cat("w", i)), calls.emplace_back().done()));
  queue.put("a", {fake_device(), {}});
  EXPECT_EQ(only_batch(calls.front().wait()), "a");
  queue.put("b", {fake_device(), {}});
  EXPECT_EQ(only_batch(std::next(calls.begin())->wait()), "b");
  EXPECT_EQ(leased, 2) << "leases that were asked for";
  for (auto call = std::next(calls.begin(), 2); call != calls.end(); ++call) EXPECT_TRUE(call->waits());
  for (const auto& call : waiting) queue.cancel(call);
  for (auto call = std::next(calls.begin(), 2); call != calls.end(); ++call)
    EXPECT_TRUE(absl::IsCancelled(call->wait().status()));
  queue.put("c", {fake_device(), {}});
  EXPECT_EQ(only_batch([&] {
              queue.wait(request(), calls.emplace_back().done());
              return calls.back().wait();
            }()),
            "c")
      << "no call that was cancelled has it";
}

TEST_F(Queue, GivesInOrderAndByDevice) {
  queue.put("late", {fake_device(), {2, 0, 0}});
  queue.put("foreign", {other_device(), {0, 0, 0}});
  queue.put("early", {fake_device(), {1, 0, 0}});
  queue.put("dropped", {fake_device(), {0, 0, 0}});
  queue.drop("dropped");
  queue.wait(request("w", fake_device(), 5), calls.emplace_back().done());
  const auto first = calls.back().wait();
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->leases.size(), 2u);
  EXPECT_EQ(first->leases[0].batch->id, "early");
  EXPECT_EQ(first->leases[1].batch->id, "late");
  queue.wait(request("v", other_device()), calls.emplace_back().done());
  EXPECT_EQ(only_batch(calls.back().wait()), "foreign");
}

// Of several teams that always have work, each gets candidates in proportion to its weight, whatever the size of its
// batches.
TEST_F(Queue, TeamsShareByWeight) {
  const auto put = [&](const std::string& team, int64_t weight, int64_t size, int batches) {
    for (int i = 0; i < batches; ++i) {
      queue.put(cat(team, i), {.device = fake_device(),
                               .order = {static_cast<double>(i), 0, 0},
                               .team = team,
                               .weight = weight,
                               .candidates = size});
    }
  };
  put("heavy", 3, 8, 30);
  put("light", 1, 2, 40);
  std::map<std::string, int64_t> given;
  const auto take = [&](int batches) {
    for (int i = 0; i < batches; ++i) {
      queue.wait(request(), calls.emplace_back().done());
      const std::string batch = only_batch(calls.back().wait());
      given[batch.substr(0, 5)] += batch.starts_with("heavy") ? 8 : 2;
    }
  };
  take(42);
  EXPECT_NEAR(static_cast<double>(given["heavy"]) / static_cast<double>(given["light"]), 3, 0.35);
  // A team that joins late gets its share from then on, and no compensation for the time before.
  put("third", 1, 2, 40);
  given.clear();
  take(20);
  EXPECT_NEAR(static_cast<double>(given["third"]), static_cast<double>(given["light"]), 4);
  EXPECT_GT(given["heavy"], given["third"]);
}

TEST_F(Queue, ATeamOfHigherPriorityComesFirst) {
  queue.put("a", {.device = fake_device(), .order = {0, 0, 0}, .team = "low"});
  queue.put("b", {.device = fake_device(), .order = {5, 0, 0}, .team = "high", .priority = 1, .candidates = 100});
  queue.put("c", {.device = fake_device(), .order = {6, 0, 0}, .team = "high", .priority = 1, .candidates = 100});
  std::string order;
  for (int i = 0; i < 3; ++i) {
    queue.wait(request(), calls.emplace_back().done());
    order += only_batch(calls.back().wait());
  }
  EXPECT_EQ(order, "bca");
}

TEST_F(Queue, AWorkerOfATeamIsGivenItsBatchesAlone) {
  ReadyQueue::Request own = request("own");
  own.team = "vision";
  queue.put("theirs", {.device = fake_device(), .order = {}, .team = "speech"});
  queue.put("shared", {.device = fake_device(), .order = {}});
  Asking& asking = calls.emplace_back();
  queue.wait(own, asking.done());
  EXPECT_TRUE(asking.waits());
  queue.put("its own", {.device = fake_device(), .order = {9, 0, 0}, .team = "vision"});
  EXPECT_EQ(only_batch(asking.wait()), "its own");
  queue.wait(request("w", fake_device(), 5), calls.emplace_back().done());
  EXPECT_EQ(calls.back().wait()->leases.size(), 2u) << "who is of no team serves all";
}

TEST_F(Queue, ALeaseThatComesTooLateGoesToTheNextCall) {
  std::latch leasing(1), cancelled(1);
  on_lease = [&](const std::string&, const ReadyQueue::Request& by) {
    if (by.worker != "gone") return;
    leasing.count_down();
    cancelled.wait();
  };
  Asking& gone = calls.emplace_back();
  const auto call = queue.wait(request("gone"), gone.done());
  queue.put("a", {fake_device(), {}});
  leasing.wait();
  Asking& next = calls.emplace_back();
  queue.wait(request("next"), next.done());
  queue.cancel(call);
  cancelled.count_down();
  EXPECT_TRUE(absl::IsCancelled(gone.wait().status()));
  EXPECT_EQ(only_batch(next.wait()), "a");
}

TEST_F(Queue, AFailedLeaseEndsOneCall) {
  fails = absl::ResourceExhaustedError("the disk is full");
  Asking& unlucky = calls.emplace_back();
  queue.wait(request("unlucky"), unlucky.done());
  Asking& next = calls.emplace_back();
  queue.wait(request("next"), next.done());
  queue.put("a", {fake_device(), {}});
  EXPECT_TRUE(absl::IsResourceExhausted(unlucky.wait().status()));
  EXPECT_EQ(only_batch(next.wait()), "a");
}

TEST_F(Queue, ACallEndsEmptyAtItsDeadlineAndWhenTheCoordinatorLeaves) {
  Asking& patient = calls.emplace_back();
  queue.wait(request(), patient.done());
  ReadyQueue::Request hurried = request();
  hurried.deadline = Clock::now() + std::chrono::milliseconds(10);
  queue.wait(hurried, calls.emplace_back().done());
  const auto over = calls.back().wait();
  ASSERT_TRUE(over.ok());
  EXPECT_TRUE(over->leases.empty() && !over->drain);
  queue.leave();
  queue.put("a", {fake_device(), {}});
  queue.wait(request(), calls.emplace_back().done());
  for (Asking* call : {&patient, &calls.back()}) EXPECT_TRUE(absl::IsUnavailable(call->wait().status()));
}

TEST_F(Queue, ACallWaitsWhileTheCoordinatorIsDrained) {
  queue.drain(true);
  queue.put("a", {fake_device(), {}});
  ReadyQueue::Request hurried = request();
  hurried.deadline = Clock::now() + std::chrono::milliseconds(10);
  queue.wait(hurried, calls.emplace_back().done());
  const auto over = calls.back().wait();
  ASSERT_TRUE(over.ok());
  EXPECT_TRUE(over->leases.empty() && over->drain) << "it hears why";
  Asking& patient = calls.emplace_back();
  queue.wait(request(), patient.done());
  queue.drain(false);
  EXPECT_EQ(only_batch(patient.wait()), "a");
}

TEST_F(Queue, AWorkerIsNotGivenWhatItIsToBeKeptFrom) {
  ReadyQueue::Request kept_away = request("bad"), other = request("good");
  kept_away.deadline = Clock::now() + std::chrono::milliseconds(10);
  Asking& bad = calls.emplace_back();
  queue.put("a", {fake_device(), {0, 0, 0}, {"bad"}});
  queue.put("b", {fake_device(), {1, 0, 0}});
  queue.wait(request("bad"), bad.done());
  EXPECT_EQ(only_batch(bad.wait()), "b") << "although a is due before";
  queue.wait(kept_away, calls.emplace_back().done());
  EXPECT_TRUE(calls.back().wait()->leases.empty());
  queue.wait(other, calls.emplace_back().done());
  EXPECT_EQ(only_batch(calls.back().wait()), "a");
}

TEST_F(Queue, GivesNothingWhilePaused) {
  paused = true;
  queue.put("a", {fake_device(), {}});
  Asking& call = calls.emplace_back();
  queue.wait(request(), call.done());
  queue.put("b", {fake_device(), {1, 0, 0}});
  EXPECT_EQ(leased, 0);
  paused = false;
  queue.look();
  EXPECT_EQ(only_batch(call.wait()), "a");
}

}  // namespace
}  // namespace wl
