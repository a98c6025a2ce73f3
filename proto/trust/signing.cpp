#include "proto/trust/signing.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "compiler/base/sha256.h"
#include "files/read.h"

namespace wl {
namespace {

constexpr size_t kKeyBytes = 32, kSignatureBytes = 64;
constexpr int kMostSignerLine = 1024;
constexpr int64_t kMostHeadDays = 36'500;

struct CloseFile {
  void operator()(FILE* file) const { std::fclose(file); }
};
using StdFile = std::unique_ptr<FILE, CloseFile>;
using AnyKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Digesting = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// Returns the text that is signed for a record. Its first line differs from that of any other kind of text that is
// signed with these keys. A record without a generation has the text that older versions of the program signed.
std::string signed_text(const KernelRecord& record) {
  if (record.generation == 0) return cat("warploom record 1\n", record.digest, "\n");
  return cat("warploom record 2\n", record.digest, "\n", record.generation, "\n");
}

std::string built_text(const KernelRecord& record) {
  return cat("warploom object 1\n", record.digest, "\n");
}

bool is_hex(const std::string& text, size_t bytes) {
  return text.size() == 2 * bytes && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

const unsigned char* bytes_of(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

bool is_signed_by(const std::string& public_key, const std::string& text, const std::string& signature) {
  if (!is_hex(public_key, kKeyBytes) || !is_hex(signature, kSignatureBytes)) return false;
  const std::string raw_key = bytes_of_hex(public_key), raw = bytes_of_hex(signature);
  const AnyKey key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(raw_key), raw_key.size()),
                   &EVP_PKEY_free);
  const Digesting digesting(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  return key && digesting && EVP_DigestVerifyInit(digesting.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(digesting.get(), bytes_of(raw), raw.size(), bytes_of(text), text.size()) == 1;
}

// If the signer's name ends with a word such as "365d", removes the word and sets `head_days` to its number. Returns
// false if the number is not from 1 to kMostHeadDays.
bool take_days(Signer* signer) {
  const size_t space = signer->name.rfind(' ');
  const std::string_view last = std::string_view(signer->name).substr(space == std::string::npos ? 0 : space + 1);
  if (last.size() < 2 || last.back() != 'd' || last.find_first_not_of("0123456789") != last.size() - 1) return true;
  if (!absl::SimpleAtoi(std::string(last.substr(0, last.size() - 1)), &signer->head_days)) return false;
  signer->name.resize(space == std::string::npos ? 0 : space);
  return signer->head_days > 0 && signer->head_days <= kMostHeadDays;
}

absl::Status cannot(const char* what, const std::string& file) {
  return absl::FailedPreconditionError(cat("cannot ", what, " the signing key ", file, ": ", std::strerror(errno)));
}

// Creates the file with a new key, completely or not at all. If another process creates the file meanwhile, that file
// is kept.
absl::Status make_key(const std::string& file) {
  const AnyKey key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), &EVP_PKEY_free);
  const std::string unfinished = cat(file, ".", getpid());
  const int fd = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return cannot("write", file);
  const StdFile out(fdopen(fd, "w"));
  if (out == nullptr) close(fd);
  const bool written = key && out != nullptr &&
                       PEM_write_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1 &&
                       fflush(out.get()) == 0 && fsync(fd) == 0;
  const bool named = written && (link(unfinished.c_str(), file.c_str()) == 0 || errno == EEXIST);
  const absl::Status status = named ? absl::OkStatus() : cannot("write", file);
  unlink(unfinished.c_str());
  return status;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SigningKey>> SigningKey::open(const std::string& file) {
  struct stat found = {};
  if (stat(file.c_str(), &found) != 0 && errno == ENOENT) WL_RETURN_IF_ERROR(make_key(file));
  const absl::StatusOr<RegularFile> in = RegularFile::open(file, kMostSettings);
  if (!in.ok()) return absl::FailedPreconditionError(cat("the signing key: ", std::string(in.status().message())));
  if ((in->facts().st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        cat("the signing key ", file, " may be read by others than its owner; make a new one, or say `chmod 600 ", file,
            "` if nobody has read it"));
  }
  WL_ASSIGN_OR_RETURN(const std::string text, in->all());
  const std::unique_ptr<BIO, decltype(&BIO_free)> pem(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                                                      &BIO_free);
  std::shared_ptr<SigningKey> out(new SigningKey);
  out->key_ = PEM_read_bio_PrivateKey(pem.get(), nullptr, nullptr, const_cast<char*>(""));
  if (out->key_ == nullptr || EVP_PKEY_get_base_id(out->key_) != EVP_PKEY_ED25519) {
    return absl::FailedPreconditionError(cat("the signing key ", file,
                                             " is no private Ed25519 key in PEM without a passphrase; `openssl genpkey "
                                             "-algorithm ed25519` makes one, and where there is no file one is made"));
  }
  std::string raw(kKeyBytes, '\0');
  size_t size = raw.size();
  WL_CHECK(EVP_PKEY_get_raw_public_key(out->key_, reinterpret_cast<unsigned char*>(raw.data()), &size) == 1,
           "an Ed25519 key without its public half");
  out->public_key_ = absl::BytesToHexString(raw);
  return out;
}

SigningKey::~SigningKey() {
  EVP_PKEY_free(key_);
}

std::string SigningKey::signature_of(const std::string& text) const {
  std::string raw(kSignatureBytes, '\0');
  size_t size = raw.size();
  const Digesting digesting(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const bool done = digesting && EVP_DigestSignInit(digesting.get(), nullptr, nullptr, nullptr, key_) == 1 &&
                    EVP_DigestSign(digesting.get(), reinterpret_cast<unsigned char*>(raw.data()), &size, bytes_of(text),
                                   text.size()) == 1;
  WL_CHECK(done && size == kSignatureBytes, "Ed25519 signs nothing");
  return absl::BytesToHexString(raw);
}

void SigningKey::sign(KernelRecord* record) const {
  record->signed_by = public_key_;
  record->signature = signature_of(signed_text(*record));
}

void SigningKey::sign(StoreHead* head) const {
  head->signed_by = public_key_;
  head->signature = signature_of(text_of_head(*head));
}

void SigningKey::sign_as_built(KernelRecord* record) const {
  record->built_by = public_key_;
  record->built_signature = signature_of(built_text(*record));
}

absl::StatusOr<std::vector<Signer>> read_signers(const std::string& file) {
  const absl::StatusOr<std::string> text = read_file(file, kMostSettings);
  if (!text.ok()) return invalid("--signers: ", std::string(text.status().message()));
  std::istringstream in(*text);
  std::vector<Signer> signers;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    Signer signer;
    std::istringstream words(line.substr(0, kMostSignerLine));
    words >> signer.public_key;
    std::getline(words >> std::ws, signer.name);
    if (!is_hex(signer.public_key, kKeyBytes)) {
      return invalid("--signers ", file, ", line ", number, ": expected a key of ", 2 * kKeyBytes,
                     " hexadecimal digits and a name, as `warploom signer` prints them, found \"", line.substr(0, 100),
                     "\"");
    }
    if (!take_days(&signer)) {
      return invalid("--signers ", file, ", line ", number, ": expected at its end for how many days what that ",
                     "coordinator said last counts, from 1d to ", kMostHeadDays, "d, found \"", line.substr(0, 100),
                     "\"");
    }
    absl::AsciiStrToLower(&signer.public_key);
    signers.push_back(std::move(signer));
  }
  if (signers.empty()) return invalid("--signers ", file, ": has no key; `warploom signer` prints a coordinator's");
  return signers;
}

absl::Status check_signature(const KernelRecord& record, const std::vector<Signer>& signers) {
  const std::string what = cat("the record ", record.digest, " of key ", record.key);
  const bool is_signed = !record.signed_by.empty() || !record.signature.empty();
  if (is_signed && !is_signed_by(record.signed_by, signed_text(record), record.signature)) {
    return absl::DataLossError(cat(what,
                                   " has a signature that is not of it: it was changed on its way, or in the store; "
                                   "tell whoever runs the coordinator"));
  }
  if (signers.empty()) return absl::OkStatus();
  if (!is_signed) {
    return absl::PermissionDeniedError(cat(what,
                                           " is not signed, and --signers asks for it: it was made before its "
                                           "coordinator signed records; `warploom tune --retune` makes another"));
  }
  if (find_signer(signers, record.signed_by) != nullptr) return absl::OkStatus();
  return absl::PermissionDeniedError(
      cat(what, " is signed by ", record.signed_by,
          ", which is none of --signers: ask whoever runs the coordinator whether that is "
          "its key (`warploom signer`), and add it to the file"));
}

bool is_sound(const StoreHead& head) {
  return is_signed_by(head.signed_by, text_of_head(head), head.signature);
}

std::vector<StoreHead> sound_heads(const google::protobuf::RepeatedPtrField<v1::StoreHead>& heads,
                                   const std::vector<Signer>& signers) {
  std::vector<StoreHead> out;
  for (const v1::StoreHead& message : heads) {
    if (out.size() == kMostHeads) break;
    if (!signers.empty() && find_signer(signers, message.signed_by()) == nullptr) continue;
    if (StoreHead head = from_proto(message); is_sound(head)) out.push_back(std::move(head));
  }
  return out;
}

const Signer* find_signer(const std::vector<Signer>& signers, const std::string& public_key) {
  const auto found =
      std::find_if(signers.begin(), signers.end(), [&](const Signer& one) { return one.public_key == public_key; });
  return found == signers.end() ? nullptr : &*found;
}

bool is_built(const KernelRecord& record, const std::vector<Signer>& signers) {
  return is_signed_by(record.built_by, built_text(record), record.built_signature) &&
         (signers.empty() || find_signer(signers, record.built_by) != nullptr);
}

}  // namespace wl
