#include "proto/trace.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/base/names.h"
#include "proto/limits.h"
#include "proto/wire.h"
#include "warploom/v1/tuning.pb.h"

namespace wl {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";

TEST(Trace, IsReadFromAnIdOrATraceparent) {
  EXPECT_EQ(*parse_trace(kTrace), kTrace);
  EXPECT_EQ(*parse_trace("00-" + kTrace + "-00f067aa0ba902b7-01"), kTrace);
  EXPECT_EQ(*parse_trace("cc-" + kTrace + "-00f067aa0ba902b7-01-what-comes-later"), kTrace);
}

TEST(Trace, RefusesWhatIsNone) {
  const std::string zeros(32, '0');
  for (const std::string& text :
       {std::string(), std::string("x"), zeros, kTrace + "0", kTrace.substr(1),
        "4BF92F3577B34DA6A3CE929D0E0E4736" + std::string(), "00-" + zeros + "-00f067aa0ba902b7-01",
        "00-" + kTrace + "-0000000000000000-01", "ff-" + kTrace + "-00f067aa0ba902b7-01",
        "00-" + kTrace + "-00f067aa0ba902b7", "00-" + kTrace + "-00f067aa0ba902b7-01-more",
        "0-" + kTrace + "-00f067aa0ba902b7-01", kTrace.substr(0, 31) + "\n", "-" + kTrace}) {
    const auto trace = parse_trace(text);
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_NE(trace.status().message().find("32 hexadecimal digits"), std::string::npos) << trace.status();
  }
}

TEST(Trace, NewOnesDiffer) {
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) {
    const std::string trace = new_trace();
    EXPECT_TRUE(check_text("", trace, TextKind::kTrace, 32).ok()) << trace;
    all.insert(trace);
  }
  EXPECT_EQ(all.size(), 100u);
}

TEST(Trace, OfOthersIsCheckedInEveryMessage) {
  v1::CreateTuningJobRequest request;
  request.set_request_id("r");
  EXPECT_TRUE(check_fields(request).ok()) << "none is none";
  request.set_trace(kTrace);
  EXPECT_TRUE(check_fields(request).ok());
  for (const char* hostile :
       {"4bf92f3577b34da6a3ce929d0e0e473", "\x1b[31m", "{\"level\":\"error\"}", "00000000000000000000000000000000"}) {
    request.set_trace(hostile);
    EXPECT_TRUE(absl::IsInvalidArgument(check_fields(request))) << hostile;
    v1::Job job;
    job.set_trace(hostile);
    EXPECT_FALSE(check_fields(job).ok()) << hostile;
    v1::Batch batch;
    batch.mutable_problem();
    batch.mutable_recipe();
    batch.set_trace(hostile);
    EXPECT_FALSE(from_proto(batch).ok()) << hostile;
  }
}

}  // namespace
}  // namespace wl
