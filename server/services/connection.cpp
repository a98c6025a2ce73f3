#include "server/services/connection.h"

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <mutex>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "proto/rpc.h"

namespace wl {
namespace {

constexpr const char kToken[] = "authorization";
constexpr unsigned kReadTlsFilesAgainS = 1;

std::string text_of(grpc::string_ref one) {
  return {one.data(), one.size()};
}

// Names of the properties that DoorGuard adds to the context of a connection. The first one has the connection's door
// and user, the second one the contents of its certificate, which is parsed only once.
constexpr const char kConnectedBy[] = "warploom_connected_by";
constexpr const char kCertificate[] = "warploom_certificate";

std::string text_of(const Connection& connection) {
  return cat(static_cast<int>(connection.door), " ", connection.uid.load(std::memory_order_acquire));
}

// Returns the value of the property kCertificate: expiry, URI and problem; empty if the context has no certificate. The
// context has one only if gRPC verified it: gRPC asks for one with --tls-ca alone, and refuses connections whose
// certificate is invalid. The names in the context mix alternative names of all types, so the certificate is parsed
// again.
std::string print_certificate(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> pem = context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pem.empty()) return "";
  const PeerIdentity found = identity_in_pem(text_of(pem.front()));
  return cat(found.until_unix_s, " ", found.uri, " ", found.problem);
}

std::optional<PeerIdentity> read_certificate(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> noted = context.FindPropertyValues(kCertificate);
  const std::string text = noted.empty() ? "" : text_of(noted.front());
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(' ', 2));
  PeerIdentity out;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &out.until_unix_s)) return std::nullopt;
  out.uri = parts[1];
  out.problem = parts[2];
  return out;
}

template <typename Metadata>
Shown shown_by(const Metadata& metadata, const grpc::AuthContext* context) {
  Shown shown;
  if (const auto found = metadata.find(kToken); found != metadata.end()) shown.token = text_of(found->second);
  if (context != nullptr) shown.certificate = read_certificate(*context);
  return shown;
}

// The guard of a door: gRPC's threads run Process() for every call of a connection, and gRPC itself answers the calls
// that Process() refuses.
class DoorGuard final : public grpc::AuthMetadataProcessor {
 public:
  DoorGuard(CheckCall check, std::shared_ptr<const Connection> connection)
      : check_(std::move(check)), connection_(std::move(connection)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    note_connection(context);
    const auto path = metadata.find(":path");
    return to_grpc(check_(path == metadata.end() ? std::string() : text_of(path->second), *connection_,
                          shown_by(metadata, context)));
  }

 private:
  // Adds the properties to the connection's context, which all its calls share and which the services read. The first
  // call of a connection writes them here, before any service reads them, and nothing writes them later. So no write
  // happens during a read.
  void note_connection(grpc::AuthContext* context) {
    const std::lock_guard lock(mutex_);
    if (!context->FindPropertyValues(kConnectedBy).empty()) return;
    if (connection_->door == Door::kTls) context->AddProperty(kCertificate, print_certificate(*context));
    context->AddProperty(kConnectedBy, text_of(*connection_));
  }

  std::mutex mutex_;
  const CheckCall check_;
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
  // A client without a certificate may have a token instead. A client that shows a certificate must show a valid one.
  options.set_cert_request_type(certificates ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                             : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace

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

Shown shown_in(const grpc::CallbackServerContext& context) {
  return shown_by(context.client_metadata(), context.auth_context().get());
}

std::shared_ptr<grpc::ServerCredentials> guarded_credentials(std::shared_ptr<const Connection> connection,
                                                             const TlsFiles& tls, CheckCall check) {
  // Local credentials exchange no bytes of their own, so a plaintext channel can talk to a server that has them. Unlike
  // plaintext credentials, they make gRPC run the guard.
  auto credentials =
      connection->door == Door::kTls
          ? tls_credentials(tls)
          : grpc::experimental::LocalServerCredentials(connection->door == Door::kUnix ? UDS : LOCAL_TCP);
  credentials->SetAuthMetadataProcessor(std::make_shared<DoorGuard>(std::move(check), std::move(connection)));
  return credentials;
}

}  // namespace wl
