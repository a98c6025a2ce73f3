#include "server/metrics/https.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>

namespace wl {
namespace {

std::string text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<size_t>(ASN1_STRING_length(text))};
}

// While files are being replaced and do not fit each other, the connection fails, and the next one may not.
int read_certificate(SSL* session, void* argument) {
  const auto* files = static_cast<const TlsFiles*>(argument);
  const bool read = SSL_use_certificate_chain_file(session, files->cert.c_str()) == 1 &&
                    SSL_use_PrivateKey_file(session, files->key.c_str(), SSL_FILETYPE_PEM) == 1;
  return read ? 1 : 0;
}

}  // namespace

bool set_up_tls(SSL_CTX* context, const TlsFiles* files) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Without sessions that are taken up again every connection shows its certificate anew.
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

std::vector<std::string> names_of_peer(const SSL* session) {
  std::vector<std::string> names;
  const std::unique_ptr<X509, decltype(&X509_free)> shown(SSL_get1_peer_certificate(session), &X509_free);
  if (shown == nullptr || SSL_get_verify_result(session) != X509_V_OK) return names;
  auto* const alternatives =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(shown.get(), NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(alternatives); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives, i);
    if (name->type == GEN_URI || name->type == GEN_DNS || name->type == GEN_EMAIL)
      names.push_back(text_of(name->d.ia5));
  }
  GENERAL_NAMES_free(alternatives);
  const X509_NAME* subject = X509_get_subject_name(shown.get());
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) names.push_back(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  return names;
}

}  // namespace wl
