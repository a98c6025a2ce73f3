#include "server/doors.h"

#include <sys/socket.h>
#include <unistd.h>

#include <set>

namespace wl {
namespace {

// How many users, besides the user of this process and root, get a door (connection acceptor) of their own on a unix
// socket; the user of this process and root have doors from the start. The number is fixed, since all doors are made
// together with the server and the user of a door never changes. All further users share the last door, as unknown
// users.
constexpr size_t kMostUsers = 16;

std::set<uid_t> operators() {
  return {geteuid(), 0};
}

}  // namespace

Doors::Doors(Door kind, Authorizer* authorizer, grpc::ServerBuilder* builder)
    : kind_(kind), doors_(kind == Door::kUnix ? operators().size() + kMostUsers + 1 : 1) {
  for (One& one : doors_) {
    one.connection = std::make_shared<Connection>();
    one.connection->door = kind;
    one.in = builder->experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, authorizer->guarded(one.connection));
  }
  if (kind_ != Door::kUnix) return;
  for (const uid_t uid : operators()) give_door(uid);
}

Doors::One& Doors::give_door(uid_t uid) {
  One& next = doors_[used_.size()];
  next.connection->uid.store(uid, std::memory_order_release);
  used_.emplace(uid, used_.size());
  return next;
}

void Doors::take(int fd) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = fd;
  door_of(fd).in->HandleNewConnection(&connection);
}

Doors::One& Doors::door_of(int fd) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (kind_ != Door::kUnix || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return doors_.back();
  const auto found = used_.find(peer.uid);
  if (found != used_.end()) return doors_[found->second];
  return used_.size() + 1 == doors_.size() ? doors_.back() : give_door(peer.uid);
}

}  // namespace wl
