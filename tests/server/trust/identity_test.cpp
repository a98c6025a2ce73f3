// The identity of a caller in its certificate. Certificates with a name in each field that can hold one are tried with
// every RPC and every HTTP address: only the URI name counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <map>

#include "absl/strings/escaping.h"
#include "proto/tls.h"
#include "server/services/authorizer.h"
#include "server/web/web.h"
#include "tests/server/trust/doorstep.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

const std::string kOperatorUri = "spiffe://lab/warploom/operator";

// Returns an openssl value, in DER, for a list of alternative names that consists of one URI with exactly these bytes.
std::string uri_of(const std::string& bytes) {
  const auto length = [](size_t size) { return std::string(1, static_cast<char>(size)); };
  const std::string name = "\x86" + length(bytes.size()) + bytes;
  return "DER:" + absl::BytesToHexString("\x30" + length(name.size()) + name);
}

struct Case {
  std::string field;  // the field of the certificate that contains the name
  std::string names = {}, subject = {}, extensions = {};
  Roles roles = kNoRole;
  std::string ca = "ca";  // the certificate authority that issued the certificate
};

std::vector<Case> cases() {
  const std::string& uri = kOperatorUri;
  const std::string value = Doorstep::escaped(uri);
  std::vector<Case> all = {
      {"the URI name", "URI:" + uri, "", "", kOperator},
      {"the URI name, with more", "URI:spiffe://lab/warploom/client/alice", "", "", kClient},
      {"the URI name of another trust domain", "URI:spiffe://second/warploom/cache", "", "", kCache},
      {"the URI name, beside a host's", "DNS:gpu7.lab,IP:10.0.0.7,URI:spiffe://lab/warploom/worker", "", "", kWorker},
      {"a row for the URI name", "URI:spiffe://lab/desk", "", "", kOperator},
      {"the host name", "DNS:" + uri},
      {"the host name of a row", "DNS:spiffe://lab/desk"},
      {"the mail address", "email:" + uri},
      {"the registered id", "RID:1.2.3.4"},
      {"another name", "otherName:1.2.3.4;UTF8:" + uri},
      {"a principal name", "otherName:1.3.6.1.4.1.311.20.2.3;UTF8:" + uri},
      {"a directory name", "dirName:dir", "", "[dir]\nCN=" + uri + "\n"},
      {"the issuer's alternative name", "DNS:x.lab", "", "issuerAltName=URI:" + uri + "\n"},
      {"the place of revocations", "DNS:x.lab", "", "crlDistributionPoints=URI:" + uri + "\n"},
      {"the place of the issuer", "DNS:x.lab", "", "authorityInfoAccess=caIssuers;URI:" + uri + "\n"},
      {"a policy", "DNS:x.lab", "",
       "certificatePolicies=@policy\n[policy]\npolicyIdentifier=1.3.5.8\nCPS.1=" + uri + "\n"},
      {"a comment", "DNS:x.lab", "", "nsComment=" + uri + "\n"},
      {"the subject's key", "DNS:x.lab", "", "subjectKeyIdentifier=" + absl::BytesToHexString(uri) + "\n"},
      {"the issuer", "DNS:x.lab", "", "", kNoRole, "named"},
      {"the common name", "", "/CN=" + value},
      {"the common name of a row", "", "/CN=" + Doorstep::escaped("spiffe://lab/desk")},
      {"the common name, beside a client", "URI:spiffe://lab/warploom/client", "/CN=" + value, "", kClient},
      {"the host name, beside a client", "URI:spiffe://lab/warploom/client,DNS:" + uri, "", "", kClient},
      {"no name at all", "", "/"},
      {"two URI names", "URI:" + uri + ",URI:spiffe://lab/warploom/worker"},
      {"one URI name twice", "URI:" + uri + ",URI:" + uri},
      {"an unknown trust domain", "URI:spiffe://elsewhere/warploom/operator"},
      {"a trust domain that begins alike", "URI:spiffe://lab.evil/warploom/operator"},
      {"no trust domain", "URI:spiffe:///warploom/operator"},
      {"another scheme", "URI:https://lab/warploom/operator"},
      {"another application", "URI:spiffe://lab/other/operator"},
      {"further in", "URI:spiffe://lab/x/warploom/operator"},
      {"a role that is none", "URI:spiffe://lab/warploom/none"},
      {"two roles", uri_of("spiffe://lab/warploom/client,operator")},
      {"a slash at the end", "URI:" + uri + "/"},
      {"an empty part", "URI:spiffe://lab//warploom/operator"},
      {"a way up", "URI:spiffe://lab/warploom/client/../operator"},
      {"a query", "URI:" + uri + "?x"},
      {"a fragment", uri_of(uri + "#x")},
      {"a user", "URI:spiffe://x@lab/warploom/operator"},
      {"a port", "URI:spiffe://lab:1/warploom/operator"},
      {"percent-encoding", "URI:spiffe://lab/warploom/%6fperator"},
      {"percent-encoding of the domain", "URI:spiffe://l%61b/warploom/operator"},
      {"an upper-case scheme", "URI:SPIFFE://lab/warploom/operator"},
      {"an upper-case domain", "URI:spiffe://LAB/warploom/operator"},
      {"an upper-case role", "URI:spiffe://lab/warploom/Operator"},
      {"a NUL at the end", uri_of(uri + std::string(1, '\0'))},
      {"a NUL and more", uri_of(uri + std::string("\0.elsewhere", 11))},
      {"a NUL in the domain", uri_of(std::string("spiffe://lab\0.evil/warploom/operator", 36))},
      {"a line break", uri_of(uri + "\n")},
      {"a blank", uri_of(" " + uri)},
  };
  for (const char* field :
       {"O", "OU", "L", "ST", "DC", "UID", "serialNumber", "emailAddress", "title", "GN", "SN", "name"})
    all.push_back({cat("the subject's ", field), "", cat("/CN=x/", field, "=", value)});
  return all;
}

TEST(Identity, IsTheOneUriNameWhateverStandsElsewhere) {
  const Doorstep at;
  at.make_ca("named", kOperatorUri);
  at.run("cat ca.pem named.pem > both && cp both ca.pem.new && mv ca.pem.new both.pem");
  CoordinatorOptions options = at.options;
  FakeCompiler compiler;
  options.compiler = &compiler;
  options.store = at.scratch.path("matrix.db");
  options.listen = "localhost:0";
  options.http = "localhost:0";
  options.tls = {
      .cert = at.scratch.path("server.pem"), .key = at.scratch.path("server.key"), .ca = at.scratch.path("both.pem")};
  Coordinator coordinator;
  ASSERT_TRUE(coordinator.start(options).ok());
  std::map<std::string, Roles> needs;
  for (const RpcRule& rule : rpc_rules()) needs[rule.path] = rule.roles;
  int number = 0;
  for (const Case& one : cases()) {
    const std::string name = cat("c", ++number);
    at.make_certificate(name, one.ca, one.names, one.subject, one.extensions);
    DialOptions how;
    how.tls = {
        .cert = at.scratch.path(name + ".pem"), .key = at.scratch.path(name + ".key"), .ca = at.scratch.path("ca.pem")};
    const auto channel = dial(coordinator.addresses()[0], how).value();
    for (const auto& [path, roles] : needs) {
      const grpc::Status status = call_of(channel, path);
      EXPECT_NE(status.error_code(), grpc::UNAVAILABLE) << one.field << ": " << status.error_message();
      EXPECT_EQ(is_refused(status), (one.roles & roles) == 0)
          << "operator in " << one.field << " calls " << path << ": " << status.error_code() << " "
          << status.error_message();
    }
    httplib::SSLClient client("localhost", std::stoi(coordinator.http_address().substr(10)), how.tls.cert, how.tls.key);
    client.set_ca_cert_path(how.tls.ca.c_str());
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);
    for (const HttpRule& rule : http_rules()) {
      const httplib::Result answer = client.Get(absl::StrReplaceAll(rule.path, {{"*", "1"}}));
      ASSERT_TRUE(answer) << one.field << ", " << rule.path << ": " << httplib::to_string(answer.error());
      EXPECT_EQ(answer->status == 401 || answer->status == 403, (one.roles & needs.at(rule.call)) == 0)
          << "operator in " << one.field << " asks for " << rule.path << ": " << answer->status << " " << answer->body;
    }
  }
}

TEST(Identity, HasOneSpelling) {
  for (const char* right : {"spiffe://lab", "spiffe://lab/a", "spiffe://a-b_c.d1/A/b.c/..."})
    EXPECT_TRUE(check_spiffe_id(right).ok()) << right;
  for (const char* wrong :
       {"", "spiffe://", "spiffe:///a", "spiffe://lab/", "spiffe://lab/a/", "spiffe://lab//a", "spiffe://lab/.",
        "spiffe://lab/a/..", "spiffe://Lab/a", "spiffe://lab/a%20", "spiffe://lab/a b", "lab/a"})
    EXPECT_THAT(std::string(check_spiffe_id(wrong).message()), HasSubstr("expected")) << wrong;
}

TEST(Identity, OfTrustDomainsThatCanBeOne) {
  EXPECT_THAT(std::string(Authorizer::open({.owner = 0, .callers = {}, .trust_domains = "lab,spiffe://x", .tls = {}})
                              .status()
                              .message()),
              HasSubstr("--trust-domain: expected a trust domain of lower-case letters"));
  EXPECT_THAT(std::string(Callers::parse("cert gpu7.lab worker\n", "f").status().message()),
              HasSubstr("callers f, line 1: expected a URI such as spiffe://"));
}

}  // namespace
}  // namespace wl
