// A fixture with a store of winners that one job made with gcc 12. Coordinators are started on this store one after the
// other, for workers with gcc 13.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <map>
#include <memory>
#include <thread>

#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {

using Kernels = std::vector<v1::ReverifiedKernel>;

inline Device newer() {
  Device device = fake_device();
  device.compiler_versions = "gcc 13";
  return device;
}

// Blocks the first call of hold() until `go` is counted down. `reached` is counted down when that call blocks.
struct Gate {
  void hold() {
    if (!first.exchange(false)) return;
    reached.count_down();
    go.wait();
  }
  std::atomic<bool> first = true;
  std::latch reached{1}, go{1};
};

inline CoordinatorOptions options_for(const std::string& store, bool by_itself) {
  CoordinatorOptions options;
  options.store = store;
  options.reverify = by_itself;
  return options;
}

class Reverify : public ::testing::Test {
 protected:
  Reverify() {
    open(false);
    FakeWorker worker(service_->channel, "w");
    before_ = service_->run("r1", trials(24));
    EXPECT_EQ(before_.state, JobState::kSucceeded) << before_.error;
    records_ = number_in(file(), "SELECT count(*) FROM records WHERE blessed = 1");
  }
  void open(bool by_itself) {
    service_.reset();
    service_ = std::make_unique<Service>(options_for(file(), by_itself));
  }
  std::string file() const { return scratch_.path("a.db"); }

  Kernels kernels() {
    grpc::ClientContext context;
    v1::ListReverifiedRequest request;
    v1::ListReverifiedResponse answer;
    const grpc::Status status = service_->admin->ListReverified(&context, request, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {answer.kernels().begin(), answer.kernels().end()};
  }
  std::vector<std::string> reverify(const std::string& target = "", bool again = false) {
    grpc::ClientContext context;
    v1::ReverifyRequest request;
    request.set_target(target);
    request.set_again(again);
    v1::ReverifyResponse answer;
    const grpc::Status status = service_->admin->Reverify(&context, request, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {answer.jobs().begin(), answer.jobs().end()};
  }
  // Waits until all winners are in the listing, none has the outcome "waiting", and the verifying jobs are done.
  // Returns the listing.
  Kernels settled() {
    for (;;) {
      Kernels all = kernels();
      const bool waits =
          std::any_of(all.begin(), all.end(), [](const auto& one) { return one.outcome() == "waiting"; });
      if (static_cast<int64_t>(all.size()) >= records_ && !waits) {
        for (const v1::ReverifiedKernel& one : all) (void)service_->watch(one.job());
        return all;
      }
      std::this_thread::yield();
    }
  }
  std::map<std::string, int> counted(const Kernels& all) const {
    std::map<std::string, int> counts;
    for (const v1::ReverifiedKernel& one : all) ++counts[one.outcome()];
    return counts;
  }
  const GroupResult& fused() const { return before_.result->groups[0]; }
  // Runs the first job again for the new compiler. The job must be answered from the store alone.
  Job cached(const std::string& request) {
    TuneOptions options = trials(24);
    options.device = newer();
    options.require_cached = true;
    return service_->run(request, options);
  }

  Scratch scratch_;
  std::unique_ptr<Service> service_;
  Job before_;
  int64_t records_ = 0;
};

}  // namespace wl
