#include "server/services/authorizer.h"

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "proto/log.h"

namespace wl {
namespace {

constexpr const char kHealth[] = "/grpc.health.v1.Health/";  // prefix of calls about health, open to every caller
constexpr std::string_view kBearer = "Bearer ";
constexpr int64_t kMostLinesPerSecond = 50;  // maximum number of log lines about refused calls in a second

// Returns the roles that may call each method, by the method's path. The map is never destroyed, because gRPC's threads
// read it even while the process ends.
const std::unordered_map<std::string, Roles>& roles_by_path() {
  static const auto* const kRoles = [] {
    auto* made = new std::unordered_map<std::string, Roles>;
    for (RpcRule& rule : rpc_rules()) made->emplace(std::move(rule.path), rule.roles);
    return made;
  }();
  return *kRoles;
}

const TokenRow* row_of(const Callers& callers, std::string_view bearer) {
  return bearer.starts_with(kBearer) ? callers.find_token(bearer.substr(kBearer.size())) : nullptr;
}

std::string alternatives(Roles roles) {
  return absl::StrReplaceAll(print_roles(roles), {{", ", " or "}});
}

const char* text_of(Door door) {
  switch (door) {
    case Door::kUnix:
      return "unix";
    case Door::kLoopback:
      return "loopback";
    case Door::kTls:
      return "tls";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Authorizer>> Authorizer::open(const AuthorizerOptions& options) {
  std::unique_ptr<Authorizer> out(new Authorizer);
  out->options_ = options;
  WL_RETURN_IF_ERROR(check_tls_files(options.tls));
  WL_ASSIGN_OR_RETURN(out->callers_, CallersFile::open(options.callers));
  for (const absl::string_view part : absl::StrSplit(options.trust_domains, ',', absl::SkipWhitespace())) {
    const std::string domain(absl::StripAsciiWhitespace(part));
    if (const absl::Status right = check_trust_domain(domain); !right.ok())
      return invalid("--trust-domain: ", std::string(right.message()));
    out->trust_domains_.insert(domain);
  }
  return out;
}

std::shared_ptr<grpc::ServerCredentials> Authorizer::guarded(std::shared_ptr<const Connection> connection) {
  return guarded_credentials(
      std::move(connection), options_.tls,
      [this](const std::string& path, const Connection& by, const Shown& shown) { return check(path, by, shown); });
}

absl::StatusOr<Authorizer::Caller> Authorizer::allowed(const std::string& path, Roles roles,
                                                       const Connection& connection, const Shown& shown) const {
  WL_ASSIGN_OR_RETURN(Caller caller, caller_of(connection, shown));
  if ((caller.row.roles & roles) != 0) return caller;
  return absl::PermissionDeniedError(cat(path.substr(path.rfind('/') + 1), " needs the role ", alternatives(roles),
                                         "; ", caller.name, " has ", print_roles(caller.row.roles), ": ",
                                         caller.remedy));
}

absl::Status Authorizer::check(const std::string& path, const Connection& connection, const Shown& shown) {
  const auto rule = roles_by_path().find(path);
  if (rule == roles_by_path().end()) {
    if (path.starts_with(kHealth)) return absl::OkStatus();
    return absl::UnimplementedError(cat("this coordinator has no call ", path, "; is it older than its caller?"));
  }
  const absl::StatusOr<Caller> caller = allowed(path, rule->second, connection, shown);
  if (!caller.ok() || rule->second == kOperator) {
    const absl::StatusOr<Caller> who = caller.ok() ? caller : caller_of(connection, shown);
    write_down(path.substr(path.rfind('/') + 1), connection, who.ok() ? who->name : "nobody known", caller.status());
  }
  return caller.status();
}

std::unique_ptr<OpenCalls::Held> Authorizer::hold(const grpc::CallbackServerContext& context, const std::string& path,
                                                  std::chrono::seconds longest, OpenCalls::End end) const {
  const std::shared_ptr<const grpc::AuthContext> about = context.auth_context();
  auto connection = std::make_shared<Connection>();
  const auto rule = roles_by_path().find(path);
  if (about == nullptr || rule == roles_by_path().end() || !read_connection(*about, connection.get())) return nullptr;
  const Shown shown = shown_in(context);
  const absl::StatusOr<Caller> first = caller_of(*connection, shown);
  const Reader reader = first.ok() ? reader_of(*first) : Reader{};
  const auto until = std::chrono::steady_clock::now() + longest;
  return open_calls_.hold(
      [=, this, roles = rule->second]() -> absl::Status {
        if (std::chrono::steady_clock::now() > until)
          return absl::DeadlineExceededError(cat("the call takes more than ", longest.count(), " s: call again"));
        WL_ASSIGN_OR_RETURN(const Caller now, allowed(path, roles, *connection, shown));
        const Reader still = reader_of(now);
        if (still.team == reader.team && still.every == reader.every) return absl::OkStatus();
        return absl::UnauthenticatedError(cat(now.name, " is of another team since this call began: call again"));
      },
      std::move(end));
}

std::string Authorizer::as_principal(const std::string& name) {
  return absl::StrReplaceAll(name, {{"/", "%2F"}, {"%", "%25"}, {"#", "%23"}});
}

std::string Authorizer::principal_of(const grpc::CallbackServerContext& context) const {
  const std::shared_ptr<const grpc::AuthContext> about = context.auth_context();
  Connection connection;
  if (about == nullptr || !read_connection(*about, &connection)) return "";
  const Shown shown = shown_in(context);
  if (shown.token) {
    const std::shared_ptr<const Callers> callers = callers_->now();
    const TokenRow* const row = row_of(*callers, *shown.token);
    return row == nullptr ? std::string(kNobodyKnown) : as_principal(row->name);
  }
  if (shown.certificate && !shown.certificate->uri.empty()) return as_principal(shown.certificate->uri);
  if (connection.door == Door::kUnix && connection.uid != Connection::kUnknown)
    return cat(kUserPrincipal, connection.uid.load());
  return std::string(kNobodyKnown);
}

bool Authorizer::may_also(const grpc::CallbackServerContext& context, const std::string& path) const {
  const std::shared_ptr<const grpc::AuthContext> about = context.auth_context();
  Connection connection;
  if (about == nullptr || !read_connection(*about, &connection)) return true;
  const auto rule = roles_by_path().find(path);
  return rule != roles_by_path().end() && allowed(path, rule->second, connection, shown_in(context)).ok();
}

absl::StatusOr<Reader> Authorizer::view_of(const grpc::CallbackServerContext& context) const {
  const std::shared_ptr<const grpc::AuthContext> about = context.auth_context();
  Connection connection;
  if (about == nullptr || !read_connection(*about, &connection)) return Reader{.every = true};
  WL_ASSIGN_OR_RETURN(const Caller caller, caller_of(connection, shown_in(context)));
  return reader_of(caller);
}

absl::StatusOr<Reader> Authorizer::admit(const std::string& path, const Connection& connection, const Shown& shown) {
  WL_RETURN_IF_ERROR(check(path, connection, shown));
  WL_ASSIGN_OR_RETURN(const Caller caller, caller_of(connection, shown));
  return reader_of(caller);
}

std::optional<Reader> Authorizer::admit_quietly(const std::string& path, const Connection& connection,
                                                const Shown& shown) const {
  const auto rule = roles_by_path().find(path);
  if (rule == roles_by_path().end()) return std::nullopt;
  const absl::StatusOr<Caller> caller = allowed(path, rule->second, connection, shown);
  return caller.ok() ? std::optional(reader_of(*caller)) : std::nullopt;
}

Reader Authorizer::reader_of(const Caller& caller) {
  return {.team = caller.row.team, .every = (caller.row.roles & kOperator) != 0};
}

std::string Authorizer::machine_of(const std::string& principal) const {
  return callers_->now()->machine_of(shown_name(principal));
}

TeamRules Authorizer::rules_of(const std::string& team) const {
  const std::shared_ptr<const Callers> callers = callers_->now();
  const auto rules = callers->teams.find(team);
  return rules == callers->teams.end() ? TeamRules() : rules->second;
}

absl::Status Authorizer::is_revoked(const std::string& principal) const {
  const std::shared_ptr<const Callers> callers = callers_->now();
  for (const TokenRow& row : callers->tokens) {
    if (as_principal(row.name) != principal || row.until_unix_s <= time(nullptr)) continue;
    return absl::FailedPreconditionError(cat("the token ", row.name,
                                             " is still known: take its line out of the file of "
                                             "--callers, so that it brings nothing more, and revoke it then"));
  }
  const std::string name = shown_name(principal);
  const auto row = callers->certificates.find(name);
  if ((row == callers->certificates.end() ? role_in(name) : row->second.roles) == kNoRole) return absl::OkStatus();
  return absl::FailedPreconditionError(
      cat("the certificate of ", name, " is still valid here: have the line `cert ", name,
          " none` in the file of --callers, so that it brings nothing more, and revoke "
          "it then"));
}

bool Authorizer::bars(const std::string& principal) const {
  const std::shared_ptr<const Callers> callers = callers_->now();
  const auto row = callers->certificates.find(shown_name(principal));
  return row != callers->certificates.end() && row->second.roles == kNoRole;
}

absl::StatusOr<Authorizer::Caller> Authorizer::caller_of(const Connection& connection, const Shown& shown) const {
  const std::shared_ptr<const Callers> callers = callers_->now();
  // A token overrides everything else: a caller that shows a token has the token's roles and no others.
  if (shown.token) return by_token(*callers, *shown.token);
  switch (connection.door) {
    case Door::kUnix:
      return by_user(*callers, connection.uid.load(std::memory_order_acquire));
    case Door::kLoopback:
      return Caller{.name = "a caller over TCP from this machine, who is not known,",
                    .row = callers->loopback,
                    .remedy =
                        "call over a unix socket of the coordinator (--listen unix:PATH), as the user that runs "
                        "it, or with a token (`warploomd token`)"};
    case Door::kTls:
      return by_certificate(*callers, shown.certificate);
  }
  return absl::InternalError("a connection of no kind");
}

absl::StatusOr<Authorizer::Caller> Authorizer::by_token(const Callers& callers, const std::string& token) {
  if (!token.starts_with(kBearer)) return absl::UnauthenticatedError("authorization: expected Bearer and a token");
  const TokenRow* const row = row_of(callers, token);
  if (row == nullptr) {
    return absl::UnauthenticatedError(
        "this token is not, or no longer, known here: ask whoever runs the coordinator for one (`warploomd token`)");
  }
  if (row->until_unix_s <= time(nullptr)) {
    return absl::UnauthenticatedError(cat("the token ", row->name, " has expired at ", print_time(row->until_unix_s),
                                          ": ask whoever runs the coordinator for a new one (`warploomd token`)"));
  }
  return Caller{.name = cat("the token ", row->name),
                .row = row->who,
                .remedy = "call with a token that has such a role (`warploomd token`), or without one"};
}

// Returns the role in the name of a certificate, spiffe://DOMAIN/warploom/ROLE, perhaps with further parts; kNoRole if
// the name has no role or DOMAIN is not trusted.
Roles Authorizer::role_in(const std::string& uri) const {
  const SpiffeParts parts = check_spiffe_id(uri).ok() ? spiffe_parts(uri) : SpiffeParts();
  const std::vector<std::string> path = absl::StrSplit(parts.path, '/');
  if (!trust_domains_.contains(parts.domain) || path.size() < 2 || path[0] != "warploom") return kNoRole;
  const auto role = parse_roles(path[1]);
  return role.ok() ? *role : kNoRole;
}

absl::StatusOr<Authorizer::Caller> Authorizer::by_certificate(const Callers& callers,
                                                              const std::optional<PeerIdentity>& certificate) const {
  if (!certificate) {
    return absl::UnauthenticatedError(
        "this caller shows neither a certificate nor a token: say --tls-cert and --tls-key, or --token-file");
  }
  if (certificate->uri.empty()) {
    return absl::UnauthenticatedError(
        cat("the certificate of this caller names nobody, because ", certificate->problem,
            "; other fields are not looked at: call with one whose only URI name is spiffe://DOMAIN/warploom/ROLE"));
  }
  const std::string& name = certificate->uri;
  if (certificate->until_unix_s <= time(nullptr)) {
    return absl::UnauthenticatedError(cat("the certificate of ", name, " has expired at ",
                                          print_time(certificate->until_unix_s), ": call with a new one"));
  }
  // A row of the callers file overrides the role in the certificate's name: a row with no role revokes the certificate.
  const auto row = callers.certificates.find(name);
  const std::string domain = spiffe_parts(name).domain;
  return Caller{.name = cat("the certificate of ", name),
                .row = row != callers.certificates.end() ? row->second : CallerRow{.roles = role_in(name), .team = {}},
                .remedy = cat("call with a certificate of spiffe://DOMAIN/warploom/ROLE",
                              trust_domains_.contains(domain)
                                  ? ""
                                  : cat(", whose DOMAIN is one of --trust-domain, which ", domain, " is not"),
                              ", or have the line `cert ", name, " ROLE` added to the file of --callers")};
}

Authorizer::Caller Authorizer::by_user(const Callers& callers, int64_t uid) const {
  Caller caller;
  caller.name = uid == Connection::kUnknown ? "a user of this machine" : cat("user ", uid);
  caller.remedy = cat("call as the user that runs the coordinator, or have the line `user ",
                      uid == Connection::kUnknown ? "*" : cat(uid), " ROLE` added to the file of --callers");
  const auto row = callers.users.find(uid);
  caller.row = row == callers.users.end() ? callers.other_users : row->second;
  if (uid != Connection::kUnknown && (uid == options_.owner || uid == 0)) caller.row.roles = kEveryRole;
  return caller;
}

void Authorizer::write_down(const std::string& call, const Connection& connection, const std::string& who,
                            const absl::Status& outcome) {
  if (!outcome.ok()) {
    const std::lock_guard lock(mutex_);
    const int64_t now = time(nullptr);
    if (now != second_) {
      if (left_out_ > 0)
        log_audit(spdlog::level::warn, nlohmann::ordered_json{{"refused", left_out_}, {"left_out", true}}.dump());
      second_ = now;
      written_ = left_out_ = 0;
    }
    if (++written_ > kMostLinesPerSecond) {
      ++left_out_;
      return;
    }
  }
  nlohmann::ordered_json line = {
      {"time", print_time(time(nullptr))},
      {"call", call},
      {"who", who},
      {"by", text_of(connection.door)},
      {"outcome", outcome.ok() ? "allowed" : "refused"},
  };
  if (!outcome.ok()) line["why"] = std::string(outcome.message());
  log_audit(outcome.ok() ? spdlog::level::info : spdlog::level::warn,
            line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace wl
