// Who may call what, decided in one place for every call of every service: gRPC asks the guard of a connection about
// each call before the call reaches a service. Which roles a call needs is said in its .proto (proto/roles.h), which
// roles a caller has by its connection, its certificate or its token.
//
// Calls of an in-process channel (embedded mode) come through no connection. They are the operator's, and not checked.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
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
  std::string callers;                   // file (server/services/callers.h)
  // Whose certificates may name a role: the trust domains of spiffe://DOMAIN/warploom/ROLE, separated by commas.
  std::string trust_domains;
  TlsFiles tls;  // of this end; for Door::kTls
};

class Authorizer {
 public:
  // InvalidArgument, FailedPrecondition: a file cannot be used, and why.
  static absl::StatusOr<std::unique_ptr<Authorizer>> open(const AuthorizerOptions& options);

  // Credentials for connections of one kind, by which every call is checked. `connection` says what is known of their
  // callers, and must not change once one of them is taken. The authorizer must outlive their server.
  std::shared_ptr<grpc::ServerCredentials> guarded(std::shared_ptr<const Connection> connection);

  // Whether a call of `path` may be made. PermissionDenied: it is for other roles, and what to do. Unauthenticated: the
  // caller is nobody who is known, and what to do. Unimplemented: there is no such call. Refused calls, and calls that
  // are for operators alone, leave a line in the log. Any thread.
  absl::Status check(const std::string& path, const Connection& connection, const Shown& shown);

  // The principal (compiler/base/job.h) of the workers of a call: the name of its token, or of its certificate, without
  // '/'; of a unix socket "uid:NUMBER" of the user; else kNobodyKnown. Empty: it came through no connection. Any
  // thread.
  std::string principal_of(const grpc::CallbackServerContext& context) const;

  // Whether the caller of a call may also make the call `path`. One through no connection may make every call. Any
  // thread.
  bool may_also(const grpc::CallbackServerContext& context, const std::string& path) const;

  // Who a call that may be made is from. A call through no connection is the operator's. Unauthenticated: what it came
  // with is no longer valid. Any thread.
  absl::StatusOr<Reader> view_of(const grpc::CallbackServerContext& context) const;

  // Looks again now and then whether the caller of a call that stays open may still make it, as check() would and as of
  // the same team. Once it may not, `end` is called once, on another thread, with the error; not after the result is
  // destroyed. A call that takes longer than `longest` ends likewise. nullptr: it came through no connection.
  std::unique_ptr<OpenCalls::Held> hold(const grpc::CallbackServerContext& context, const std::string& path,
                                        std::chrono::seconds longest, OpenCalls::End end) const;

  // The same for a request that comes by HTTP and stands for a call of `path`; errors as check().
  absl::StatusOr<Reader> admit(const std::string& path, const Connection& connection, const Shown& shown);

  // The machine of the workers of a principal, as a row says; empty: none does. Any thread.
  std::string machine_of(const std::string& principal) const;

  // What holds for a team; the first values of TeamRules if it has no row. Any thread.
  TeamRules rules_of(const std::string& team) const;

  // The principal of a caller of this name: '/' separates it from the rest of a worker's name, '#' from its process.
  static std::string as_principal(const std::string& name);

  // Whether a principal can make no call any more. FailedPrecondition: it can, and what to do. Ok also for one that has
  // neither a token nor a certificate, which only who runs it can stop.
  absl::Status is_revoked(const std::string& principal) const;

  // Whether a row says that the certificate of this principal has no role: nothing that it made is to be taken. Any
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
  std::unordered_map<std::string, Roles> rules_;  // by path
  std::mutex mutex_;                              // guards the rest: how much was written down in the current second
  int64_t second_ = 0, written_ = 0, left_out_ = 0;
  mutable OpenCalls open_calls_;  // last: its thread calls the rest
};

}  // namespace wl
