// The roles of callers, and which roles may make which calls: the option `access` of every rpc
// (proto/warploom/v1/access.proto) as plain data. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/status.h"

namespace wl {

// A set of roles, each of which is one bit.
using Roles = uint32_t;
inline constexpr Roles kNoRole = 0, kClient = 1, kWorker = 2, kOperator = 4, kCache = 8, kEveryRole = 15;

// Returns a text such as "client, operator"; "none" for no role.
std::string print_roles(Roles roles);
// Parses a text that print_roles() returns, with or without blanks. InvalidArgument: an item is not a role.
absl::StatusOr<Roles> parse_roles(const std::string& text);

struct RpcRule {
  std::string path;       // path of the rpc as gRPC sends it: "/warploom.v1.Admin/Drain"
  Roles roles = kNoRole;  // the roles that may call the rpc: a caller needs one of them
};

// Returns one rule for every rpc of warploom.v1.
std::vector<RpcRule> rpc_rules();

}  // namespace wl
