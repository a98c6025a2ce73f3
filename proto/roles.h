// The roles of callers, and which of them may make which call: the option `access` of every rpc
// (proto/warploom/v1/access.proto) as plain data. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/status.h"

namespace wl {

// A set of roles.
using Roles = uint32_t;
inline constexpr Roles kNoRole = 0, kClient = 1, kWorker = 2, kOperator = 4, kCache = 8, kEveryRole = 15;

// "client, operator"; "none" for no role.
std::string print_roles(Roles roles);
// Reads what print_roles prints, with or without blanks. InvalidArgument names what is no role.
absl::StatusOr<Roles> parse_roles(const std::string& text);

struct RpcRule {
  std::string path;       // as it goes over the wire: "/warploom.v1.Admin/Drain"
  Roles roles = kNoRole;  // who has any of them may call
};

// Returns one rule for every rpc of warploom.v1.
std::vector<RpcRule> rpc_rules();

}  // namespace wl
