// The class Leases by itself, over a store with one search, for the tests of leases.
#pragma once

#include <gtest/gtest.h>

#include <future>

#include "server/engine/leases.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {

inline absl::StatusOr<Acquired> acquire_from(Leases& leases, const std::string& name, int max,
                                             Clock::time_point deadline) {
  const auto answer = std::make_shared<std::promise<absl::StatusOr<Acquired>>>();
  leases.acquire(name, 1, max, deadline, [answer](auto acquired) { answer->set_value(std::move(acquired)); });
  return answer->get_future().get();
}

class LeasesAlone : public ::testing::Test {
 protected:
  explicit LeasesAlone(Clock::duration stuck = std::chrono::hours(1)) : stuck_(stuck) {
    EXPECT_TRUE(workers_.add("w", 0, {fake_device()}).ok());
    JobRow job;
    job.request_id = "r";
    job.device = fake_device();
    const int64_t id = store_->create_job(job)->id;
    search_id_ = store_->open_search(id, SearchRow{0, "k", "e", "random", 0, 1}, false)->id;
    leases_.recovered();
  }
  void TearDown() override {
    for (const absl::Status& status : store_failed_) ADD_FAILURE() << status;
  }
  // `promotes`: whether the batch's objects are kept, as those of a promotion are.
  void offer(const std::string& id, double due, int64_t first, int64_t size = 1, bool promotes = false) {
    Offer offer;
    offer.row.id = id;
    offer.row.search_id = offer.search_id = search_id_;
    offer.row.first_trial = first;
    offer.row.size = size;
    offer.device = fake_device();
    offer.order = {due, 0, 0};
    auto batch = std::make_shared<Batch>();
    batch->id = id;
    batch->keep_objects = promotes;
    for (int64_t trial = first; trial < first + size; ++trial) {
      batch->candidates.push_back({.trial = trial, .plan = cat("plan ", trial), .source = {}});
      offer.row.candidates.push_back({trial, cat("plan ", trial)});
    }
    offer.batch = batch;
    EXPECT_TRUE(store_->put_round(offer.row, search_id_, 0, {}).ok());
    leases_.offer(std::move(offer));
  }
  Acquired acquire(int max = 1, const std::string& name = "w") {
    return acquire_from(leases_, name, max, Clock::now()).value();
  }
  static LeaseRef ref(const LeaseGrant& grant) { return {grant.lease_id, grant.attempt}; }
  // Lets a worker acquire the next batch and then ends its lease without a report.
  LeaseGrant lose(const std::string& name = "w", LeaseEnd why = LeaseEnd::kExpired) {
    const Acquired acquired = acquire(1, name);
    EXPECT_EQ(acquired.leases.size(), 1u) << name << " is given nothing";
    if (acquired.leases.empty()) return {};
    leases_.end({acquired.leases[0].batch->id, ref(acquired.leases[0])}, why);
    return acquired.leases[0];
  }
  // Lets worker "w" acquire and report `count` batches, so that most leases end well.
  void keep(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string id = cat("kept ", i);
      offer(id, 0, 1000 + i);
      EXPECT_EQ(leases_.report("w", id, ref(acquire().leases.at(0)), {}).value(), ReportOutcome::kAccepted);
    }
  }
  std::vector<std::string> open_batches() {
    const std::vector<BatchRow> rows = store_->open_batches(search_id_).value();
    std::vector<std::string> ids;
    for (const BatchRow& row : rows) ids.push_back(row.id);
    return ids;
  }
  // Returns an offer of one candidate; its batch is stored, but not offered yet.
  Offer single(const std::string& id) {
    Offer offer;
    offer.row.id = id;
    offer.row.search_id = offer.search_id = search_id_;
    offer.row.size = 1;
    offer.row.candidates = {{0, "plan 0"}};
    offer.device = fake_device();
    auto batch = std::make_shared<Batch>();
    batch->id = id;
    batch->candidates = {{.trial = 0, .plan = "plan 0", .source = {}}};
    offer.batch = batch;
    EXPECT_TRUE(store_->put_round(offer.row, search_id_, 0, {}).ok());
    return offer;
  }

  const Clock::duration stuck_;
  Scratch scratch_;
  std::unique_ptr<Store> store_ = Store::open({.file = scratch_.path("a.db")}).value();
  Workers workers_{store_.get(), std::chrono::milliseconds(60'000)};
  EventLoop loop_{[] {}};
  std::vector<std::pair<std::string, std::vector<Trial>>> stored_;
  std::vector<std::string> split_;
  std::vector<absl::Status> store_failed_;  // errors of writes to the store; a test removes those that it expects
  Leases leases_{
      store_.get(),
      &workers_,
      &loop_,
      std::chrono::milliseconds(60'000),
      stuck_,
      /*patience_s=*/0,
      /*quiet_while_busy=*/true,
      {.stored = [this](int64_t, const std::string& id, const std::vector<Trial>& trials,
                        const std::string&) { stored_.emplace_back(id, trials); },
       .split = [this](int64_t, const std::string& id, const std::vector<BatchRow>&) { split_.push_back(id); },
       .store_failed = [this](int64_t, const absl::Status& status) { store_failed_.push_back(status); }}};
  int64_t search_id_ = 0;
};

}  // namespace wl
