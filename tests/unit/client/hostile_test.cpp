// A coordinator that sends wrong or malicious answers: the client writes nothing outside the requested folder, and
// refuses an answer to another request.
#include <gmock/gmock.h>

#include <fstream>

#include "client/cli/exit_code.h"
#include "client/program/files.h"
#include "client/remote/ask.h"
#include "client/remote/graph_file.h"
#include "client/remote/service.h"
#include "compiler/ir/text.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "tests/unit/client/fake_coordinator.h"

namespace wl {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;
using namespace std::string_literals;

class HostileCoordinator : public FakeCoordinator {
 protected:
  // Serves right_record() as changed by `change`, with the digest that the changed record has.
  void serve(const std::function<void(KernelRecord&)>& change = {}) {
    KernelRecord record = right_record();
    if (change) change(record);
    record.digest = record_digest(record);
    kernels_.record = to_proto(record);
  }
  int get() { return run({"get", std::string(64, 'a'), "--out", path("some/folder/out")}); }
};

TEST_F(HostileCoordinator, TheRightRecordIsWritten) {
  serve();
  EXPECT_EQ(get(), kExitDone) << said_;
  EXPECT_THAT(files(), UnorderedElementsAre("some/folder/out/wl_k.cpp", "some/folder/out/wl_k.so",
                                            "some/folder/out/record.json"));
}

TEST_F(HostileCoordinator, NothingIsWrittenOutsideTheFolder) {
  for (const std::string& entry : {"../../x"s, "/"s + path("x"), "../x.conf\0"s, "record.json\0"s, "x/../../y"s, ""s}) {
    serve([&](KernelRecord& record) { record.source.entry = entry; });
    EXPECT_EQ(get(), kExitBadInput) << said_;
    EXPECT_THAT(said_, HasSubstr("Source.entry"));
    EXPECT_THAT(files(), testing::IsEmpty()) << entry;
  }
}

TEST_F(HostileCoordinator, RecordOfAnotherKeyIsRefused) {
  serve([](KernelRecord& record) { record.key = std::string(64, 'b'); });
  EXPECT_EQ(get(), kExitBadInput);
  EXPECT_THAT(said_, HasSubstr("it is the record of the key bbb"));
  EXPECT_THAT(files(), testing::IsEmpty());
}

TEST_F(HostileCoordinator, ObjectOfOtherBytesIsRefused) {
  serve();
  blobs_.bytes = "another object";
  EXPECT_EQ(get(), kExitBadInput);
  EXPECT_THAT(files(), testing::IsEmpty());
}

// With --build-locally the client uses the object that this machine compiles, not the coordinator's.
TEST_F(HostileCoordinator, WhatIsBuiltHereIsNotItsObject) {
  const auto get_built = [&] { return run({"get", std::string(64, 'a'), "--out", path("out"), "--build-locally"}); };
  serve();
  machine_.built = "an object";
  machine_.here.compiler_versions = right_record().environment;
  blobs_.bytes = "is not asked for";
  EXPECT_EQ(get_built(), kExitDone) << said_;
  EXPECT_EQ(read_file(path("out/wl_k.so")).value(), "an object");
  machine_.built = "another object";
  EXPECT_EQ(get_built(), kExitBadInput);
  EXPECT_THAT(said_, HasSubstr("is not what its source compiles to here by the same compiler (gcc 12)"));
  machine_.here.compiler_versions = "gcc 13";
  EXPECT_EQ(get_built(), kExitDone) << said_;
  EXPECT_EQ(read_file(path("out/wl_k.so")).value(), "another object");
  EXPECT_EQ(run({"get", std::string(64, 'a'), "--build-locally"}), kExitUsage) << "without --out nothing is built";
}

// The client refuses an object that workers of one principal alone have measured and confirmed, and that the
// coordinator has not built itself. It uses such an object only if this machine compiles an equal object, or if the
// user passes --trust-workers.
TEST_F(HostileCoordinator, ObjectsThatTheirWorkersAloneGiveAWordForAreNotUsed) {
  const auto get_it = [&](const char* flag) {
    std::vector<std::string> words = {"get", std::string(64, 'a'), "--out", path("out")};
    if (*flag != 0) words.emplace_back(flag);
    return run(words);
  };
  const std::string lone[][2] = {{"", ""},           {"host", "other"},   {"lab/w", ""}, {"local/a", "local/b"},
                                 {"lab/w", "lab/x"}, {"lab/w", "local/a"}};
  for (const auto& [measured_by, confirmed_by] : lone) {
    machine_.built.clear();
    serve([&, measured = measured_by, confirmed = confirmed_by](KernelRecord& record) {
      record.measured_by = measured;
      record.confirmed_by = confirmed;
    });
    EXPECT_EQ(get_it(""), kExitBadInput) << measured_by;
    EXPECT_THAT(said_, HasSubstr("the coordinator has not built it itself, and no worker of another caller agrees"));
    EXPECT_THAT(said_, HasSubstr("--trust-workers"));
    EXPECT_THAT(files(), testing::IsEmpty());
    EXPECT_EQ(get_it("--trust-workers"), kExitDone) << said_;
    machine_.here.compiler_versions = right_record().environment;
    machine_.built = "an object";
    EXPECT_EQ(get_it(""), kExitDone) << said_;
    machine_.built = "another object";
    EXPECT_EQ(get_it(""), kExitBadInput) << "the same compiler makes another one";
    std::filesystem::remove_all(path("out"));
  }
}

// The download of an object sends single bytes and never ends, so the client gives it up.
TEST_F(HostileCoordinator, WhatDripsForEverIsGivenUp) {
  serve();
  blobs_.drips = true;
  CoordinatorAddress address;
  address.server = address_;
  address.patience = std::chrono::milliseconds(100);
  BundleRequest request;
  request.key = right_record().key;
  const absl::Status status = ask_coordinator(address, request, path("out"), {});
  EXPECT_EQ(exit_code_of(status), kExitUnreachable) << status;
  EXPECT_THAT(files(), testing::IsEmpty());
}

// The coordinator answers a request for stored records with a running job that never ends.
TEST_F(HostileCoordinator, AJobThatWasNotAskedForIsNotAwaited) {
  std::ofstream(path("g.graph")) << right_record().graph;
  tuning_.job.set_name("jobs/1");
  tuning_.job.set_state(v1::JOB_STATE_RUNNING);
  EXPECT_EQ(run({"get", path("g.graph")}), kExitBadInput) << said_;
  EXPECT_THAT(said_, HasSubstr("although nothing was to be searched"));
}

TEST_F(HostileCoordinator, AnswerToAnotherQuestionIsNoProgram) {
  serve();
  GraphFile file;
  file.text = right_record().graph;
  file.graph = *parse(file.text);
  JobResult result;
  result.graph_hash = graph_hash(file.graph);
  result.device.target = "cpu:avx2";
  result.buffers = {{"x", DType::f32, {4}, ResultBuffer::Kind::kInput},
                    {"y", DType::f32, {4}, ResultBuffer::Kind::kOutput}};
  result.inputs = {{"x", 0}};
  result.outputs = {{"y", 1}};
  result.steps = {{0, {0, 1}}};
  result.groups.emplace_back();
  result.groups[0].key = right_record().key;
  result.groups[0].record_digest = right_record().digest;
  Service service = *Service::at(address_, {});
  const auto objects = [&](const KernelRecord& record) { return service.get_blob(record.object_sha256); };
  const auto refused = [&](const JobResult& answer) {
    return std::string(fetch_program(service, objects, answer, file).status().message());
  };
  ASSERT_TRUE(fetch_program(service, objects, result, file).ok()) << refused(result);
  JobResult other = result;
  other.graph_hash = std::string(64, 'c');
  EXPECT_THAT(refused(other), HasSubstr("it is of the graph ccc"));
  other = result;
  other.groups[0].key = std::string(64, 'c');
  EXPECT_THAT(refused(other), HasSubstr("its group of ccc"));
  other = result;
  other.groups[0].record_digest = std::string(64, 'c');
  EXPECT_THAT(refused(other), HasSubstr("asked for was ccc"));
  other = result;
  other.buffers[1].shape = {3};
  EXPECT_THAT(refused(other), HasSubstr("output 0 is y, f32[3], that of the graph is y, f32[4]"));
  other = result;
  other.outputs[0].buffer = 0;
  EXPECT_THAT(refused(other), HasSubstr("output y is not where the graph has it: the buffer x"));
}

// Returns a part of an Inspect answer, with one group.
v1::InspectResponse part_with(const std::string& kernel) {
  v1::InspectResponse part;
  v1::InspectResponse::Group* group = part.add_groups();
  group->set_key(std::string(64, 'a'));
  group->set_graph("graph {\n  %0 = input \"x\" : f32[4] normal(0,1)\n  %1 = exp %0 : f32[4]\n  output \"y\" %1\n}\n");
  group->set_kernel(kernel);
  return part;
}

TEST_F(HostileCoordinator, AnInspectionIsReadUpToItsLimit) {
  ASSERT_TRUE(write_file(path("a.graph"), part_with("").groups(0).graph()).ok());
  tuning_.parts = {part_with("kernel 1\n"), part_with("kernel 2\n")};
  EXPECT_EQ(run({"inspect", path("a.graph"), "--stage", "kernel"}), kExitDone) << said_;
  const size_t first = printed_.find("kernel 1"), second = printed_.find("kernel 2");
  EXPECT_TRUE(first < second && second != std::string::npos) << printed_;

  constexpr size_t kLarge = 8 << 20;
  tuning_.parts.assign(kMostInspection / kLarge + 1, part_with(std::string(kLarge, 'k')));
  Service service(server_->InProcessChannel(channel_arguments()), {.where = "nearby"});
  const auto inspection = service.inspect(part_with("").groups(0).graph(), {}, "kernel", false);
  EXPECT_TRUE(absl::IsDataLoss(inspection.status())) << inspection.status();
  EXPECT_THAT(std::string(inspection.status().message()), HasSubstr("more than"));
}

TEST_F(FakeCoordinator, AGraphThatNoMessageMayCarryIsRefusedAtOnce) {
  std::string text = "graph {\n";
  const int inputs = static_cast<int>(kMostGraph / kMostName) + 1;
  for (int i = 0; i < inputs; ++i)
    append(&text, "  %", i, " = input \"", i, std::string(kMostName - 10, 'x'), "\" : f32[4] normal(0,1)\n");
  append(&text, "  %", inputs, " = exp %0 : f32[4]\n  output \"y\" %", inputs, "\n}\n");
  ASSERT_TRUE(write_file(path("large.graph"), text).ok());
  for (const char* command : {"inspect", "tune"}) {
    EXPECT_EQ(run({command, path("large.graph")}), kExitBadInput);
    EXPECT_THAT(said_, HasSubstr("cut it into smaller graphs"));
  }
}

}  // namespace
}  // namespace wl
