#include "proto/log.h"

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace wl {
namespace {

using Json = nlohmann::json;

constexpr int64_t kAt = 1'764'027'012'000'042;  // microseconds since 1970, for 2025-11-24T23:30:12.000042Z

TEST(Log, ALineIsOneObject) {
  EXPECT_EQ(json_log_line(kAt, "info", "warploomd", "job begins", {{"job", "jobs/7"}, {"trace", ""}}),
            R"({"ts":"2025-11-24T23:30:12.000042Z","level":"info","program":"warploomd","message":"job begins",)"
            R"("job":"jobs/7"})");
}

TEST(Log, WhateverAMessageHasIsEscaped) {
  const std::string hostile = "a\"b\\c\nd\x1b[2J\xff\xe2\x80\xa8 {\"level\":\"error\"}";
  const std::string line = json_log_line(kAt, "warning", "warploomd", hostile, {{"worker", hostile}});
  for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
  const Json json = Json::parse(line);
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["message"], "a\"b\\c\nd\x1b[2J\xef\xbf\xbd\xe2\x80\xa8 {\"level\":\"error\"}")
      << "U+FFFD for the byte";
  EXPECT_EQ(json["worker"], json["message"]);
}

TEST(Log, AnAuditLineIsAPartOfTheObject) {
  const Json json = Json::parse(json_log_line(kAt, "info", "p", "audit", {{"audit", R"({"who":"a\"b"})", true}}));
  EXPECT_EQ(json["audit"]["who"], "a\"b");
  const Json broken = Json::parse(json_log_line(kAt, "info", "p", "audit", {{"audit", "{\"who\":", true}}));
  EXPECT_EQ(broken["audit"], "{\"who\":") << "what is no JSON is a text";
}

}  // namespace
}  // namespace wl
