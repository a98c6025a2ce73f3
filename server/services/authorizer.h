// Decides for every call of every service whether its caller may make it: gRPC asks the guard of a connection about
// each call before the call reaches a service. The .proto of a call says which roles may make it (proto/roles.h). The
// roles of a caller follow from its connection, certificate or token.
//
// Calls of an in-process channel (embedded mode) come through no connection. They count as the operator's and are not
// checked.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
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
  int64_t owner = Connection::kUnknown;  // uid of the user that runs the coordinator
  std::string callers;                   // name of the callers file (server/services/callers.h); empty: no such file
  // The trust domains whose certificates may carry a role in their name, spiffe://DOMAIN/warploom/ROLE; separated by
  // commas.
  std::string trust_domains;
  TlsFiles tls;  // files of this server's certificate and its key, for Door::kTls
};

class Authorizer {
 public:
  // Reads the files that the options name. InvalidArgument, FailedPrecondition: a file or trust domain cannot be used;
  // the message says why.
  static absl::StatusOr<std::unique_ptr<Authorizer>> open(const AuthorizerOptions& options);

  // Returns gRPC credentials for connections of one kind, by which every call is checked. `connection` describes their
  // callers and must not change after a connection was accepted. The authorizer must outlive the server.
  std::shared_ptr<grpc::ServerCredentials> guarded(std::shared_ptr<const Connection> connection);

  // Checks whether a call of the method `path` is allowed. PermissionDenied: the call needs another role.
  // Unauthenticated: the caller is not known. Both messages say what to do. Unimplemented: there is no such method.
  // Refused calls, and calls that only operators may make, leave a line in the log. Thread-safe.
  absl::Status check(const std::string& path, const Connection& connection, const Shown& shown);

  // Returns the principal (compiler/base/job.h) of the caller, under which its workers are registered: the name of its
  // token or certificate as as_principal() writes it, "uid:NUMBER" for a user over a unix socket, else kNobodyKnown.
  // Empty: the call came through no connection. Thread-safe.
  std::string principal_of(const grpc::CallbackServerContext& context) const;

  // Whether the caller of one call may also call the method `path`. A caller without a connection may call every
  // method. Thread-safe.
  bool may_also(const grpc::CallbackServerContext& context, const std::string& path) const;

  // Returns what the caller of a permitted call may see. A caller without a connection sees everything.
  // Unauthenticated: the caller's credentials are no longer valid. Thread-safe.
  absl::StatusOr<Reader> view_of(const grpc::CallbackServerContext& context) const;

  // Checks a call that stays open every half second: its caller must still be allowed to make it, as by check(), and be
  // of the same team. Otherwise, or once the call has taken longer than `longest`, `end` is called once with the error,
  // on another thread, and never after the result is destroyed. nullptr: the call came through no connection.
  std::unique_ptr<OpenCalls::Held> hold(const grpc::CallbackServerContext& context, const std::string& path,
                                        std::chrono::seconds longest, OpenCalls::End end) const;

  // Checks an HTTP request as if it were a call of `path`, with the errors of check(). Returns what its caller may see.
  absl::StatusOr<Reader> admit(const std::string& path, const Connection& connection, const Shown& shown);

  // As admit(), for callers who need not show anything: nullopt instead of an error, and refusals leave no line in the
  // log.
  std::optional<Reader> admit_quietly(const std::string& path, const Connection& connection, const Shown& shown) const;

  // Returns the machine that the callers file names for a principal's workers; empty: it has no such row. Thread-safe.
  std::string machine_of(const std::string& principal) const;

  // Returns the rules of a team; if the team has no row, the defaults of TeamRules. Thread-safe.
  TeamRules rules_of(const std::string& team) const;

  // Returns the principal of the caller with this name. The principal has neither '/' nor '#': '/' separates the
  // principal from the rest of a worker's name, and '#' separates that name from the number of the worker's process.
  static std::string as_principal(const std::string& name);

  // Returns OK if a principal can make no call any more. FailedPrecondition: it still can; the message says what to do.
  // Also OK for a principal without token or certificate, which only the user that runs its workers can stop.
  absl::Status is_revoked(const std::string& principal) const;

  // Whether the callers file gives the certificate of this principal no role, so that nothing of the principal's is
  // accepted. Thread-safe.
  bool bars(const std::string& principal) const;

 private:
  struct Caller {
    std::string name;  // the caller in messages, such as "user 1000"
    CallerRow row;
    std::string remedy;  // what to do if the caller's roles do not suffice
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
  // Declared last, so destroyed first: its thread uses the other members.
  mutable OpenCalls open_calls_;
};

}  // namespace wl
