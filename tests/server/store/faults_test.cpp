// A failing disk: each call that SQLite makes to the disk fails once, and the power is cut at random moments.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/server/store/fault_vfs.h"
#include "tests/server/store/samples.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

using testing::DiskEvent;
using testing::Fault;
using testing::FaultVfs;
namespace fs = std::filesystem;

// Runs tell_story() with one failing call and checks the store. Returns the number of calls that could have failed.
int64_t tell_with_fault(Fault fault, int64_t number) {
  Scratch scratch;
  FaultVfs vfs("faults");
  const std::string file = scratch.path("a.db");
  vfs.arm(fault, number);
  int acknowledged = 0;
  bool broken = false;
  absl::Status told;
  {
    auto store = Store::open({.file = file, .vfs = vfs.name()});
    told = store.ok() ? tell_story(**store, [&] { ++acknowledged; }) : store.status();
    broken = store.ok() && (*store)->stats().broken;
  }
  const int64_t calls = vfs.calls();
  EXPECT_TRUE(told.ok() || vfs.failed()) << told;
  EXPECT_TRUE(told.ok() || !told.message().empty());
  EXPECT_FALSE(broken && told.ok()) << "a store that broke said so";
  auto store = open_or_die({.file = file});
  if (store == nullptr) return calls;
  check_story(*store, acknowledged);
  store.reset();
  expect_sound(file);
  return calls;
}

class StoreFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(StoreFaults, EachCallOfTheDiskFailsOnce) {
  const int64_t calls = tell_with_fault(GetParam(), 0);
  EXPECT_GT(calls, 20);
  std::printf("%lld calls can fail so\n", static_cast<long long>(calls));
  std::vector<int64_t> numbers;
  for (int64_t number = 1; number <= calls; ++number) numbers.push_back(number);
  const double some = static_cast<double>(testing::scaled(80)) / static_cast<double>(calls);
  double due = 0;
  for (const int64_t number : numbers) {
    due += some;
    if (due < 1) continue;
    due = std::min(due - 1, 1.0);
    SCOPED_TRACE(cat("call ", number, " of ", calls));
    tell_with_fault(GetParam(), number);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(, StoreFaults, ::testing::Values(Fault::kIoError, Fault::kFullDisk, Fault::kShortWrite),
                         [](const auto& of) {
                           return std::string(of.param == Fault::kIoError    ? "IoError"
                                              : of.param == Fault::kFullDisk ? "FullDisk"
                                                                             : "ShortWrite");
                         });

// The events of a disk on which a store is opened for tell_story(), and then opened twice more to add jobs. Each
// acknowledged write leaves a note with its number: 1 to 8 are the steps of tell_story(), higher numbers are jobs.
struct Recorded {
  std::map<std::string, std::string> before;
  std::vector<DiskEvent> events;
};

constexpr int kStory = 8, kJobs = 20;

Recorded record_story(const std::string& file) {
  FaultVfs vfs("power");
  Recorded out;
  vfs.log(true);
  int noted = 0;
  {
    auto store = open_or_die({.file = file, .vfs = vfs.name()});
    EXPECT_TRUE(tell_story(*store, [&] { vfs.note(++noted); }).ok());
  }
  for (int opened = 0; opened < 2; ++opened) {
    auto store = open_or_die({.file = file, .vfs = vfs.name()});
    for (int i = 0; i < kJobs / 2; ++i) {
      EXPECT_TRUE(store->create_job(some_job(cat("job ", noted + 1))).ok());
      vfs.note(++noted);
    }
  }
  out.events = vfs.events();
  out.before = vfs.files_before();
  return out;
}

TEST(StorePower, WhatWasAcknowledgedSurvivesAPowerCutAnywhere) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  const Recorded story = record_story(file);
  ASSERT_GT(story.events.size(), 100u);
  const int64_t cuts = testing::scaled(100);
  std::mt19937_64 random(testing::test_seed(1));
  for (int64_t cut = 0; cut < cuts; ++cut) {
    Scratch after;
    const size_t count = random() % (story.events.size() + 1);
    SCOPED_TRACE(cat("cut ", cut, " after ", count, " of ", story.events.size(), " events"));
    int acknowledged = 0;
    for (size_t i = 0; i < count; ++i)
      if (story.events[i].kind == DiskEvent::kNote) acknowledged = static_cast<int>(story.events[i].offset);
    for (const auto& [name, bytes] : testing::after_power_cut(story.before, story.events, count, random)) {
      std::ofstream(after.path(fs::path(name).filename()), std::ios::binary) << bytes;
    }
    // Object files are written and synced before the rows that name them, so a power cut may leave all of them, and
    // all are copied.
    if (fs::exists(file + ".objects"))
      fs::copy(file + ".objects", after.path("a.db.objects"), fs::copy_options::recursive);
    auto store = open_or_die({.file = after.path("a.db"), .quick_check = true});
    ASSERT_NE(store, nullptr);
    check_story(*store, std::min(acknowledged, kStory));
    for (int job = kStory + 1; job <= acknowledged; ++job)
      EXPECT_TRUE(store->job_by_request(cat("job ", job))->has_value());
    store.reset();
    expect_sound(after.path("a.db"));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace wl
