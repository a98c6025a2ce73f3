// The ways into a server: a connection that the listener took goes in by the door of its caller, so that the guard of
// the door (server/services/authorizer.h) knows who makes a call.
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

  // Gives a connection to the server, which owns it from then on. One thread.
  void take(int fd);

 private:
  struct One {
    std::shared_ptr<Connection> connection;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> in;
  };

  One& door_of(int fd);
  One& give_door(uid_t uid);  // the next one that nobody has

  const Door kind_;
  std::vector<One> doors_;          // of a unix socket: one for each user, and the last for those beyond
  std::map<int64_t, size_t> used_;  // door by uid
};

}  // namespace wl
