// Doors: the connection acceptors of a gRPC server. Every connection that the listener accepts enters the server by the
// door of its caller, so that the door's guard (server/services/authorizer.h) knows who makes a call.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <vector>

#include "server/services/authorizer.h"

namespace wl {

class Doors {
 public:
  // Adds the doors of `kind` to a server that is being built. `authorizer` must outlive the server.
  Doors(Door kind, Authorizer* authorizer, grpc::ServerBuilder* builder);

  // Gives the connection `fd` to the server, which owns it from then on. To be called by one thread only.
  void take(int fd);

 private:
  struct One {
    std::shared_ptr<Connection> connection;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> in;
  };

  One& door_of(int fd);
  One& give_door(uid_t uid);  // gives the user the next door that has no user yet

  const Door kind_;
  std::vector<One> doors_;  // the doors; for a unix socket: one for each user, and the last one for all further users
  std::map<int64_t, size_t> used_;  // index in doors_ of each user's door, by uid
};

}  // namespace wl
