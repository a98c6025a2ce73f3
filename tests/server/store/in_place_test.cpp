// Which records replaced others in programs, and what becomes of them.
#include <gtest/gtest.h>

#include "tests/server/store/samples.h"

namespace wl {
namespace {

// A store with a served record of kKey, and a finished job whose graph runs that kernel beside another one.
class StoreInPlace : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = open_or_die({.file = scratch_.path("a.db")});
    search_ = make_search(*store_);
    ASSERT_TRUE(store_->promote(record("first"), search_).ok());
    JobRow job = some_job("program");
    job.state = JobState::kRunning;
    job = *store_->create_job(job);
    job.state = JobState::kSucceeded;
    JobResult result;
    result.groups.resize(1);
    result.groups[0].key = kKey;
    result.steps = {{0, {}}, {0, {}}};
    job.result = result;
    ASSERT_TRUE(store_->finish_job(job, "").ok());
    program_ = job.id;
  }
  static KernelRecord record(const std::string& plan) {
    KernelRecord record = some_record(kKey, plan);
    record.device.target = "cpu:avx2";
    record.digest = record_digest(record);
    return record;
  }
  void use() { ASSERT_EQ(store_->add_uses("", {{kKey, 1, 100}}, 10).value(), 1); }
  // Returns the plans of the replacement that waits, as "BEFORE AFTER"; "": none waits.
  std::string waiting() {
    const auto rows = store_->waiting_replacements(10);
    EXPECT_TRUE(rows.ok() && rows->size() <= 1) << rows.status();
    return rows->empty() ? "" : cat(plan_of(rows->at(0).before), " ", plan_of(rows->at(0).after));
  }
  std::string plan_of(const std::string& digest) { return (*store_->record_by_digest(digest))->record.plan; }
  std::string served() { return (*store_->record_by_key(kKey, "gcc 12"))->record.plan; }
  absl::Status end(TriedInPlace outcome, const ReplacedRow& row) {
    ReplacedRow ended = row;
    ended.outcome = outcome;
    const auto before = store_->record_by_digest(row.before);
    return store_->end_replacement(ended, outcome == TriedInPlace::kTakenBack ? &(*before)->record : nullptr);
  }

  Scratch scratch_;
  std::unique_ptr<Store> store_;
  int64_t search_ = 0, program_ = 0;
};

TEST_F(StoreInPlace, AProgramIsKnownByItsKernels) {
  EXPECT_EQ(store_->programs_with(kKey, 10).value(), std::vector<int64_t>{program_});
  EXPECT_TRUE(store_->programs_with(key_of("another"), 10).value().empty());
}

TEST_F(StoreInPlace, OnlyWhatProgramsCountIsTried) {
  ASSERT_TRUE(store_->promote(record("second"), search_).ok());
  EXPECT_EQ(waiting(), "") << "no program says that it runs the kernel";
  use();
  ASSERT_TRUE(store_->promote(record("third"), search_).ok());
  EXPECT_EQ(waiting(), "second third");
}

TEST_F(StoreInPlace, WhatWasNeverTriedIsComparedWithWhatWas) {
  use();
  ASSERT_TRUE(store_->promote(record("second"), search_).ok());
  ASSERT_TRUE(store_->promote(record("third"), search_).ok());
  EXPECT_EQ(waiting(), "first third");
}

TEST_F(StoreInPlace, ATakenBackKernelIsNotServed) {
  use();
  ASSERT_TRUE(store_->promote(record("second"), search_).ok());
  EXPECT_EQ(served(), "second");
  const ReplacedRow row = store_->waiting_replacements(1)->at(0);
  ASSERT_TRUE(end(TriedInPlace::kTakenBack, row).ok());
  EXPECT_EQ(served(), "first");
  EXPECT_EQ(waiting(), "") << "nobody tries what was taken back";
  EXPECT_TRUE(store_->was_taken_back(kKey, "gcc 12", "", "second").value());
  EXPECT_FALSE(store_->was_taken_back(kKey, "gcc 12", "", "first").value());
  EXPECT_EQ(store_->replacements_of(kKey, {.team = "any"}, 10)->at(0).outcome, TriedInPlace::kTakenBack);
}

// A kernel that was promoted during the trial of another one is not taken back with it.
TEST_F(StoreInPlace, ANewerKernelStays) {
  use();
  ASSERT_TRUE(store_->promote(record("second"), search_).ok());
  const ReplacedRow row = store_->waiting_replacements(1)->at(0);
  ASSERT_TRUE(store_->promote(record("third"), search_).ok());
  ASSERT_TRUE(end(TriedInPlace::kTakenBack, row).ok());
  EXPECT_EQ(served(), "third");
  EXPECT_EQ(waiting(), "first third");
}

TEST_F(StoreInPlace, AnInvalidatedKernelIsNotServedAgain) {
  use();
  ASSERT_TRUE(store_->promote(record("second"), search_).ok());
  const ReplacedRow row = store_->waiting_replacements(1)->at(0);
  ASSERT_TRUE(store_->invalidate(kKey).ok());
  ASSERT_TRUE(end(TriedInPlace::kTakenBack, row).ok());
  EXPECT_EQ(*store_->record_by_key(kKey, "gcc 12"), std::nullopt);
  EXPECT_EQ(waiting(), "");
}

}  // namespace
}  // namespace wl
