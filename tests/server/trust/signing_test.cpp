// Signed records: which records a client refuses, and what remains of a producer that is revoked.
#include "proto/trust/signing.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "compiler/base/sha256.h"
#include "proto/dial.h"
#include "server/services/callers.h"
#include "tests/server/outside.h"
#include "tests/server/trust/with_tokens.h"
#include "tests/unit/proto/random_records.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

class Signing : public ::testing::Test {
 protected:
  std::shared_ptr<const SigningKey> key(const std::string& name) const {
    auto opened = SigningKey::open(scratch.path(name));
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *opened;
  }
  Scratch scratch;
};

TEST_F(Signing, AKeyIsMadeOnceForItsOwnerAlone) {
  const std::string first = key("k")->public_key();
  EXPECT_EQ(key("k")->public_key(), first);
  EXPECT_NE(key("other")->public_key(), first);
  struct stat found = {};
  ASSERT_EQ(stat(scratch.path("k").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  chmod(scratch.path("k").c_str(), 0640);
  EXPECT_THAT(SigningKey::open(scratch.path("k")).status().message(), HasSubstr("may be read by others"));
  std::ofstream(scratch.path("junk")) << "junk";
  chmod(scratch.path("junk").c_str(), 0600);
  EXPECT_THAT(SigningKey::open(scratch.path("junk")).status().message(), HasSubstr("no private Ed25519 key"));
  EXPECT_THAT(SigningKey::open(scratch.path("no/folder")).status().message(), HasSubstr("cannot write"));
}

TEST_F(Signing, SignersAreReadLineByLine) {
  const std::string public_key = key("k")->public_key(), file = scratch.path("signers");
  std::ofstream(file) << "# of the lab\n\n" << public_key << " lab\n";
  const auto signers = read_signers(file);
  ASSERT_TRUE(signers.ok()) << signers.status();
  ASSERT_EQ(signers->size(), 1u);
  EXPECT_EQ(signers->front().public_key, public_key);
  EXPECT_EQ(signers->front().name, "lab");
  EXPECT_EQ(signers->front().head_days, kHeadDays);
  std::ofstream(file) << public_key << " our old lab  365d\n" << public_key << " 7d\n" << public_key << " lab 9th\n";
  const auto others = read_signers(file);
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ(others->at(0).head_days, 365);
  EXPECT_EQ(others->at(1).head_days, 7);
  EXPECT_EQ(others->at(2).name, "lab 9th");
  for (const char* days : {"0d", "36501d", "99999999999999999999d"}) {
    std::ofstream(file) << public_key << " lab " << days << "\n";
    EXPECT_THAT(read_signers(file).status().message(), HasSubstr("from 1d to 36500d"));
  }
  std::ofstream(file) << public_key << " lab\nhello\n";
  EXPECT_THAT(read_signers(file).status().message(), HasSubstr("line 2: expected a key of 64 hexadecimal digits"));
  std::ofstream(file) << "# nothing\n";
  EXPECT_THAT(read_signers(file).status().message(), HasSubstr("has no key"));
  EXPECT_THAT(read_signers(scratch.path("none")).status().message(), HasSubstr("cannot read"));
}

// Records that were changed on their way: with changed bytes of the message, with changed fields and a digest that fits
// them, with the signature of another record, or signed by another key.
TEST_F(Signing, AThousandChangedRecordsAreRefused) {
  const auto signing = key("k"), other_key = key("other");
  const std::vector<Signer> signers = {{signing->public_key(), "lab"}};
  testing::Random draw(11);
  const google::protobuf::LogSilencer silence;  // suppresses log lines about bytes that are not UTF-8
  int by_form = 0, by_digest = 0, by_signature = 0, same = 0;
  const auto expect_refused = [&](const KernelRecord& sent, const v1::KernelRecord& message) {
    const absl::StatusOr<KernelRecord> read = from_proto(message);
    if (!read.ok()) {
      ++by_digest;
    } else if (*read == sent) {
      // The changed bytes encode the same record in another way, for example with a number that is longer than needed.
      ++same;
    } else {
      EXPECT_FALSE(check_signature(*read, signers).ok()) << message.ShortDebugString();
      ++by_signature;
    }
  };
  for (int i = 0; i < 250; ++i) {
    KernelRecord record = testing::random_record(draw), another = testing::random_record(draw);
    signing->sign(&record);
    signing->sign(&another);
    ASSERT_TRUE(check_signature(record, signers).ok());
    v1::KernelRecord message;
    std::string bytes = to_proto(record).SerializeAsString();
    bytes[static_cast<size_t>(draw.below(std::ssize(bytes)))] ^= static_cast<char>(1 + draw.below(255));
    message.ParseFromString(bytes) ? expect_refused(record, message) : static_cast<void>(++by_form);

    KernelRecord forged = record;
    switch (i % 5) {
      case 0:
        forged.object_sha256 = sha256_hex(cat("hostile", i));
        break;
      case 1:
        forged.source.text += " ";
        break;
      case 2:
        forged.samples_ns.push_back(1);
        break;
      case 3:
        forged.environment += "x";
        break;
      default:
        forged.measured_by += "x";
    }
    forged.digest = record_digest(forged);
    expect_refused(record, to_proto(forged));

    KernelRecord moved = another;
    moved.signature = record.signature;
    expect_refused(another, to_proto(moved));

    KernelRecord foreign = record;
    other_key->sign(&foreign);
    EXPECT_TRUE(check_signature(foreign, {}).ok());
    EXPECT_THAT(check_signature(foreign, signers).message(), HasSubstr("which is none of --signers"));
    expect_refused(record, to_proto(foreign));
  }
  EXPECT_EQ(by_form + by_digest + by_signature + same, 1000);
  EXPECT_LT(same, 25);
  EXPECT_GE(by_signature, 750);
}

TEST_F(Signing, ARecordWithoutASignatureIsUsedUnlessSignersAreNamed) {
  testing::Random draw(3);
  KernelRecord record = testing::random_record(draw);
  EXPECT_TRUE(check_signature(record, {}).ok());
  EXPECT_THAT(check_signature(record, {{key("k")->public_key(), "lab"}}).message(), HasSubstr("is not signed"));
  record.signature = "00";
  EXPECT_THAT(check_signature(record, {}).message(), HasSubstr("a signature that is not of it"));
}

class Revocation : public WithTokens {
 protected:
  Revocation() {
    for (const char* name : {"lab", "guest"}) add_token(name, kWorker);
    CoordinatorOptions options;
    options.signing_key = scratch.path("k");
    options.lease_s = 0.5;  // leases end soon, so a worker that has disconnected is soon counted as lost
    start(options);
  }
  grpc::Status revoke(const std::string& producer, v1::RevokeProducerResponse* gone) {
    grpc::ClientContext context;
    v1::RevokeProducerRequest request;
    request.set_producer(producer);
    return service->admin->RevokeProducer(&context, request, gone);
  }
};

// All records and trials of a revoked producer are deleted, and other workers search for kernels of the records' keys
// again. Records of other producers stay.
TEST_F(Revocation, ForgetsAllThatAProducerMade) {
  const std::string other =
      "graph {\n  %0 = input \"x\" : f32[8,4] normal(0,1)\n  %1 = tanh %0 : f32[8,4]\n"
      "  output \"y\" %1\n}\n";
  std::vector<std::string> keys;
  {
    FakeWorker guest(by_token("guest"), "one");
    const Job job = service->run("r", trials(24));
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    for (const GroupResult& group : job.result->groups) keys.push_back(group.key);
  }
  FakeWorker lab(by_token("lab"), "one");
  const Job second = service->run("other", trials(8), other);
  ASSERT_EQ(second.state, JobState::kSucceeded) << second.error;
  EXPECT_THAT(rows_of(store, "SELECT DISTINCT worker FROM trials WHERE worker LIKE 'guest/one#%'"),
              ::testing::SizeIs(1));

  v1::RevokeProducerResponse gone;
  grpc::Status status = revoke("guest", &gone);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("the token guest is still known: take its line out"));
  EXPECT_EQ(revoke("guest/one", &gone).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  take_away("guest");
  do status = revoke("guest", &gone);
  while (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_GE(gone.records(), static_cast<int64_t>(keys.size()));
  EXPECT_GT(gone.trials(), 0);
  EXPECT_EQ(number_in(store, "SELECT count(*) FROM trials WHERE worker LIKE 'guest%'"), 0);
  for (const std::string& key : keys) EXPECT_TRUE(absl::IsNotFound(service->record(key).status())) << key;
  EXPECT_EQ(service->run("other again", trials(8), other).cached, true);
  const Job again = service->run("again", trials(24));
  ASSERT_EQ(again.state, JobState::kSucceeded) << again.error;
  EXPECT_FALSE(again.cached);
  for (const GroupResult& group : again.result->groups) EXPECT_EQ(group.measured_by, "lab/one");
  expect_sound(store);
}

// A coordinator signs what it promotes, and GetServerInfo has its public key.
TEST_F(Revocation, WhatIsPromotedIsSigned) {
  FakeWorker lab(by_token("lab"), "one");
  const Job job = service->run("r", trials(8));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  const v1::ServerInfo info = service->server_info();
  EXPECT_EQ(info.signing_key().size(), 64u);
  for (const KernelRecord& record : service->records_of(*job.result))
    EXPECT_TRUE(check_signature(record, {{info.signing_key(), "lab"}}).ok());
}

}  // namespace
}  // namespace wl
