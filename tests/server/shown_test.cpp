// Inspect and the web pages show the kernels that a job's result launches, not those of a new plan of the job's graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "server/web/drawings.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// With the times that the fixture's worker reports, the cover of three kernels is the fastest one.
class Shown : public ::testing::Test, RefiningCompiler {
 protected:
  static TuneOptions asked() { return refined_trials(24); }

  absl::StatusOr<v1::InspectResponse> inspect(v1::InspectRequest request) {
    request.set_stage("plan");
    request.set_why(true);
    grpc::ClientContext context;
    const auto stream = service.tuning->Inspect(&context, request);
    v1::InspectResponse all, part;
    while (stream->Read(&part)) all.MergeFrom(part);
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return from_grpc(status);
    return all;
  }
  absl::StatusOr<v1::InspectResponse> inspect(const JobResult& result) {
    v1::InspectRequest request;
    *request.mutable_result() = to_proto(result);
    return inspect(request);
  }
  absl::StatusOr<v1::InspectResponse> inspect_graph() {
    v1::InspectRequest request;
    request.set_graph(kGraph);
    *request.mutable_options() = to_proto(asked());
    return inspect(request);
  }

  void expect_of(const JobResult& result, const absl::StatusOr<v1::InspectResponse>& answer) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_EQ(answer->groups_size(), static_cast<int>(result.groups.size()));
    for (int g = 0; g < answer->groups_size(); ++g) {
      EXPECT_EQ(answer->groups(g).key(), result.groups[g].key);
      EXPECT_EQ(answer->groups(g).plan(), result.groups[g].plan);
      EXPECT_EQ(answer->groups(g).count(), result.groups[g].count);
      EXPECT_TRUE(answer->groups(g).tuned());
    }
    EXPECT_THAT(answer->why(), StartsWith(cat("# ", result.steps.size(),
                                              result.steps.size() == 1 ? " kernel" : " kernels", " instead of 3")));
    for (size_t step = 0; step < result.steps.size(); ++step)
      EXPECT_THAT(answer->picture(), HasSubstr(cat(">g", step, " f32[64,32]<")));
  }

  Scratch scratch;
  Service service{scratch.path("a.db"), 15, "", 0, false, false, &fake};
  FakeWorker worker{service.channel, "w",
                    by_times({{"refined", took(1600)}, {"fused", took(1600)}, {"single", took(1200)}})};
};

TEST_F(Shown, IsTheCoverThatWasChosen) {
  const Job job = service.run("r", asked());
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  ASSERT_EQ(job.result->steps.size(), 3u);
  expect_of(*job.result, inspect(*job.result));
  expect_of(*job.result, inspect_graph());

  JobRow row;
  row.graph = kGraph;
  row.options = asked();
  row.device = fake_device();
  row.result = job.result;
  Drawings drawings(&warploom_compiler());
  std::shared_ptr<const Drawing> drawn;
  while (drawn == nullptr) {
    const auto made = drawings.make(row);
    ASSERT_TRUE(made.ok()) << made.status();
    drawn = *made;
  }
  ASSERT_TRUE(drawn->status.ok()) << drawn->status;
  ASSERT_EQ(drawn->kernels.size(), 3u);
  for (size_t step = 0; step < 3; ++step)
    EXPECT_EQ(drawn->kernels[step].key, job.result->groups[job.result->steps[step].group].key);
  EXPECT_EQ(drawings.find(row.id, true), drawn);
  EXPECT_EQ(drawings.find(row.id, false), nullptr) << "of the cover that the job began with";
}

TEST_F(Shown, AResultHasWhatAWorkerMeasuredOfTheDevice) {
  const Job before = service.run("before", asked());
  ASSERT_EQ(before.state, JobState::kSucceeded) << before.error;
  EXPECT_EQ(before.result->rates, MeasuredRates()) << "workers of older versions say nothing";

  MeasuredRates rates{.gflops = 250, .memories = {{"memory", 64 << 20, 11}, {"L2", 1 << 20, 90}}};
  v1::RegisterWorkerRequest request;
  request.set_name("w");  // the same process registers again, with measured rates of its device
  request.set_epoch(1);
  *request.add_devices() = to_proto(fake_device());
  *request.add_rates() = to_proto(rates);
  v1::RegisterWorkerResponse answer;
  grpc::ClientContext context;
  ASSERT_TRUE(service.workers->RegisterWorker(&context, request, &answer).ok());
  TuneOptions again = asked();
  again.retune = true;
  const Job job = service.run("again", again);
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_EQ(job.result->rates, rates);
  EXPECT_EQ(decode_result(encode(*job.result)).value(), *job.result);

  request.mutable_rates(0)->set_gflops(-1);
  grpc::ClientContext another;
  EXPECT_EQ(service.workers->RegisterWorker(&another, request, &answer).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(Shown, AResultThatDoesNotFitTogetherIsRefused) {
  const Job job = service.run("r", asked());
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  const auto refused = [&](const char* what, const std::function<void(JobResult&)>& change) {
    JobResult result = *job.result;
    change(result);
    const absl::Status status = inspect(result).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  };
  refused("step 0: it reads a value that no earlier step stores", [](auto& r) { std::swap(r.steps[0], r.steps[2]); });
  refused("step 0: it has 1 arguments", [](auto& r) { r.steps[0].arguments.pop_back(); });
  refused("which was to be", [](auto& r) { r.buffers[r.steps[1].arguments.back()].shape = {1 << 30}; });
  refused("which was to be", [](auto& r) { r.buffers[r.outputs[0].buffer].dtype = DType::i8; });
  refused("is stored by no step", [](auto& r) { r.steps.pop_back(); });
  refused("the graph of group 1", [](auto& r) { r.groups[1].graph = "graph {"; });
  refused("nothing that it stores is needed", [](auto& r) { r.outputs[0].buffer = r.steps[0].arguments.back(); });
  refused("buffer", [](auto& r) { r.steps[0].arguments[0] = 1 << 20; });
  refused("group", [](auto& r) { r.steps[0].group = -1; });
  refused("banana", [](auto& r) { r.device.target = "banana"; });
}

}  // namespace
}  // namespace wl
