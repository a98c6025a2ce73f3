// Decides for every call of every service whether its caller may make it: gRPC asks the guard of a connection about
// each call before the call reaches a service. The .proto of a call says which roles may make it (proto/roles.h). The
// roles of a caller follow from its connection, certificate or token.
//
// Calls of an in-process channel (embedded mode) come through no connection. They count as the operator's and are not
// checked.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proto/roles.h"
#include "proto/tls.h"
#include "server/engine/teams.h"
#include "server/services/callers.h"
#include "server/services/connection.h"
#include "server/services/open_calls.h"
#include "server/store/store.h"

namespace wl {

struct AuthorizerOptions {
  int64_t owner = Connection::kUnknown;  // the user that runs the coordinator
  std::string callers;                   // the callers file (server/services/callers.h); empty: none
  // The trust domains whose certificates may carry a role in their name, spiffe://DOMAIN/warploom/ROLE; separated by
  // commas.
  std::string trust_domains;
  TlsFiles tls;  // the files of this server, for Door::kTls
};

class Authorizer {
 public:
  // InvalidArgument or FailedPrecondition: a file or a trust domain cannot be used; the message says why.
  static absl::StatusOr<std::unique_ptr<Authorizer>> open(const AuthorizerOptions& options);

  // Returns credentials for connections of one kind, with which every call is checked. `connection` describes their
  // callers and must not change once a connection was accepted. The authorizer must outlive the server.
  std::shared_ptr<grpc::ServerCredentials> guarded(std::shared_ptr<const Connection> connection);

  // Checks whether a call of the method `path` is allowed. PermissionDenied: it needs another role. Unauthenticated:
  // the caller is not known. Both messages say what to do. Unimplemented: there is no such method. Calls that are
  // refused to their caller, and calls for operators alone, leave a line in the log. Any thread.
  absl::Status check(const std::string& path, const Connection& connection, const Shown& shown);

  // Returns the principal (compiler/base/job.h) of the caller, under which its workers are registered: the name of its
  // token or certificate as as_principal() writes it, "uid:NUMBER" for a user over a unix socket, else kNobodyKnown.
  // Empty: the call came through no connection. Any thread.
  std::string principal_of(const grpc::CallbackServerContext& context) const;

  // Whether the caller of a call may also make the call `path`. A caller without a connection may make every call. Any
  // thread.
  bool may_also(const grpc::CallbackServerContext& context, const std::string& path) const;

  // Returns what the caller of a permitted call may see. A caller without a connection sees everything.
  // Unauthenticated: its credentials are no longer valid. Any thread.
  absl::StatusOr<Reader> view_of(const grpc::CallbackServerContext& context) const;

  // Checks a call that stays open every half second: its caller must still be allowed to make it, as by check(), and be
  // of the same team. Otherwise, or once the call has taken longer than `longest`, `end` is called once with the error,
  // on another thread, and never after the result is destroyed. nullptr: the call came through no connection.
  std::unique_ptr<OpenCalls::Held> hold(const grpc::CallbackServerContext& context, const std::string& path,
                                        std::chrono::seconds longest, OpenCalls::End end) const;

  // Checks an HTTP request that stands for a call of `path`, with the errors of check(), and returns what its caller
  // may see.
  absl::StatusOr<Reader> admit(const std::string& path, const Connection& connection, const Shown& shown);

  // Returns the machine that a row names for the workers of a principal; empty: no row does. Any thread.
  std::string machine_of(const std::string& principal) const;

  // Returns the rules of a team, or the defaults of TeamRules if it has no row. Any thread.
  TeamRules rules_of(const std::string& team) const;

  // Returns the principal of a caller of this name, which has no '/' and no '#': '/' separates it from the rest of a
  // worker's name, and '#' separates the name from the number of the worker's process.
  static std::string as_principal(const std::string& name);

  // OK: a principal can make no call any more. FailedPrecondition: it still can; the message says what to do. Also OK
  // for a principal without token or certificate, which only the user that runs its workers can stop.
  absl::Status is_revoked(const std::string& principal) const;

  // Whether a row gives the certificate of this principal no role, so that nothing that it made is accepted. Any
  // thread.
  bool bars(const std::string& principal) const;

 private:
  struct Caller {
    std::string name;  // "user 1000"
    CallerRow row;
    std::string remedy;  // what to do when the roles do not suffice
  };

  Authorizer() = default;
  static Reader reader_of(const Caller& caller);
  absl::StatusOr<Caller> caller_of(const Connection& connection, const Shown& shown) const;
  absl::StatusOr<Caller> allowed(const std::string& path, Roles roles, const Connection& connection,
                                 const Shown& shown) const;
  static absl::StatusOr<Caller> by_token(const Callers& callers, const std::string& token);
  absl::StatusOr<Caller> by_certificate(const Callers& callers, const std::optional<PeerIdentity>& certificate) const;
  Roles role_in(const std::string& uri) const;
  Caller by_user(const Callers& callers, int64_t uid) const;
  void write_down(const std::string& call, const Connection& connection, const std::string& who,
                  const absl::Status& outcome);

  AuthorizerOptions options_;
  std::unique_ptr<CallersFile> callers_;
  std::set<std::string> trust_domains_;
  std::mutex mutex_;  // guards the counts of log lines in the current second
  int64_t second_ = 0, written_ = 0, left_out_ = 0;
  mutable OpenCalls open_calls_;  // last, so destroyed first: its thread uses the other members
};

}  // namespace wl
