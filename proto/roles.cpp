#include "proto/roles.h"

#include <google/protobuf/descriptor.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "proto/protocol.h"
#include "warploom/v1/access.pb.h"

namespace wl {
namespace {

namespace pb = ::google::protobuf;
namespace v1 = ::warploom::v1;

struct RoleRow {
  Roles role;
  const char* name;
  v1::Access::Role on_wire;
};

constexpr RoleRow kRoles[] = {
    {kClient, "client", v1::Access::CLIENT},
    {kWorker, "worker", v1::Access::WORKER},
    {kOperator, "operator", v1::Access::OPERATOR},
    {kCache, "cache", v1::Access::CACHE},
};

Roles roles_of(const pb::MethodDescriptor& method) {
  Roles roles = kNoRole;
  for (const int on_wire : method.options().GetExtension(v1::access).roles()) {
    for (const RoleRow& row : kRoles) roles |= row.on_wire == on_wire ? row.role : kNoRole;
  }
  return roles;
}

}  // namespace

std::string print_roles(Roles roles) {
  std::string text;
  for (const RoleRow& row : kRoles) {
    if ((roles & row.role) != 0) append(&text, text.empty() ? "" : ", ", row.name);
  }
  return text.empty() ? "none" : text;
}

absl::StatusOr<Roles> parse_roles(const std::string& text) {
  if (text == "none") return kNoRole;
  Roles roles = kNoRole;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const absl::string_view name = absl::StripAsciiWhitespace(item);
    Roles found = kNoRole;
    for (const RoleRow& row : kRoles) found |= name == row.name ? row.role : kNoRole;
    if (found == kNoRole)
      return invalid("expected client, worker, operator, cache, several of them with commas, or none; found \"", text,
                     "\"");
    roles |= found;
  }
  return roles;
}

std::vector<RpcRule> rpc_rules() {
  std::vector<RpcRule> rules;
  for (const pb::FileDescriptor* file : protocol_files()) {
    for (int i = 0; i < file->service_count(); ++i) {
      const pb::ServiceDescriptor& service = *file->service(i);
      for (int k = 0; k < service.method_count(); ++k) {
        const pb::MethodDescriptor& method = *service.method(k);
        rules.push_back({cat("/", service.full_name(), "/", method.name()), roles_of(method)});
      }
    }
  }
  return rules;
}

}  // namespace wl
