// Coordinators that listen in every way (unix socket, TLS, plain TCP, HTTPS), and certificates and tokens for callers
// of every kind.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "compiler/base/sha256.h"
#include "proto/dial.h"
#include "server/services/callers.h"
#include "tests/server/raw_call.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {

inline constexpr uid_t kSomebody = 4321;

// Calls an RPC, unary or streaming, with an empty request and returns its status.
inline grpc::Status call_of(const std::shared_ptr<grpc::Channel>& channel, const std::string& path) {
  grpc::ByteBuffer answer;
  return raw_call(channel, path, "", &answer);
}

inline bool is_refused(const grpc::Status& status) {
  return status.error_code() == grpc::PERMISSION_DENIED || status.error_code() == grpc::UNAUTHENTICATED;
}

// The coordinator `tls` listens on a unix socket, with TLS, and with HTTPS. The coordinator `plain` listens on a
// loopback port without TLS.
class Doorstep {
 public:
  Doorstep() {
    for (const char* name : {"ca", "other"}) make_ca(name);
    make_certificate("server", "ca", "DNS:localhost,IP:127.0.0.1");
    make_certificate("worker", "ca", "URI:spiffe://lab/warploom/worker/gpu7");
    make_certificate("operator", "ca", "URI:spiffe://lab/desk,DNS:desk.lab");
    make_certificate("lost", "ca", "URI:spiffe://lab/warploom/worker/lost");
    make_certificate("stranger", "ca", "URI:spiffe://lab/stranger");
    make_certificate("foreign", "other", "URI:spiffe://lab/warploom/operator");
    std::ofstream(callers()) << "# of a test\n"
                             << "user " << kSomebody + 1 << " client\n"
                             << "cert spiffe://lab/desk operator\n"
                             << "cert spiffe://lab/warploom/worker/lost none\n"
                             << "token old operator 2020-01-01T00:00:00Z " << sha256_hex("old") << "\n";
    chmod(callers().c_str(), 0600);
    for (const Roles role : {kClient, kWorker, kOperator, kCache})
      tokens.push_back(make_token(callers(), print_roles(role), role, 3600).value());
    options.store = scratch.path("a.db");
    options.compiler = &compiler;
    options.listen = cat("unix:", scratch.path("s"), ",localhost:0");
    options.tls = {.cert = scratch.path("server.pem"), .key = scratch.path("server.key"), .ca = scratch.path("ca.pem")};
    options.callers = callers();
    options.trust_domains = "lab, second";
    options.http = "localhost:0";
    const absl::Status started = tls.start(options);
    EXPECT_TRUE(started.ok()) << started;
    options.store = scratch.path("b.db");
    options.listen = "127.0.0.1:0";
    options.tls = {};
    options.http = {};
    EXPECT_TRUE(plain.start(options).ok());
  }

  std::string callers() const { return scratch.path("callers"); }
  std::string socket() const { return scratch.path("s"); }

  std::shared_ptr<grpc::Channel> by_tls(const std::string& certificate, const std::string& token = "") const {
    DialOptions how;
    how.tls.ca = scratch.path("ca.pem");
    if (!certificate.empty()) how.tls.cert = scratch.path(certificate + ".pem");
    if (!certificate.empty()) how.tls.key = scratch.path(certificate + ".key");
    how.token = token;
    return dial(tls.addresses()[1], how).value();
  }
  std::shared_ptr<grpc::Channel> by_token(const std::string& address, const std::string& token) const {
    DialOptions how;
    how.token = token;
    return dial(address, how).value();
  }

  void run(const std::string& command) const {
    EXPECT_EQ(system(cat("cd ", scratch.path(""), " && (", command, ") > openssl.log 2>&1").c_str()), 0) << command;
  }
  void make_ca(const std::string& name, const std::string& common_name = "ca") const {
    run(cat("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ", name, ".key -out ", name,
            ".pem -days 2 -subj '/CN=", escaped(common_name), "'"));
  }
  // `names`: the certificate's alternative names, in openssl's notation. `subject` and `extensions`: its further
  // fields.
  void make_certificate(const std::string& name, const std::string& ca, const std::string& names,
                        const std::string& subject = "", const std::string& extensions = "") const {
    std::ofstream(scratch.path(name + ".ext"))
        << (names.empty() ? "" : cat("subjectAltName=", names, "\n")) << extensions;
    run(cat("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ", name, ".key -out ", name,
            ".csr -subj '", subject.empty() ? cat("/CN=", name) : subject, "' && openssl x509 -req -in ", name,
            ".csr -CA ", ca, ".pem -CAkey ", ca, ".key -CAcreateserial -days 2 -extfile ", name, ".ext -out ", name,
            ".pem"));
  }
  // Escapes a value for openssl's -subj, where a slash begins the next field.
  static std::string escaped(const std::string& value) { return absl::StrReplaceAll(value, {{"/", "\\/"}}); }

  Scratch scratch;
  FakeCompiler compiler;
  CoordinatorOptions options;
  Coordinator tls, plain;
  std::vector<std::string> tokens;  // the tokens of a client, a worker, an operator and a cache
};

}  // namespace wl
