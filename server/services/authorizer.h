// Who may call what, decided in one place for every call of every service: gRPC asks the guard of a connection about
// each call before the call reaches a service. Which roles a call needs is said in its .proto (proto/roles.h).
//
// Calls of an in-process channel (embedded mode) come through no connection. They are the operator's, and not checked.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>

#include "proto/roles.h"

namespace wl {

// How connections come in.
enum class Door {
  kUnix,      // by a unix socket: the kernel says which user connected
  kLoopback,  // by TCP from this machine: any of its users
};

// What the connection says of its caller.
struct Connection {
  static constexpr int64_t kUnknown = -1;

  Door door = Door::kUnix;
  std::atomic<int64_t> uid = kUnknown;  // of Door::kUnix: who connected
};

class Authorizer {
 public:
  // `owner` is the user that runs the coordinator. He and root have every role on a unix socket.
  explicit Authorizer(int64_t owner);

  // Credentials for connections of one kind, by which every call is checked. `connection` says what is known of their
  // callers, and must not change once one of them is taken.
  std::shared_ptr<grpc::ServerCredentials> guarded(std::shared_ptr<const Connection> connection) const;

  // Whether a call of `path` may be made. PermissionDenied: it is for other roles, and what to do. Unimplemented: there
  // is no such call. Any thread.
  absl::Status check(const std::string& path, const Connection& connection) const;

 private:
  struct Caller {
    std::string name;  // in messages: "user 1000"
    Roles roles = kNoRole;
    const char* remedy = "";  // what to do when the roles do not suffice
  };
  Caller caller_of(const Connection& connection) const;

  const int64_t owner_;
  std::unordered_map<std::string, Roles> rules_;  // by path
};

}  // namespace wl
