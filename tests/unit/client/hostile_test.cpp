// A coordinator that sends what it should not: nothing is written outside the folder that was asked for, and the answer
// to another question is none.
#include <gmock/gmock.h>

#include "client/cli/exit_code.h"
#include "client/cli/graph_file.h"
#include "client/program/files.h"
#include "compiler/ir/text.h"
#include "tests/unit/client/fake_coordinator.h"

namespace wl {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;
using namespace std::string_literals;

class HostileCoordinator : public FakeCoordinator {
 protected:
  // Serves a record after a change of it; its digest is right.
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

TEST_F(HostileCoordinator, AnswerToAnotherQuestionIsNoProgram) {
  serve();
  GraphFile file;
  file.text = right_record().graph;
  file.graph = *parse(file.text);
  JobResult result;
  result.graph_hash = graph_hash(file.graph);
  result.device.target = "cpu:avx2";
  result.buffers = {{"x", DType::f32, {4}, ResultBuffer::Kind::kInput}};
  result.inputs = {{"x", 0}};
  result.outputs = {{"y", 0}};
  result.groups.emplace_back();
  result.groups[0].key = right_record().key;
  result.groups[0].record_digest = right_record().digest;
  Service service = Service::at(address_);
  const auto refused = [&](const JobResult& answer) {
    return std::string(fetch_program(service, answer, file).status().message());
  };
  ASSERT_TRUE(fetch_program(service, result, file).ok()) << refused(result);
  JobResult other = result;
  other.graph_hash = std::string(64, 'c');
  EXPECT_THAT(refused(other), HasSubstr("it is of the graph ccc"));
  other = result;
  other.groups[0].key = std::string(64, 'c');
  EXPECT_THAT(refused(other), HasSubstr("its group of ccc"));
  other = result;
  other.groups[0].record_digest = std::string(64, 'c');
  EXPECT_THAT(refused(other), HasSubstr("asked for was ccc"));
}

}  // namespace
}  // namespace wl
