// No request, and no row that an older store has, makes a coordinator unable to answer: a field that is too large is
// refused by its name, a page of a listing fits one message whatever is stored, and Inspect answers in several
// messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "proto/limits.h"
#include "server/store/store.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"
#include "warploom/v1/blob.grpc.pb.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

constexpr size_t kHuge = 10 << 20;     // bytes of a large field; a request with it still fits one message
constexpr size_t kOldHuge = 40 << 20;  // bytes of a field that older versions stored; two of them fit no message

TEST(RequestLimits, HugeLabelIsRefused) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  v1::CreateTuningJobRequest request;
  request.set_request_id("r");
  request.set_graph(kGraph);
  *request.mutable_options() = to_proto(trials(1));
  v1::Job job;
  for (const std::string& label : {std::string(kHuge, 'x'), std::string("a\x1b[2Jb"), std::string("a\nb")}) {
    request.set_label(label);
    grpc::ClientContext context;
    const grpc::Status status = service.tuning->CreateTuningJob(&context, request, &job);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("CreateTuningJobRequest.label"));
    EXPECT_LT(status.error_message().size(), 1000u);
  }
  grpc::ClientContext context;
  request.set_label("model.onnx");
  EXPECT_TRUE(service.tuning->CreateTuningJob(&context, request, &job).ok());
}

TEST(RequestLimits, HugeReportIsRefusedAndTheNextOneCounts) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  ASSERT_TRUE(service.create("r", trials(8)).ok());
  service.register_worker("w");
  const v1::Lease lease = service.acquire("w");
  ASSERT_GT(lease.batch().candidates_size(), 0);
  v1::ReportResultsRequest report = honest_report("w", lease, 1);
  auto* item = report.mutable_items(0);
  const auto send = [&](v1::ReportResultsResponse* answer) {
    grpc::ClientContext context;
    return service.workers->ReportResults(&context, report, answer);
  };
  v1::ReportResultsResponse answer;
  v1::Trial* trial = item->mutable_trials(0);
  const v1::Trial right = *trial;
  trial->set_message(std::string(kHuge, 'm'));
  EXPECT_THAT(send(&answer).error_message(), HasSubstr("Trial.message"));
  *trial = right;
  trial->mutable_samples_ns()->Resize(1'000'000, 5);
  EXPECT_THAT(send(&answer).error_message(), HasSubstr("Trial.samples_ns"));
  *trial = right;
  trial->set_object_sha256("../../x");
  EXPECT_THAT(send(&answer).error_message(), HasSubstr("Trial.object_sha256"));
  *trial = right;
  for (int i = 0; i < 5000; ++i) *item->add_trials() = right;
  EXPECT_THAT(send(&answer).error_message(), HasSubstr("ReportResultsRequest.Item.trials"));
  item->mutable_trials()->DeleteSubrange(lease.batch().candidates_size(), 5000);
  ASSERT_TRUE(send(&answer).ok());
  EXPECT_EQ(answer.outcomes(0), v1::ReportResultsResponse::ACCEPTED);
}

TEST(RequestLimits, StreamsAndLongPollsAreCheckedToo) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  const std::string huge(1 << 20, 'x');
  {
    v1::WatchJobRequest request;
    request.set_name(huge);
    grpc::ClientContext context;
    EXPECT_THAT(service.tuning->WatchJob(&context, request)->Finish().error_message(),
                HasSubstr("WatchJobRequest.name"));
  }
  {
    v1::AcquireLeasesRequest request;
    request.set_worker(huge);
    v1::AcquireLeasesResponse answer;
    grpc::ClientContext context;
    EXPECT_THAT(service.workers->AcquireLeases(&context, request, &answer).error_message(),
                HasSubstr("AcquireLeasesRequest.worker"));
  }
  const auto blobs = v1::BlobStore::NewStub(service.channel);
  for (const std::string& digest : {std::string("../../x"), huge}) {
    v1::DownloadRequest request;
    request.set_digest(digest);
    grpc::ClientContext context;
    EXPECT_THAT(blobs->Download(&context, request)->Finish().error_message(), HasSubstr("DownloadRequest.digest"));
    grpc::ClientContext other;
    v1::UploadRequest chunk;
    chunk.set_digest(digest);
    v1::UploadResponse answer;
    const auto writer = blobs->Upload(&other, &answer);
    writer->Write(chunk);
    writer->WritesDone();
    EXPECT_THAT(writer->Finish().error_message(), HasSubstr("UploadRequest.digest"));
  }
}

// The release of a lease quotes what a runner printed, which may be any bytes. If such bytes made the message invalid,
// the batch would stay leased until its lease expires.
TEST(RequestLimits, ReasonOfAReleaseIsMadeLegal) {
  Scratch scratch;
  Service service(scratch.path("a.db"), /*lease_s=*/3000);
  const auto job = service.create("r", trials(8));
  ASSERT_TRUE(job.ok()) << job.status();
  AgentOptions options;
  options.name = "unable";
  options.devices = {fake_device()};
  options.measure_with = [](const Batch&, const MeasureOptions&) -> absl::StatusOr<Measured> {
    return absl::UnavailableError("\xff" + std::string(1 << 20, 'x'));
  };
  EXPECT_FALSE(run_agent(service.channel, options, {}).ok());
  FakeWorker worker(service.channel, "unable");
  EXPECT_EQ(service.watch(job->name).back().state, JobState::kSucceeded);
}

// A job's result repeats the names of its graph's inputs and outputs, so the names must be valid in messages.
TEST(RequestLimits, NamesOfAGraphAreChecked) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  const std::string graph = kGraph;
  for (const char* name : {"a\\x01b", "\\xff", "a\\x00b"}) {
    std::string input = graph, output = graph;
    input.replace(input.find("\"x\"") + 1, 1, name);
    output.replace(output.find("\"y\"") + 1, 1, name);
    EXPECT_THAT(std::string(service.create("r", trials(1), input).status().message()), HasSubstr("name of an input"));
    EXPECT_THAT(std::string(service.create("r", trials(1), output).status().message()), HasSubstr("name of an output"));
  }
}

TEST(ListingLimits, ManyLargeWorkersComeInPages) {
  constexpr int kManyWorkers = 200, kDevices = 64;
  Scratch scratch;
  Service service(scratch.path("a.db"));
  v1::RegisterWorkerRequest worker;
  for (int i = 0; i < kDevices; ++i) {
    v1::Device* device = worker.add_devices();
    *device = to_proto(fake_device());
    device->set_details(std::string(4096, 'd'));
    device->set_compiler_versions(std::string(1024, 'v'));
    device->set_name(std::string(256, 'n'));
  }
  for (int i = 0; i < kManyWorkers; ++i) {
    worker.set_name(cat("w", i));
    grpc::ClientContext context;
    v1::RegisterWorkerResponse answer;
    ASSERT_TRUE(service.workers->RegisterWorker(&context, worker, &answer).ok());
  }
  std::set<std::string> names;
  v1::ListWorkersRequest request;
  do {
    v1::ListWorkersResponse page;
    grpc::ClientContext context;
    const grpc::Status status = service.admin->ListWorkers(&context, request, &page);
    ASSERT_TRUE(status.ok()) << status.error_message();
    for (const v1::WorkerInfo& info : page.workers()) EXPECT_TRUE(names.insert(info.name()).second) << info.name();
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(names.size(), static_cast<size_t>(kManyWorkers));
}

TEST(ListingLimits, HugeLabelsOfAnOlderStoreAreShortened) {
  Scratch scratch;
  {
    auto store = Store::open({.file = scratch.path("a.db")});
    ASSERT_TRUE(store.ok()) << store.status();
    for (int i = 0; i < 2; ++i) {
      JobRow job;
      job.request_id = cat("r", i);
      job.body_hash = "hash";
      job.graph = kGraph;
      job.label = std::string(kOldHuge, 'x');
      job.created_ms = 1;
      const auto made = (*store)->create_job(job);
      ASSERT_TRUE(made.ok()) << made.status();
      JobRow end = *made;
      end.state = JobState::kFailed;
      end.error = absl::InternalError(std::string(i == 0 ? kOldHuge : 1, 'e'));
      ASSERT_TRUE((*store)->finish_job(end, "").ok());
    }
  }
  Service service(scratch.path("a.db"));
  v1::ListJobsResponse jobs;
  {
    grpc::ClientContext context;
    const grpc::Status status = service.tuning->ListJobs(&context, {}, &jobs);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  ASSERT_EQ(jobs.jobs_size(), 2);
  EXPECT_LT(jobs.ByteSizeLong(), 100'000u);
  EXPECT_EQ(service.watch(jobs.jobs(0).name()).back().state, JobState::kFailed);
}

// Stores a record of a kernel whose source and plan have the given numbers of bytes, and returns the record's digest.
std::string store_record(Store& store, int number, size_t source_bytes, size_t plan_bytes) {
  KernelRecord record;
  record.key = sha256_hex(cat(number));
  record.environment = "gcc 12";
  record.device = fake_device();
  record.source.entry = cat("k", number);
  record.source.text = std::string(source_bytes, 's');
  record.plan = std::string(plan_bytes, 'p');
  record.samples_ns = {5};
  record.digest = record_digest(record);
  JobRow job;
  job.request_id = cat("r", number);
  job.graph = kGraph;
  const auto made = store.create_job(job);
  const auto search = store.open_search(made->id, {0, record.key, "gcc 12", "s", 0, 0}, false);
  const absl::Status status = store.promote(record, search->id);
  EXPECT_TRUE(status.ok()) << status;
  return record.digest;
}

TEST(ListingLimits, ManyLargeRecordsComeInPages) {
  constexpr int kManyRecords = 10;
  Scratch scratch;
  std::vector<std::string> digests;
  {
    auto store = Store::open({.file = scratch.path("a.db")});
    ASSERT_TRUE(store.ok()) << store.status();
    for (int i = 0; i < kManyRecords; ++i) digests.push_back(store_record(**store, i, 8 << 20, 10));
  }
  Service service(scratch.path("a.db"));
  std::vector<std::string> found;
  int calls = 0;
  while (found.size() < digests.size()) {
    v1::BatchGetKernelsRequest request;
    for (size_t i = found.size(); i < digests.size(); ++i) request.add_items()->set_digest(digests[i]);
    v1::BatchGetKernelsResponse answer;
    grpc::ClientContext context;
    const grpc::Status status = service.kernels->BatchGetKernels(&context, request, &answer);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_GT(answer.items_size(), 0);
    for (const auto& item : answer.items()) found.push_back(item.record().digest());
    ++calls;
  }
  EXPECT_EQ(found, digests);
  EXPECT_GT(calls, 1);
}

constexpr size_t kKernelBytes = 4 << 20, kPreludeBytes = 1 << 20;

class WordyGroup final : public FakeGroup {
 public:
  using FakeGroup::FakeGroup;
  absl::StatusOr<std::string> kernel_text(const std::string&) const override { return std::string(kKernelBytes, 'k'); }
  absl::StatusOr<Source> generate(const std::string& text) const override {
    Source source;
    source.target = "cpu:avx2";
    source.prelude = std::string(kPreludeBytes, 'p');
    source.text = text;
    source.entry = "k";
    return source;
  }
};

// A compiler that makes every op a group of its own, with a kernel text of 4 MiB and a prelude of 1 MiB.
class WordyCompiler final : public FakeCompiler {
 public:
  absl::StatusOr<std::vector<Cover>> covers(const Graph& graph, const Machine&, const std::string&, const CoverPrices&,
                                            Work*) const override {
    return std::vector<Cover>{default_cover(graph)};
  }
  absl::StatusOr<std::unique_ptr<GroupCompiler>> open(const Graph& group, const Machine&) const override {
    ++opened;
    return std::make_unique<WordyGroup>(group);
  }
};

// Returns a graph of `ops` distinct groups.
std::string graph_of(int ops) {
  std::string text = "graph {\n";
  for (int i = 0; i < ops; ++i) append(&text, "  %", i, " = input \"x", i, "\" : f32[", i + 1, "] normal(0,1)\n");
  for (int i = 0; i < ops; ++i) append(&text, "  %", ops + i, " = exp %", i, " : f32[", i + 1, "]\n");
  for (int i = 0; i < ops; ++i) append(&text, "  output \"y", i, "\" %", ops + i, "\n");
  return text + "}\n";
}

class Inspect : public ::testing::Test {
 protected:
  // Returns the messages of Inspect's answer for a graph of `ops` groups.
  absl::StatusOr<std::vector<v1::InspectResponse>> ask(int ops, const std::string& stage) {
    v1::InspectRequest request;
    request.set_graph(graph_of(ops));
    request.set_stage(stage);
    *request.mutable_options() = to_proto(trials(1));
    grpc::ClientContext context;
    const auto stream = service.tuning->Inspect(&context, request);
    std::vector<v1::InspectResponse> parts;
    while (stream->Read(&parts.emplace_back())) {
    }
    parts.pop_back();
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return from_grpc(status);
    return parts;
  }

  Scratch scratch;
  WordyCompiler compiler;
  Service service{scratch.path("a.db"), 15, "", 0, false, false, &compiler};
};

TEST_F(Inspect, AnswersBeyondOneMessageComeInPartsAndAreMadeOnce) {
  constexpr int kOps = 20;
  static_assert(kOps * kKernelBytes > kMaxMessageBytes);
  const auto parts = ask(kOps, "kernel");
  ASSERT_TRUE(parts.ok()) << parts.status();
  int groups = 0;
  for (const v1::InspectResponse& part : *parts) {
    EXPECT_LT(part.ByteSizeLong(), 2 * kKernelBytes);
    for (const auto& group : part.groups()) {
      EXPECT_THAT(group.graph(), HasSubstr(cat("f32[", ++groups, "]")));
      EXPECT_EQ(group.kernel().size(), kKernelBytes);
    }
  }
  EXPECT_EQ(groups, kOps);
  EXPECT_EQ(compiler.opened, kOps);
}

TEST_F(Inspect, APreludeIsSentOncePerPart) {
  constexpr int kOps = 100;
  const auto parts = ask(kOps, "source");
  ASSERT_TRUE(parts.ok()) << parts.status();
  size_t bytes = 0;
  int groups = 0;
  for (const v1::InspectResponse& part : *parts) {
    bytes += part.ByteSizeLong();
    groups += part.groups_size();
    EXPECT_EQ(part.prelude().size(), part.groups_size() > 0 ? kPreludeBytes : 0);
    for (const auto& group : part.groups()) EXPECT_EQ(group.source().prelude(), "");
  }
  EXPECT_EQ(groups, kOps);
  EXPECT_LT(bytes, 2 * kPreludeBytes);
}

TEST_F(Inspect, AnswersBeyondTheLimitAreRefusedAndTheirMemoryIsGivenBack) {
  constexpr int kOps = 100;
  const int fitting = static_cast<int>(kMostInspection / static_cast<int64_t>(kKernelBytes));
  for (int round = 0; round < 3; ++round) {
    compiler.opened = 0;
    absl::Status refused;
    // The memory of the previous call is free once the coordinator knows that the call has ended.
    do {
      refused = ask(kOps, "kernel").status();
    } while (absl::IsUnavailable(refused));
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("an earlier stage"));
    EXPECT_LE(compiler.opened, fitting + 1) << "nothing is made beyond the limit";
  }
  EXPECT_TRUE(ask(kOps, "plan").ok());
}

}  // namespace
}  // namespace wl
