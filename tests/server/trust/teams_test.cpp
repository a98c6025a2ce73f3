// Teams on one coordinator: what each team sees of the others, and what share of the workers it gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/base/sha256.h"
#include "proto/transfer.h"
#include "tests/server/outside.h"
#include "tests/server/trust/with_tokens.h"
#include "warploom/v1/blob.grpc.pb.h"

namespace wl {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class Teams : public WithTokens {
 protected:
  Teams() {
    add_row("team vision publish=confirmed\nteam speech jobs=2");
    for (const char* team : {"vision", "speech"}) add_token(team, kClient | kWorker | kCache, team);
    for (const char* caller : {"fleet", "second", "nobody"}) add_token(caller, kClient | kWorker | kCache);
    start();
    vision.call_by(by_token("vision"));
    speech.call_by(by_token("speech"));
    nobody.call_by(by_token("nobody"));
  }
  // Returns the team of every record that the caller can list.
  static std::vector<std::string> teams_listed(const Caller& caller) {
    grpc::ClientContext context;
    v1::ListKernelsResponse page;
    EXPECT_TRUE(caller.kernels->ListKernels(&context, {}, &page).ok());
    std::vector<std::string> teams;
    for (const v1::KernelSummary& kernel : page.kernels()) teams.push_back(kernel.team());
    return teams;
  }
  static int jobs_listed(const Caller& caller) {
    grpc::ClientContext context;
    v1::ListJobsResponse page;
    EXPECT_TRUE(caller.tuning->ListJobs(&context, {}, &page).ok());
    return page.jobs_size();
  }
  static grpc::StatusCode fetched(const Caller& caller, const std::string& digest) {
    grpc::ClientContext context;
    v1::GetKernelRequest request;
    request.set_digest(digest);
    v1::KernelRecord record;
    return caller.kernels->GetKernel(&context, request, &record).error_code();
  }

  Caller vision, speech, nobody;
};

TEST_F(Teams, SeeTheirOwnJobsAndRecords) {
  FakeWorker worker(by_token("fleet"), "one");
  const Job job = speech.run("r", trials(16));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_THAT(teams_listed(speech), Each("speech"));
  const std::vector<KernelRecord> own = speech.records_of(*job.result);
  ASSERT_FALSE(own.empty());
  for (const Caller* other : {&vision, &nobody}) {
    EXPECT_EQ(jobs_listed(*other), 0);
    EXPECT_TRUE(teams_listed(*other).empty());
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_name(job.name);
    v1::Job answer;
    EXPECT_EQ(other->tuning->GetJob(&context, request, &answer).error_code(), grpc::StatusCode::NOT_FOUND);
    for (const KernelRecord& record : own) EXPECT_EQ(fetched(*other, record.digest), grpc::StatusCode::NOT_FOUND);
  }
  EXPECT_EQ(jobs_listed(speech), 1);
  EXPECT_EQ(jobs_listed(*service), 1) << "an operator sees every one";
  EXPECT_EQ(fetched(*service, own[0].digest), grpc::StatusCode::OK);
  EXPECT_EQ(fetched(speech, own[0].digest), grpc::StatusCode::OK);
  // The same request, made by another team, makes another job and another search.
  EXPECT_EQ(vision.create("r", trials(16)).status().code(), absl::StatusCode::kInvalidArgument) << "an id of others";
  EXPECT_FALSE(vision.cancel(job.name));
  EXPECT_TRUE(vision.watch(job.name).empty());
  const Job again = vision.run("r2", trials(16));
  EXPECT_EQ(again.state, JobState::kSucceeded) << again.error;
  EXPECT_FALSE(again.cached);
  EXPECT_TRUE(speech.run("r3", trials(16)).cached);
  for (const KernelRecord& record : own) EXPECT_EQ(speech.record(record.key)->digest, record.digest) << "still its own";
}

// Records of team vision that two principals confirm become shared by the rule publish=confirmed of this team. Records
// of team speech, which has no such rule, do not.
TEST_F(Teams, ShareWhatIsConfirmed) {
  FakeWorker one(by_token("fleet"), "one"), two(by_token("second"), "two");
  wait_for_workers(store, 2);
  ASSERT_EQ(speech.run("r", trials(16)).state, JobState::kSucceeded);
  EXPECT_THAT(teams_listed(speech), Each("speech"));
  const Job job = vision.run("r2", trials(16));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_FALSE(job.cached) << "speech shares nothing";
  EXPECT_THAT(teams_listed(vision), Each(""));
  EXPECT_TRUE(nobody.run("r3", trials(16)).cached);
  const std::vector<KernelRecord> theirs = vision.records_of(*job.result);
  for (const KernelRecord& record : theirs) {
    EXPECT_EQ(nobody.record(record.key)->digest, record.digest);
    EXPECT_NE(speech.record(record.key)->digest, record.digest) << "its own comes first";
  }
}

TEST_F(Teams, DoNotShareWhatNobodyConfirmed) {
  FakeWorker one(by_token("fleet"), "one");
  ASSERT_EQ(vision.run("r", trials(16)).state, JobState::kSucceeded);
  EXPECT_THAT(teams_listed(vision), Each("vision"));
  EXPECT_TRUE(teams_listed(nobody).empty());
}

TEST_F(Teams, HaveWorkersThatServeNobodyElse) {
  FakeWorker own(by_token("vision"), "one");
  wait_for_workers(store, 1);
  const auto waiting = speech.create("r", trials(16));
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  ASSERT_EQ(vision.run("r2", trials(16)).state, JobState::kSucceeded);
  const Job unserved = *from_proto([&] {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_name(waiting->name);
    v1::Job answer;
    EXPECT_TRUE(speech.tuning->GetJob(&context, request, &answer).ok());
    return answer;
  }());
  EXPECT_EQ(unserved.progress.trials_done, 0);
  EXPECT_EQ(unserved.progress.workers, 0);
  FakeWorker shared(by_token("fleet"), "two");
  EXPECT_EQ(speech.watch(waiting->name).back().state, JobState::kSucceeded);
  EXPECT_EQ(rows_of(store,
                    "SELECT count(*) FROM trials t JOIN searches s ON s.id = t.search_id WHERE s.team = 'speech' "
                    "AND t.worker LIKE 'vision/%'"),
            (Rows{{"0"}}));
}

TEST_F(Teams, MayHaveSoManyJobs) {
  ASSERT_TRUE(speech.create("a", trials(16)).ok());
  const auto second = speech.create("b", trials(17));
  ASSERT_TRUE(second.ok());
  const absl::Status third = speech.create("c", trials(18)).status();
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(third.message()), HasSubstr("team speech has 2 jobs that are not done, and may have 2"));
  EXPECT_TRUE(speech.create("b", trials(17)).ok()) << "said again, it is no other job";
  EXPECT_TRUE(vision.create("d", trials(18)).ok());
  EXPECT_TRUE(speech.cancel(second->name));
  EXPECT_EQ(speech.watch(second->name).back().state, JobState::kCancelled);
  EXPECT_TRUE(speech.create("c", trials(18)).ok());
}

// Teams are also kept apart by calls that name no job or record: one that lists the workers, and one that asks whether
// an object is stored.
TEST_F(Teams, DoNotTellOthersOfTheirWorkersAndObjects) {
  FakeWorker own(by_token("vision"), "secret-name"), shared(by_token("fleet"), "one");
  wait_for_workers(store, 2);
  const auto names = [](const Caller& caller) {
    grpc::ClientContext context;
    v1::ListWorkersResponse page;
    EXPECT_TRUE(caller.admin->ListWorkers(&context, {}, &page).ok());
    std::set<std::string> found;
    for (const v1::WorkerInfo& worker : page.workers()) found.insert(worker.name());
    return found;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(names(vision), (Names{"vision/secret-name", "fleet/one"}));
  EXPECT_EQ(names(speech), (Names{"fleet/one"}));
  EXPECT_EQ(names(nobody), (Names{"fleet/one"}));
  EXPECT_EQ(names(*service), (Names{"vision/secret-name", "fleet/one"})) << "an operator sees every one";

  const std::string digest = sha256_hex("an object of speech");
  const auto send = [&](const Caller& caller) {
    const auto blobs = v1::BlobStore::NewStub(caller.channel);
    grpc::ClientContext context;
    return upload(*blobs, &context, digest, "an object of speech").ok();
  };
  const auto missing = [&](const Caller& caller) {
    const auto blobs = v1::BlobStore::NewStub(caller.channel);
    grpc::ClientContext context;
    v1::FindMissingRequest request;
    request.add_digests(digest);
    v1::FindMissingResponse answer;
    EXPECT_TRUE(blobs->FindMissing(&context, request, &answer).ok());
    return answer.digests_size() == 1;
  };
  const auto got = [&](const Caller& caller) {
    const auto blobs = v1::BlobStore::NewStub(caller.channel);
    grpc::ClientContext context;
    return download(*blobs, &context, digest, 1 << 20, "").ok();
  };
  EXPECT_TRUE(send(speech));
  for (const Caller* knows : {&speech, static_cast<Caller*>(&*service)}) {
    EXPECT_FALSE(missing(*knows));
    EXPECT_TRUE(got(*knows));
  }
  for (const Caller* other : {&vision, &nobody}) {
    EXPECT_TRUE(missing(*other));
    EXPECT_FALSE(got(*other));
  }
  EXPECT_TRUE(send(vision)) << "as if it were not there";
  EXPECT_TRUE(got(vision)) << "it knows the bytes";
  EXPECT_FALSE(got(nobody));
}

// A caller can fetch the objects of the records that it may see.
TEST_F(Teams, FetchTheObjectsOfTheRecordsThatTheySee) {
  FakeWorker worker(by_token("fleet"), "one");
  const Job job = speech.run("r", trials(16));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  const KernelRecord record = speech.records_of(*job.result).front();
  const auto got = [&](const Caller& caller) {
    const auto blobs = v1::BlobStore::NewStub(caller.channel);
    grpc::ClientContext context;
    return download(*blobs, &context, record.object_sha256, 1 << 20, "").ok();
  };
  EXPECT_TRUE(got(speech));
  EXPECT_FALSE(got(vision));
  EXPECT_FALSE(got(nobody));
}

}  // namespace
}  // namespace wl
