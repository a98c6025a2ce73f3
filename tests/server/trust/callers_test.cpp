// The file of --callers: its rows and tokens, and who may have write access to it.
#include "server/services/callers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "compiler/base/sha256.h"
#include "tests/unit/file_text.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Callers, RowsOfEveryKind) {
  const auto rows = Callers::parse(cat("# who\n\n user 17 operator\nuser * client\nloopback * none\r\n",
                                       "cert spiffe://lab/gpu7 worker\n\ttoken ci client,worker 2026-12-31T00:00:00Z ",
                                       sha256_hex("secret"), "\ntoken old client never ", sha256_hex("x")),
                                   "f");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->users.at(17).roles, kOperator);
  EXPECT_EQ(rows->other_users.roles, kClient);
  EXPECT_EQ(rows->loopback.roles, kNoRole);
  EXPECT_EQ(rows->certificates.at("spiffe://lab/gpu7").roles, kWorker);
  ASSERT_NE(rows->find_token("secret"), nullptr);
  EXPECT_EQ(rows->find_token("secret")->who.roles, kClient | kWorker);
  EXPECT_EQ(rows->find_token("secret")->until_unix_s, 1798675200);
  EXPECT_EQ(rows->find_token("x")->until_unix_s, kForEver);
  for (const char* wrong : {"", "secre", "secrets", "Secret"}) EXPECT_EQ(rows->find_token(wrong), nullptr);
}

TEST(Callers, AWrongRowIsNamed) {
  const std::string digest = sha256_hex("t");
  const std::pair<std::string, const char*> wrong[] = {
      {"group staff client", "expected user, loopback, cert, token, team or machine, found \"group\""},
      {"user 1", "expected user NAME ROLES and perhaps team=NAME, found 2 fields"},
      {"user nobody-of-this-name client", "expected a user of this machine, a number or *"},
      {"user 1 king", "expected client, worker, operator"},
      {"user 1 client,", "expected client, worker, operator"},
      {"loopback here client", "expected *, found \"here\""},
      {"token a client soon " + digest, "such as 2026-12-31T00:00:00Z or never, found soon"},
      {"token a client never abc", "the SHA-256 of a token"},
      {"token a client never " + digest + "\ntoken a client never " + digest, "a name that no other token has"},
      {"cert a\x01"
       "b client",
       "the name of a caller"},
  };
  for (const auto& [row, says] : wrong) {
    const auto rows = Callers::parse("\n" + row, "/f");
    EXPECT_EQ(rows.status().code(), absl::StatusCode::kInvalidArgument) << row;
    EXPECT_THAT(std::string(rows.status().message()), StartsWith("callers /f, line ")) << row;
    EXPECT_THAT(std::string(rows.status().message()), HasSubstr(says)) << row;
  }
}

TEST(Callers, AreOfTeams) {
  const auto rows = Callers::parse(
      cat("cert spiffe://lab/a client team=vision\ntoken ci client never ", sha256_hex("t"),
          " team=speech\nuser 17 client\nteam vision\n", "team speech weight=3 priority=-1 jobs=7 publish=confirmed\n"),
      "f");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->certificates.at("spiffe://lab/a").team, "vision");
  EXPECT_EQ(rows->find_token("t")->who.team, "speech");
  EXPECT_EQ(rows->users.at(17).team, "");
  const TeamRules none = rows->teams.at("vision"), all = rows->teams.at("speech");
  EXPECT_EQ(std::tuple(none.weight, none.priority, none.most_jobs, none.publishes), std::tuple(1, 0, 0, false));
  EXPECT_EQ(std::tuple(all.weight, all.priority, all.most_jobs, all.publishes), std::tuple(3, -1, 7, true));
  const std::pair<std::string, const char*> wrong[] = {
      {"user 1 client team=vision", "no row says team vision"},
      {"user 1 client team=", "and perhaps team=NAME"},
      {"team", "expected team NAME"},
      {"team weight=2", "expected team NAME, found \"weight=2\""},
      {"team a weight=0", "weight: expected an integer from 1"},
      {"team a weight=2.5", "found \"2.5\""},
      {"team a jobs=-1", "jobs: expected an integer from 1"},
      {"team a publish=all", "publish: expected confirmed or never"},
      {"team a share=1", "expected weight=N"},
      {"team a\nteam a", "a name that no other team has"},
  };
  for (const auto& [text, says] : wrong)
    EXPECT_THAT(std::string(Callers::parse(text, "f").status().message()), HasSubstr(says)) << text;
}

TEST(Callers, HaveMachines) {
  const auto rows = Callers::parse("machine box spiffe://lab/gpu7\nmachine box ci\nmachine other w\n", "f");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->machine_of("spiffe://lab/gpu7"), "box");
  EXPECT_EQ(rows->machine_of("ci"), "box");
  EXPECT_EQ(rows->machine_of("w"), "other");
  EXPECT_EQ(rows->machine_of("x"), "");
  const std::pair<std::string, const char*> wrong[] = {
      {"machine box", "expected machine NAME CALLER, found 2 fields"},
      {"machine box a b", "expected machine NAME CALLER, found 4 fields"},
      {"machine " + std::string(2000, 'x') + " a", "the name of a machine"},
      {"machine b\x01x a", "the name of a machine"},
      {"machine one a\nmachine two a", "a caller that has no machine yet, found \"a\""},
  };
  for (const auto& [text, says] : wrong)
    EXPECT_THAT(std::string(Callers::parse(text, "f").status().message()), HasSubstr(says)) << text;
}

TEST(Callers, ATokenIsInNoFileButItsHashIs) {
  Scratch scratch;
  const std::string file = scratch.path("callers");
  std::ofstream(file) << "user * client";  // the last row has no end of line
  chmod(file.c_str(), 0600);
  const auto token = make_token(file, "ci", kClient | kWorker, 60);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_THAT(testing::file_text(file), Not(HasSubstr(*token)));
  const auto opened = CallersFile::open(file);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const TokenRow* const row = (*opened)->now()->find_token(*token);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->who.roles, kClient | kWorker);
  EXPECT_NEAR(static_cast<double>(row->until_unix_s - time(nullptr)), 60, 30);
  EXPECT_EQ((*opened)->now()->other_users.roles, kClient);
  EXPECT_EQ(make_token(file, "ci", kClient, 60).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(make_token(file, "a b", kClient, 60).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(*make_token(file, "other", kClient, 60), *token);
  EXPECT_TRUE(make_token(scratch.path("new"), "first", kClient, 60).ok()) << "the file is made";
  EXPECT_THAT(std::string(make_token(file, "teamed", kClient, 60, "vision").status().message()),
              HasSubstr("no row says team vision"));
  std::ofstream(scratch.path("empty")).close();
  chmod(scratch.path("empty").c_str(), 0600);
  EXPECT_TRUE(CallersFile::open(scratch.path("empty")).ok());
}

TEST(Callers, AFileThatOthersMayWriteIsNotUsed) {
  Scratch scratch;
  const std::string file = scratch.path("callers");
  EXPECT_EQ(CallersFile::open(file).status().code(), absl::StatusCode::kFailedPrecondition);
  std::ofstream(file) << "user * client\n";
  chmod(file.c_str(), 0666);
  const auto opened = CallersFile::open(file);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("chmod go-w"));
}

TEST(Callers, TimesReadAsTheyPrint) {
  for (const int64_t time : {int64_t{0}, int64_t{1798675200}, kForEver}) EXPECT_EQ(parse_time(print_time(time)), time);
  for (const char* wrong : {"", "2026-12-31", "2026-12-31T00:00:00", "2026-12-31T00:00:00Zx", "2026-13-31T00:00:00Z"})
    EXPECT_EQ(parse_time(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace wl
