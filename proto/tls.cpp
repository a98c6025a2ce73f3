#include "proto/tls.h"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "absl/strings/str_split.h"
#include "compiler/base/names.h"
#include "files/read.h"

namespace wl {
namespace {

template <auto function>
struct Freed {
  template <typename T>
  void operator()(T* one) const {
    function(one);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Settings = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

std::string print_time(const ASN1_TIME* time) {
  const Bio out(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(out.get(), time);
  return text_of(out);
}

std::string print_name(const X509_NAME* name) {
  const Bio out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  return text_of(out);
}

// Returns the subject alternative names of a certificate, such as hosts and addresses, as text.
std::string print_hosts(X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string hosts;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const Bio out(BIO_new(BIO_s_mem()));
    GENERAL_NAME_print(out.get(), sk_GENERAL_NAME_value(names.get(), i));
    append(&hosts, hosts.empty() ? "" : ", ", text_of(out));
  }
  return hosts.empty() ? "none" : hosts;
}

absl::StatusOr<Bio> open_file(const char* option, const std::string& file) {
  const absl::StatusOr<std::string> text = read_file(file, kMostSettings);
  if (!text.ok()) return invalid(option, ": ", std::string(text.status().message()));
  Bio in(BIO_new(BIO_s_mem()));
  WL_CHECK(BIO_write(in.get(), text->data(), static_cast<int>(text->size())) == static_cast<int>(text->size()),
           "OpenSSL has no memory");
  return in;
}

absl::StatusOr<Certificate> read_certificate(const char* option, const std::string& file) {
  WL_ASSIGN_OR_RETURN(const Bio in, open_file(option, file));
  Certificate certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  if (!certificate) return invalid(option, " ", file, ": expected a certificate in PEM, found none");
  return certificate;
}

absl::Status check_dates(const char* option, const std::string& file, X509* certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return invalid(option, " ", file, ": the certificate has expired on ", print_time(X509_get0_notAfter(certificate)),
                   "; have its CA make a new one");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return invalid(option, " ", file, ": the certificate is not valid before ",
                   print_time(X509_get0_notBefore(certificate)), "; is the clock right?");
  }
  return absl::OkStatus();
}

// Returns the reason code of OpenSSL's last error, and clears its errors.
int take_reason() {
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  ERR_clear_error();
  return reason;
}

int connect_to(const std::string& host, const std::string& port) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return -1;
  int fd = -1;
  for (const addrinfo* one = found; one != nullptr && fd < 0; one = one->ai_next) {
    fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience = {.tv_sec = 2, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (fd < 0 || connect(fd, one->ai_addr, one->ai_addrlen) == 0) continue;
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

// Returns what is wrong with the certificate of the other end; "" if nothing is.
std::string peer_problem(const std::string& address, const TlsFiles& files, SSL* session) {
  const Certificate peer(SSL_get1_peer_certificate(session));
  if (!peer) return cat(address, " shows no certificate");
  switch (const long result = SSL_get_verify_result(session)) {
    case X509_V_OK:
      return "";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return cat("the certificate of ", address, " has expired on ", print_time(X509_get0_notAfter(peer.get())),
                 "; whoever runs it must renew it");
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return cat("the certificate of ", address, " is for other names: ", print_hosts(peer.get()),
                 "; call it by one of them, or have its CA make one for this name");
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return cat("the certificate of ", address, " is not by a CA of --tls-ca ", files.ca, " but by ",
                 print_name(X509_get_issuer_name(peer.get())), "; ask whoever runs it for the file of its CA");
    default:
      return cat("the certificate of ", address, " cannot be trusted: ", X509_verify_cert_error_string(result));
  }
}

// Returns why the other end does not accept our certificate; "": it does. The other end decides only after our part of
// the handshake has ended. If it refuses, it sends an alert or closes the connection; otherwise it sends data or
// nothing.
std::string own_problem(const std::string& address, const TlsFiles& files, SSL* session) {
  char byte = 0;
  const int got = SSL_read(session, &byte, 1);
  const int kind = SSL_get_error(session, got);
  if (got > 0 || (kind == SSL_ERROR_SYSCALL && (errno == EAGAIN || errno == EWOULDBLOCK)) ||
      kind == SSL_ERROR_WANT_READ)
    return "";
  if (files.cert.empty()) return cat(address, " wants a certificate: say --tls-cert and --tls-key");
  const auto own = read_certificate("--tls-cert", files.cert);
  return cat(address, " does not accept the certificate of --tls-cert ", files.cert,
             own.ok() ? cat(", which is by ", print_name(X509_get_issuer_name(own->get())), " and valid until ",
                            print_time(X509_get0_notAfter(own->get())))
                      : std::string(),
             "; use one by a CA that its --tls-ca has");
}

std::string problem_of(const std::string& address, const std::string& host, const TlsFiles& files, SSL* session) {
  SSL_set_tlsext_host_name(session, host.c_str());
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(session);
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) != 1)
    X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
  ERR_clear_error();
  const bool connected = SSL_connect(session) == 1;
  const int reason = take_reason();
  if (!files.any()) {
    return connected ? cat(address, " speaks TLS: say --tls-ca with the file of its CA") : std::string();
  }
  if (!connected) {
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_HTTP_REQUEST)
      return cat(address, " does not speak TLS: start it with --tls-cert and --tls-key, or leave out --tls-ca");
    return "";
  }
  if (const std::string problem = peer_problem(address, files, session); !problem.empty()) return problem;
  return own_problem(address, files, session);
}

constexpr std::string_view kScheme = "spiffe://";
constexpr size_t kMostIdentity = 1024, kMostDomain = 255, kMostShown = 200;
constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
constexpr std::string_view kSegment = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";

std::string shown(std::string_view text) {
  return cat("\"", fitted(std::string(text), TextKind::kName, kMostShown), "\"");
}

int64_t end_of(const X509* certificate) {
  tm end = {};
  return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1 ? timegm(&end) : 0;
}

}  // namespace

absl::Status check_tls_files(const TlsFiles& files) {
  if (files.cert.empty() != files.key.empty())
    return invalid(files.cert.empty() ? "--tls-key" : "--tls-cert", ": expected --tls-cert and --tls-key together");
  if (!files.cert.empty()) {
    WL_ASSIGN_OR_RETURN(const Certificate certificate, read_certificate("--tls-cert", files.cert));
    WL_RETURN_IF_ERROR(check_dates("--tls-cert", files.cert, certificate.get()));
    WL_ASSIGN_OR_RETURN(const Bio in, open_file("--tls-key", files.key));
    const Key key(PEM_read_bio_PrivateKey(
        in.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
    if (!key) return invalid("--tls-key ", files.key, ": expected a private key in PEM without a password");
    if (X509_check_private_key(certificate.get(), key.get()) != 1)
      return invalid("--tls-key ", files.key, ": is not the key of the certificate ", files.cert);
  }
  if (!files.ca.empty()) {
    WL_ASSIGN_OR_RETURN(const Certificate ca, read_certificate("--tls-ca", files.ca));
    WL_RETURN_IF_ERROR(check_dates("--tls-ca", files.ca, ca.get()));
  }
  return absl::OkStatus();
}

std::string tls_problem(const std::string& address, const TlsFiles& files) {
  if (const absl::Status status = check_tls_files(files); !status.ok()) return std::string(status.message());
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return "";
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const Settings settings(SSL_CTX_new(TLS_client_method()));
  // A wrong certificate must not end the handshake, since peer_problem() examines the certificate afterwards.
  SSL_CTX_set_verify(settings.get(), SSL_VERIFY_NONE, nullptr);
  constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(settings.get(), kHttp2.data(), kHttp2.size());
  if (!files.ca.empty()) SSL_CTX_load_verify_locations(settings.get(), files.ca.c_str(), nullptr);
  if (!files.cert.empty()) {
    SSL_CTX_use_certificate_chain_file(settings.get(), files.cert.c_str());
    SSL_CTX_use_PrivateKey_file(settings.get(), files.key.c_str(), SSL_FILETYPE_PEM);
  }
  const int fd = connect_to(host, address.substr(colon + 1));
  if (fd < 0) return "";
  std::string problem;
  {
    const Session session(SSL_new(settings.get()));
    SSL_set_fd(session.get(), fd);
    problem = problem_of(address, host, files, session.get());
  }
  close(fd);
  return problem;
}

absl::Status check_trust_domain(std::string_view domain) {
  if (domain.empty() || domain.size() > kMostDomain || domain.find_first_not_of(kLower) != std::string_view::npos)
    return invalid("expected a trust domain of lower-case letters, digits, '.', '-' and '_', found ", shown(domain));
  return absl::OkStatus();
}

absl::Status check_spiffe_id(std::string_view uri) {
  if (uri.size() > kMostIdentity || !uri.starts_with(kScheme))
    return invalid("expected a URI such as spiffe://DOMAIN/warploom/ROLE, of at most ", kMostIdentity, " bytes, found ",
                   shown(uri));
  const std::string_view rest = uri.substr(kScheme.size());
  const size_t slash = rest.find('/');
  if (const absl::Status domain = check_trust_domain(rest.substr(0, slash)); !domain.ok())
    return invalid(std::string(domain.message()), " in ", shown(uri));
  if (slash == std::string_view::npos) return absl::OkStatus();
  const std::string_view path = rest.substr(slash + 1);
  for (const absl::string_view part : absl::StrSplit(absl::string_view(path.data(), path.size()), '/')) {
    const std::string_view segment(part.data(), part.size());
    if (segment.empty() || segment == "." || segment == ".." ||
        segment.find_first_not_of(kSegment) != std::string_view::npos)
      return invalid("expected parts of letters, digits, '.', '-' and '_' between single slashes in ", shown(uri),
                     ", found ", shown(segment));
  }
  return absl::OkStatus();
}

SpiffeParts spiffe_parts(const std::string& id) {
  const size_t from = kScheme.size(), slash = id.find('/', from);
  if (slash == std::string::npos) return {id.substr(from), ""};
  return {id.substr(from, slash - from), id.substr(slash + 1)};
}

PeerIdentity identity_of(const X509* certificate) {
  PeerIdentity out;
  out.until_unix_s = end_of(certificate);
  // A certificate with two extensions of alternative names is refused, since other programs might read the one that
  // this function does not read.
  int more = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1);
  if (more >= 0 && X509_get_ext_by_NID(certificate, NID_subject_alt_name, more) >= 0) {
    out.problem = "it has two lists of alternative names";
    return out;
  }
  const Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  if (uris.size() != 1) {
    out.problem = uris.empty() ? "it has no URI name" : cat("it has ", uris.size(), " URI names");
    return out;
  }
  const absl::Status right = check_spiffe_id(uris.front());
  if (right.ok())
    out.uri = uris.front();
  else
    out.problem = cat("its URI name cannot be taken: ", std::string(right.message()));
  return out;
}

PeerIdentity identity_in_pem(std::string_view pem) {
  const Bio text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Certificate certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return {.uri = {}, .problem = "it cannot be read", .until_unix_s = 0};
  return identity_of(certificate.get());
}

}  // namespace wl
