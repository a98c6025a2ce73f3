// Signatures of records: Ed25519 over the digest of a record (which covers its contents) and its generation. A
// coordinator signs the records that it promotes, and a client checks the signature against the keys that it trusts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"
#include "proto/trust/heads.h"

struct evp_pkey_st;

namespace wl {

class SigningKey {
 public:
  // Reads the private key in a PEM file. If there is no file, creates one that only this user can read.
  // FailedPrecondition: other users may access the file, it has no private Ed25519 key, or it cannot be read or
  // created.
  static absl::StatusOr<std::shared_ptr<const SigningKey>> open(const std::string& file);
  ~SigningKey();
  SigningKey(const SigningKey&) = delete;
  SigningKey& operator=(const SigningKey&) = delete;

  const std::string& public_key() const { return public_key_; }  // the public key: 32 bytes in hexadecimal
  // Sets the record's fields `signed_by` and `signature`; the signature is of its digest and generation.
  void sign(KernelRecord* record) const;
  void sign(StoreHead* head) const;  // sets the head's fields `signed_by` and `signature`
  // Sets the record's fields `built_by` and `built_signature`. The signature is of the statement that this
  // coordinator's compilers made the record's object from its source.
  void sign_as_built(KernelRecord* record) const;

 private:
  SigningKey() = default;
  std::string signature_of(const std::string& text) const;  // returns the signature of the text, in hexadecimal
  evp_pkey_st* key_ = nullptr;
  std::string public_key_;
};

// A key that a client trusts.
struct Signer {
  std::string public_key, name;
  int64_t head_days = kHeadDays;  // days for which a head of this signer is accepted
};

// Reads the file of --signers. Its lines are "KEY NAME", as `warploom signer` prints them, or "KEY NAME 365d", which
// sets Signer::head_days; empty lines and lines that begin with # are skipped. InvalidArgument: a line is wrong (the
// message has the line's number, what was expected and what was found), the file has no key, or the file cannot be
// read.
absl::StatusOr<std::vector<Signer>> read_signers(const std::string& file);

// Checks whether a record may be used; its digest must have been checked before. DataLoss: the record has a signature
// that does not match. PermissionDenied: `signers` is not empty, and none of them signed the record. Both messages say
// what to do.
absl::Status check_signature(const KernelRecord& record, const std::vector<Signer>& signers);

// Whether the head's signature matches its contents and its key.
bool is_sound(const StoreHead& head);
// Returns the heads, at most kMostHeads, that satisfy is_sound() and whose signer is one of `signers` (any signer if
// `signers` is empty).
std::vector<StoreHead> sound_heads(const google::protobuf::RepeatedPtrField<v1::StoreHead>& heads,
                                   const std::vector<Signer>& signers);

// Returns the signer with this key; null: there is none.
const Signer* find_signer(const std::vector<Signer>& signers, const std::string& public_key);

// Whether a coordinator has signed the statement that its own compilers made the record's object from its source. The
// coordinator must be one of `signers`, unless these are empty.
bool is_built(const KernelRecord& record, const std::vector<Signer>& signers);

}  // namespace wl
