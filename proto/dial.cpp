#include "proto/dial.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "files/read.h"
#include "proto/rpc.h"

namespace wl {
namespace {

constexpr unsigned kReadAgainS = 1;  // seconds between checks whether a TLS file has changed
constexpr int64_t kMostTokenBytes = 4096;

absl::StatusOr<std::string> read_token(const std::string& file) {
  const absl::StatusOr<std::string> text = read_file(file, kMostTokenBytes);
  if (!text.ok()) return invalid("--token-file: ", std::string(text.status().message()));
  std::string token(absl::StripAsciiWhitespace(*text));
  for (const char c : token)
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) token.clear();
  if (token.empty()) return invalid("--token-file ", file, ": expected a token, as `warploomd token` prints it");
  return token;
}

// Adds the token to every call. A token file is read anew for every call, so that a new token needs no restart.
class TokenOfCalls final : public grpc::MetadataCredentialsPlugin {
 public:
  TokenOfCalls(std::string file, std::string token) : file_(std::move(file)), token_(std::move(token)) {}
  bool IsBlocking() const override { return false; }
  const char* GetType() const override { return "warploom token"; }
  grpc::string DebugString() override { return GetType(); }
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    const absl::StatusOr<std::string> token = file_.empty() ? token_ : read_token(file_);
    if (!token.ok()) return to_grpc(absl::UnauthenticatedError(token.status().message()));
    metadata->emplace("authorization", "Bearer " + *token);
    return grpc::Status::OK;
  }

 private:
  const std::string file_, token_;
};

std::shared_ptr<grpc::ChannelCredentials> tls_credentials(const TlsFiles& files) {
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      files.cert.empty()
          ? std::make_shared<FileWatcherCertificateProvider>(files.ca, kReadAgainS)
          : std::make_shared<FileWatcherCertificateProvider>(files.key, files.cert, files.ca, kReadAgainS));
  options.watch_root_certs();
  if (!files.cert.empty()) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host == "::1" || host.starts_with("127.");
}

absl::StatusOr<HostPort> parse_listen_address(const std::string& address, bool tls) {
  const size_t colon = address.rfind(':');
  HostPort out;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &out.port) ||
      out.port < 0 || out.port > 65535) {
    return invalid("expected HOST:PORT");
  }
  out.host = address.substr(0, colon);
  if (!tls && !is_loopback(out.host)) {
    return invalid(
        "is reachable from other machines, and nothing goes to them in plain text; say --tls-cert, --tls-key and "
        "--tls-ca, or listen on 127.0.0.1");
  }
  if (out.host.starts_with('[') && out.host.ends_with(']')) out.host = out.host.substr(1, out.host.size() - 2);
  return out;
}

std::string take_token_variable() {
  constexpr const char* kVariable = "WARPLOOM_TOKEN";
  char* const value = std::getenv(kVariable);
  if (value == nullptr) return "";
  std::string token = value;
  // /proc/PID/environ shows the original memory even after unsetenv(), so this memory is overwritten.
  std::memset(value, 0, token.size());
  unsetenv(kVariable);
  return token;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> dial(const std::string& address, const DialOptions& options) {
  const bool path = address.starts_with("unix:"), tls = options.tls.any();
  if (!path && !tls && !is_loopback(address.substr(0, address.rfind(':')))) {
    return invalid("coordinator ", address,
                   ": is on another machine, where nothing goes in plain text; say --tls-ca with the file of its CA");
  }
  if (tls && path) return invalid("coordinator ", address, ": a unix socket has no TLS; leave out --tls-ca");
  if (tls && options.tls.ca.empty())
    return invalid("--tls-cert: expected --tls-ca with it, the file of the CA of the coordinator");
  if (tls) WL_RETURN_IF_ERROR(check_tls_files(options.tls));
  if (!options.token_file.empty()) WL_RETURN_IF_ERROR(read_token(options.token_file).status());
  const bool token = !options.token_file.empty() || !options.token.empty();
  // gRPC sends tokens only over channels with credentials. LocalCredentials do not encrypt, but are accepted.
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      tls     ? tls_credentials(options.tls)
      : token ? grpc::experimental::LocalCredentials(path ? UDS : LOCAL_TCP)
              : grpc::InsecureChannelCredentials();
  if (token) {
    credentials = grpc::CompositeChannelCredentials(
        credentials, grpc::experimental::MetadataCredentialsFromPlugin(
                         std::make_unique<TokenOfCalls>(options.token_file, options.token), GRPC_SECURITY_NONE));
  }
  return grpc::CreateCustomChannel(address, credentials, channel_arguments());
}

absl::Status explained(const absl::Status& status, const std::string& address, const DialOptions& options) {
  // gRPC's message has the words "failed to connect" if no connection could be made, but not if a coordinator is busy.
  const bool unconnected = absl::IsUnavailable(status) && absl::StrContains(status.message(), "failed to connect");
  if (!unconnected || address.starts_with("unix:")) return status;
  const std::string problem = tls_problem(address, options.tls);
  return problem.empty() ? status : absl::UnauthenticatedError(problem);
}

std::string peer_of(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET) {
    const in_addr& four = reinterpret_cast<const sockaddr_in&>(from).sin_addr;
    return {reinterpret_cast<const char*>(&four), sizeof four};
  }
  if (from.ss_family != AF_INET6) return "";
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(from).sin6_addr;
  // Whether the IPv6 address stands for an IPv4 address, which is then its last four bytes.
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&six);
  return {reinterpret_cast<const char*>(six.s6_addr) + (mapped ? 12 : 0), mapped ? size_t{4} : size_t{8}};
}

}  // namespace wl
