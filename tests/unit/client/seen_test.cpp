// A client remembers the generations of the signed records that it has seen. The test signs records and store heads
// with its own key.
#include "client/remote/seen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

#include "compiler/base/sha256.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

// ms since 1970; a time in 2096, so that no head that is signed at this time is too old
constexpr int64_t kNow = 4'000'000'000'000;

class Seen : public ::testing::Test {
 protected:
  KernelRecord record(int64_t generation, const std::string& key = sha256_hex("k")) {
    KernelRecord out;
    out.key = key;
    out.environment = "gcc 12";
    out.generation = generation;
    out.digest = record_digest(out);
    signing->sign(&out);
    return out;
  }
  StoreHead said(int64_t unix_ms, int64_t oldest, std::vector<StoreHead::Floor> floors = {}) {
    StoreHead out{.signed_by = "", .unix_ms = unix_ms, .oldest = oldest, .floors = std::move(floors)};
    signing->sign(&out);
    return out;
  }
  absl::Status admit(SeenGenerations& seen, const KernelRecord& record) { return seen.admit(record, signers, "there"); }

  Scratch scratch;
  const std::string file = scratch.path("seen");
  const std::shared_ptr<const SigningKey> signing = SigningKey::open(scratch.path("key")).value();
  const std::vector<Signer> signers = {{signing->public_key(), "lab"}};
};

TEST_F(Seen, OlderRecordsAreRefusedByTheNextProcessToo) {
  {
    SeenGenerations seen(file, "");
    EXPECT_FALSE(seen.has_heard());
    seen.hear({said(kNow, 0)});
    EXPECT_TRUE(admit(seen, record(20)).ok());
    EXPECT_TRUE(admit(seen, record(20)).ok()) << "the same again";
    EXPECT_THAT(admit(seen, record(19)).message(), HasSubstr("this user has seen a later one (20)"));
    EXPECT_TRUE(admit(seen, record(5, sha256_hex("other"))).ok()) << "another key";
    KernelRecord elsewhere = record(5);
    elsewhere.environment = "gcc 13";
    EXPECT_TRUE(admit(seen, elsewhere).ok()) << "another environment";
  }
  std::ofstream(file, std::ios::app) << "cut o";
  SeenGenerations next(file, "");
  next.hear({said(kNow, 0)});
  EXPECT_TRUE(absl::IsPermissionDenied(admit(next, record(19))));
  EXPECT_TRUE(admit(next, record(21)).ok());
  SeenGenerations of_team(file, "a token");
  of_team.hear({said(kNow, 0)});
  EXPECT_TRUE(admit(of_team, record(7)).ok()) << "a team may be served a record of its own";
}

TEST_F(Seen, WhatASignerSaidIsKeptWhateverIsSaidAfterwards) {
  {
    SeenGenerations seen(file, "");
    seen.hear({said(kNow, 10, {{sha256_hex("k"), 30}})});
    EXPECT_THAT(admit(seen, record(29)).message(), HasSubstr("its signer has said that none is right below (30)"));
    EXPECT_TRUE(admit(seen, record(30)).ok());
    EXPECT_TRUE(absl::IsPermissionDenied(admit(seen, record(9, sha256_hex("other")))));
    EXPECT_TRUE(admit(seen, record(10, sha256_hex("other"))).ok());
  }
  SeenGenerations next(file, "another");
  // A head of an older state of the store. A store that was restored from a backup, or an attacker on the network, may
  // send such a head.
  next.hear({said(kNow + 1, 0)});
  EXPECT_TRUE(absl::IsPermissionDenied(admit(next, record(29))));
  EXPECT_TRUE(absl::IsPermissionDenied(admit(next, record(9, sha256_hex("other")))));
}

TEST_F(Seen, ASignerOfWhomNothingIsSaidOrOnlyLongAgoIsNotBelieved) {
  SeenGenerations seen("", "");
  seen.hear({});
  EXPECT_TRUE(seen.has_heard());
  EXPECT_THAT(admit(seen, record(20)).message(), HasSubstr("does not say what its signer"));
  const int64_t today =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  seen.hear({said(today - 31 * kDayMs, 0)});
  EXPECT_THAT(admit(seen, record(20)).message(), HasSubstr("said 31 days ago, and counts for 30"));
  std::vector<Signer> patient = signers;
  patient[0].head_days = 365;
  EXPECT_TRUE(seen.admit(record(20), patient, "there").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(seen.admit(record(20), {{std::string(64, 'a'), "x"}}, "there")));
}

TEST_F(Seen, HeadsOfOthersAndForgedOnesAreLeftOut) {
  google::protobuf::RepeatedPtrField<v1::StoreHead> heads;
  *heads.Add() = to_proto(said(kNow, 10));
  StoreHead forged = said(kNow, 10);
  forged.oldest = 0;
  *heads.Add() = to_proto(forged);
  StoreHead foreign = said(kNow, 10);
  SigningKey::open(scratch.path("other")).value()->sign(&foreign);
  *heads.Add() = to_proto(foreign);
  EXPECT_EQ(sound_heads(heads, signers), (std::vector<StoreHead>{said(kNow, 10)}));
  EXPECT_EQ(sound_heads(heads, {}).size(), 2u);
}

// A line of the file is removed when a later line supersedes it, so the file does not grow with every record that is
// seen.
TEST_F(Seen, LinesThatSayLessThanOthersGo) {
  {
    SeenGenerations seen(file, "");
    seen.hear({said(kNow, 0)});
    for (int i = 1; i <= 6000; ++i) EXPECT_TRUE(admit(seen, record(i)).ok());
  }
  SeenGenerations next(file, "");
  std::ifstream in(file);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(in), {}, '\n'), 1);
  next.hear({said(kNow, 0)});
  EXPECT_TRUE(absl::IsPermissionDenied(admit(next, record(5999))));
}

}  // namespace
}  // namespace wl
