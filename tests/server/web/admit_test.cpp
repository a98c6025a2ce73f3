// Each HTTP address corresponds to an RPC, and is answered only for the callers that may make this RPC.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "server/services/authorizer.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

constexpr const char kListJobs[] = "/warploom.v1.TuningService/ListJobs";

PeerIdentity named(const std::string& uri) {
  return {.uri = uri, .problem = {}, .until_unix_s = kForEver};
}

class Admit : public ::testing::Test {
 protected:
  Admit() {
    std::ofstream(file) << "team vision\ncert spiffe://lab/c client team=vision\ncert spiffe://lab/op operator\n";
    chmod(file.c_str(), 0600);
    token = make_token(file, "t", kClient, 3600, "vision").value();
    authorizer = Authorizer::open({.owner = 0, .callers = file, .trust_domains = {}, .tls = {}}).value();
  }
  absl::StatusOr<Reader> by(Door door, const Shown& shown, const std::string& call = kListJobs) const {
    Connection connection;
    connection.door = door;
    return authorizer->admit(call, connection, shown);
  }

  Scratch scratch;
  const std::string file = scratch.path("callers");
  std::string token;
  std::unique_ptr<Authorizer> authorizer;
};

TEST_F(Admit, ByTokenAsItsTeam) {
  for (const Door door : {Door::kLoopback, Door::kTls}) {
    const auto reader = by(door, {.token = "Bearer " + token, .certificate = {}});
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->team, "vision");
    EXPECT_FALSE(reader->every);
    EXPECT_TRUE(absl::IsUnauthenticated(by(door, {.token = "Bearer x", .certificate = {}}).status()));
    EXPECT_TRUE(absl::IsUnauthenticated(by(door, {.token = token, .certificate = {}}).status()));
  }
}

TEST_F(Admit, ByCertificate) {
  EXPECT_EQ(by(Door::kTls, {.token = {}, .certificate = named("spiffe://lab/c")})->team, "vision");
  EXPECT_TRUE(by(Door::kTls, {.token = {}, .certificate = named("spiffe://lab/op")})->every);
  EXPECT_TRUE(
      absl::IsPermissionDenied(by(Door::kTls, {.token = {}, .certificate = named("spiffe://lab/other")}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(by(Door::kTls, {}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(
      by(Door::kTls, {.token = {}, .certificate = named("spiffe://lab/c")}, "/warploom.v1.Admin/Drain").status()));
}

TEST_F(Admit, ByACertificateThatNamesSomebodyAndHasNotExpired) {
  EXPECT_TRUE(absl::IsUnauthenticated(
      by(Door::kTls,
         {.token = {},
          .certificate = PeerIdentity{.uri = {}, .problem = "it has 2 URI names", .until_unix_s = kForEver}})
          .status()));
  EXPECT_TRUE(absl::IsUnauthenticated(
      by(Door::kTls,
         {.token = {}, .certificate = PeerIdentity{.uri = "spiffe://lab/op", .problem = {}, .until_unix_s = 1}})
          .status()));
}

TEST_F(Admit, FromThisMachineWithoutAnything) {
  const auto reader = by(Door::kLoopback, {});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->team, "");
  EXPECT_FALSE(reader->every);
}

}  // namespace
}  // namespace wl
