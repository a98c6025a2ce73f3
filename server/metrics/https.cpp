#include "server/metrics/https.h"

#include <openssl/ssl.h>

#include <memory>

namespace wl {
namespace {

// Reads the server's certificate and key for one connection. While the two files are being replaced and do not match,
// connections fail; later ones succeed.
int read_certificate(SSL* session, void* argument) {
  const auto* files = static_cast<const TlsFiles*>(argument);
  const bool read = SSL_use_certificate_chain_file(session, files->cert.c_str()) == 1 &&
                    SSL_use_PrivateKey_file(session, files->key.c_str(), SSL_FILETYPE_PEM) == 1;
  return read ? 1 : 0;
}

}  // namespace

bool set_up_tls(SSL_CTX* context, const TlsFiles* files) {
  // OpenSSL must allow that an answer is sent in parts, and that its buffer is moved in memory between two parts.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Sessions are not resumed, so that every connection shows its certificate anew.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(context, 0);
  if (SSL_CTX_use_certificate_chain_file(context, files->cert.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, files->key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return false;
  }
  SSL_CTX_set_cert_cb(context, read_certificate, const_cast<TlsFiles*>(files));
  if (files->ca.empty()) return true;
  if (SSL_CTX_load_verify_locations(context, files->ca.c_str(), nullptr) != 1) return false;
  SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(files->ca.c_str()));
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  return true;
}

std::optional<PeerIdentity> identity_of_peer(const SSL* session) {
  const std::unique_ptr<X509, decltype(&X509_free)> shown(SSL_get1_peer_certificate(session), &X509_free);
  if (shown == nullptr || SSL_get_verify_result(session) != X509_V_OK) return std::nullopt;
  return identity_of(shown.get());
}

}  // namespace wl
