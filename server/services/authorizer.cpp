#include "server/services/authorizer.h"

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/base/names.h"
#include "proto/log.h"
#include "proto/rpc.h"

namespace wl {
namespace {

// Whether the coordinator is up is for everybody to ask.
constexpr const char kHealth[] = "/grpc.health.v1.Health/";
constexpr const char kToken[] = "authorization";
constexpr std::string_view kBearer = "Bearer ";
constexpr unsigned kReadTlsFilesAgainS = 1;
constexpr int64_t kMostLinesPerSecond = 50;  // about refused calls
constexpr size_t kShownName = 256;

std::string text_of(grpc::string_ref one) {
  return {one.data(), one.size()};
}

// The names in a valid certificate of the caller: alternative names, then the common name.
std::vector<std::string> names_in(const grpc::AuthContext& context) {
  std::vector<std::string> names;
  if (!context.IsPeerAuthenticated()) return names;
  for (const char* property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME})
    for (const grpc::string_ref& name : context.FindPropertyValues(property)) names.push_back(text_of(name));
  return names;
}

const TokenRow* row_of(const Callers& callers, std::string_view bearer) {
  return bearer.starts_with(kBearer) ? callers.find_token(bearer.substr(kBearer.size())) : nullptr;
}

constexpr const char kConnectedBy[] = "warploom_connected_by";  // property of a connection: its door, and of which user

std::string text_of(const Connection& connection) {
  return cat(static_cast<int>(connection.door), " ", connection.uid.load(std::memory_order_acquire));
}

// False: the call came through no connection.
bool read_connection(const grpc::AuthContext& context, Connection* out) {
  const std::vector<grpc::string_ref> found = context.FindPropertyValues(kConnectedBy);
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(found.empty() ? "" : text_of(found.front()), absl::MaxSplits(' ', 1));
  int door = 0;
  int64_t uid = 0;
  if (!absl::SimpleAtoi(parts.first, &door) || !absl::SimpleAtoi(parts.second, &uid)) return false;
  out->door = static_cast<Door>(door);
  out->uid = uid;
  return true;
}

template <typename Metadata>
Shown shown_by(const Metadata& metadata, const grpc::AuthContext* context, Door door) {
  Shown shown;
  if (const auto found = metadata.find(kToken); found != metadata.end()) shown.token = text_of(found->second);
  if (door == Door::kTls && context != nullptr) shown.names = names_in(*context);
  return shown;
}

// gRPC calls it with every call of a connection, on its own threads, and answers a call that is refused itself.
class DoorGuard final : public grpc::AuthMetadataProcessor {
 public:
  DoorGuard(Authorizer* authorizer, std::shared_ptr<const Connection> connection)
      : authorizer_(authorizer), connection_(std::move(connection)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    note_connection(context);
    const auto path = metadata.find(":path");
    return to_grpc(authorizer_->check(path == metadata.end() ? std::string() : text_of(path->second), *connection_,
                                      shown_by(metadata, context, connection_->door)));
  }

 private:
  // The services read it in the context, which all calls of a connection share. It is written before the first of them
  // gets past this and never again, so that nobody writes while another reads.
  void note_connection(grpc::AuthContext* context) {
    const std::lock_guard lock(mutex_);
    if (context->FindPropertyValues(kConnectedBy).empty()) context->AddProperty(kConnectedBy, text_of(*connection_));
  }

  std::mutex mutex_;
  Authorizer* const authorizer_;
  const std::shared_ptr<const Connection> connection_;
};

std::shared_ptr<grpc::ServerCredentials> tls_credentials(const TlsFiles& files) {
  using grpc::experimental::FileWatcherCertificateProvider;
  const bool certificates = !files.ca.empty();
  grpc::experimental::TlsServerCredentialsOptions options(
      certificates
          ? std::make_shared<FileWatcherCertificateProvider>(files.key, files.cert, files.ca, kReadTlsFilesAgainS)
          : std::make_shared<FileWatcherCertificateProvider>(files.key, files.cert, kReadTlsFilesAgainS));
  options.watch_identity_key_cert_pairs();
  if (certificates) options.watch_root_certs();
  // Who has none may have a token. Who shows one must show a valid one.
  options.set_cert_request_type(certificates ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                             : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

// The role that a certificate names itself: spiffe://TRUST-DOMAIN/warploom/ROLE, or with further parts.
Roles role_in(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (parts.size() < 5 || parts[0] != "spiffe:" || !parts[1].empty() || parts[3] != "warploom") return kNoRole;
  const auto role = parse_roles(parts[4]);
  return role.ok() ? *role : kNoRole;
}

// The name of which Authorizer::as_principal made this.
std::string name_of_principal(const std::string& principal) {
  return absl::StrReplaceAll(principal, {{"%2F", "/"}, {"%25", "%"}, {"%23", "#"}});
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
  for (RpcRule& rule : rpc_rules()) out->rules_.emplace(std::move(rule.path), rule.roles);
  return out;
}

std::shared_ptr<grpc::ServerCredentials> Authorizer::guarded(std::shared_ptr<const Connection> connection) {
  // Local credentials exchange no bytes, so that a plaintext channel can talk to them. Unlike plaintext ones they ask
  // the guard.
  auto credentials =
      connection->door == Door::kTls
          ? tls_credentials(options_.tls)
          : grpc::experimental::LocalServerCredentials(connection->door == Door::kUnix ? UDS : LOCAL_TCP);
  credentials->SetAuthMetadataProcessor(std::make_shared<DoorGuard>(this, std::move(connection)));
  return credentials;
}

absl::Status Authorizer::check(const std::string& path, const Connection& connection, const Shown& shown) {
  const auto rule = rules_.find(path);
  if (rule == rules_.end()) {
    if (path.starts_with(kHealth)) return absl::OkStatus();
    return absl::UnimplementedError(cat("this coordinator has no call ", path, "; is it older than its caller?"));
  }
  const std::string call = path.substr(path.rfind('/') + 1);
  const absl::StatusOr<Caller> caller = caller_of(connection, shown);
  absl::Status outcome = caller.status();
  if (caller.ok() && (caller->row.roles & rule->second) == 0) {
    outcome = absl::PermissionDeniedError(cat(call, " needs the role ", alternatives(rule->second), "; ", caller->name,
                                              " has ", print_roles(caller->row.roles), ": ", caller->remedy));
  }
  if (!outcome.ok() || rule->second == kOperator)
    write_down(call, connection, caller.ok() ? caller->name : "nobody known", outcome);
  return outcome;
}

std::string Authorizer::as_principal(const std::string& name) {
  return absl::StrReplaceAll(name, {{"/", "%2F"}, {"%", "%25"}, {"#", "%23"}});
}

std::string Authorizer::principal_of(const grpc::CallbackServerContext& context) const {
  // Only connections by TLS have names in their context.
  const Shown shown = shown_by(context.client_metadata(), context.auth_context().get(), Door::kTls);
  if (shown.token) {
    const std::shared_ptr<const Callers> callers = callers_->now();
    const TokenRow* const row = row_of(*callers, *shown.token);
    return row == nullptr ? "" : as_principal(row->name);
  }
  return shown.names.empty() ? "" : as_principal(fitted(shown.names.front(), TextKind::kName, kShownName));
}

absl::StatusOr<Reader> Authorizer::view_of(const grpc::CallbackServerContext& context) const {
  const std::shared_ptr<const grpc::AuthContext> about = context.auth_context();
  Connection connection;
  if (about == nullptr || !read_connection(*about, &connection)) return Reader{.every = true};
  WL_ASSIGN_OR_RETURN(const Caller caller,
                      caller_of(connection, shown_by(context.client_metadata(), about.get(), connection.door)));
  return reader_of(caller);
}

absl::StatusOr<Reader> Authorizer::admit(const std::string& path, const Connection& connection, const Shown& shown) {
  WL_RETURN_IF_ERROR(check(path, connection, shown));
  WL_ASSIGN_OR_RETURN(const Caller caller, caller_of(connection, shown));
  return reader_of(caller);
}

Reader Authorizer::reader_of(const Caller& caller) {
  return {.team = caller.row.team, .every = (caller.row.roles & kOperator) != 0};
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
  const std::string name = name_of_principal(principal);
  const auto row = callers->certificates.find(name);
  if ((row == callers->certificates.end() ? role_in(name) : row->second.roles) == kNoRole) return absl::OkStatus();
  return absl::FailedPreconditionError(
      cat("the certificate of ", name, " is still valid here: have the line `cert ", name,
          " none` in the file of --callers, so that it brings nothing more, and revoke "
          "it then"));
}

bool Authorizer::bars(const std::string& principal) const {
  const std::shared_ptr<const Callers> callers = callers_->now();
  const auto row = callers->certificates.find(name_of_principal(principal));
  return row != callers->certificates.end() && row->second.roles == kNoRole;
}

absl::StatusOr<Authorizer::Caller> Authorizer::caller_of(const Connection& connection, const Shown& shown) const {
  const std::shared_ptr<const Callers> callers = callers_->now();
  // Whoever shows a token asks to be what it says, and no more.
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
      return by_certificate(*callers, shown.names);
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

absl::StatusOr<Authorizer::Caller> Authorizer::by_certificate(const Callers& callers,
                                                              const std::vector<std::string>& names) {
  if (names.empty()) {
    return absl::UnauthenticatedError(
        "this caller shows neither a certificate nor a token: say --tls-cert and --tls-key, or --token-file");
  }
  // Rows decide before what a certificate says of itself: a row without a role revokes it.
  CallerRow by_row, by_name;
  bool has_row = false;
  for (const std::string& name : names) {
    by_name.roles |= role_in(name);
    const auto row = callers.certificates.find(name);
    if (row == callers.certificates.end()) continue;
    has_row = true;
    by_row.roles |= row->second.roles;
    if (by_row.team.empty()) by_row.team = row->second.team;
  }
  const std::string name = fitted(names.front(), TextKind::kName, kShownName);
  return Caller{.name = cat("the certificate of ", name),
                .row = has_row ? by_row : by_name,
                .remedy = cat("call with a certificate of spiffe://.../warploom/ROLE, or have the line `cert ", name,
                              " ROLE` added to the file of --callers")};
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
