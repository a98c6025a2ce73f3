#include "server/services/authorizer.h"

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>

#include "proto/rpc.h"

namespace wl {
namespace {

// Whether the coordinator is up is for everybody to ask.
constexpr const char kHealth[] = "/grpc.health.v1.Health/";

// gRPC calls it with every call of a connection, on its own threads, and answers a call that is refused itself.
class DoorGuard final : public grpc::AuthMetadataProcessor {
 public:
  DoorGuard(const Authorizer* authorizer, std::shared_ptr<const Connection> connection)
      : authorizer_(authorizer), connection_(std::move(connection)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata*, OutputMetadata*) override {
    const auto path = metadata.find(":path");
    return to_grpc(authorizer_->check(
        path == metadata.end() ? "" : std::string(path->second.data(), path->second.size()), *connection_));
  }

 private:
  const Authorizer* const authorizer_;
  const std::shared_ptr<const Connection> connection_;
};

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

Authorizer::Authorizer(int64_t owner) : owner_(owner) {
  for (RpcRule& rule : rpc_rules()) rules_.emplace(std::move(rule.path), rule.roles);
}

std::shared_ptr<grpc::ServerCredentials> Authorizer::guarded(std::shared_ptr<const Connection> connection) const {
  // Local credentials exchange no bytes, so that a plaintext channel can talk to them. Unlike plaintext ones they ask
  // the guard.
  auto credentials = grpc::experimental::LocalServerCredentials(connection->door == Door::kUnix ? UDS : LOCAL_TCP);
  credentials->SetAuthMetadataProcessor(std::make_shared<DoorGuard>(this, std::move(connection)));
  return credentials;
}

absl::Status Authorizer::check(const std::string& path, const Connection& connection) const {
  const auto rule = rules_.find(path);
  if (rule == rules_.end()) {
    if (path.starts_with(kHealth)) return absl::OkStatus();
    return absl::UnimplementedError(cat("this coordinator has no call ", path, "; is it older than its caller?"));
  }
  const Caller caller = caller_of(connection);
  if ((caller.roles & rule->second) != 0) return absl::OkStatus();
  return absl::PermissionDeniedError(cat(name_of(path), " is for the roles ", print_roles(rule->second), "; ",
                                         caller.name, " has ", print_roles(caller.roles), ": ", caller.remedy));
}

Authorizer::Caller Authorizer::caller_of(const Connection& connection) const {
  switch (connection.door) {
    case Door::kUnix: {
      const int64_t uid = connection.uid.load(std::memory_order_acquire);
      const bool own = uid != Connection::kUnknown && (uid == owner_ || uid == 0);
      return {.name = uid == Connection::kUnknown ? "a user of this machine" : cat("user ", uid),
              .roles = own ? kEveryRole : kNoRole,
              .remedy = "call as the user that runs the coordinator"};
    }
    case Door::kLoopback:
      return {.name = "a caller over TCP from this machine, who is not known,",
              .roles = kClient | kWorker,
              .remedy = "call over a unix socket of the coordinator (--listen unix:PATH), as the user that runs it"};
  }
  return {};
}

}  // namespace wl
