// Signatures of records: Ed25519 over the digest of a record, which covers everything that it says, and its generation.
// A coordinator signs what it promotes, and a client checks it against the keys that it trusts.
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
  // Reads the private key of a PEM file; makes one, readable by this user alone, where there is no file.
  // FailedPrecondition: others than its owner may read it, it is no private Ed25519 key, or it cannot be read or
  // written.
  static absl::StatusOr<std::shared_ptr<const SigningKey>> open(const std::string& file);
  ~SigningKey();
  SigningKey(const SigningKey&) = delete;
  SigningKey& operator=(const SigningKey&) = delete;

  const std::string& public_key() const { return public_key_; }  // 32 bytes in hexadecimal
  // Sets who signed the record, and the signature of its digest and generation.
  void sign(KernelRecord* record) const;
  void sign(StoreHead* head) const;  // likewise
  // Sets who made the record's object of its source, and this key's word for it.
  void sign_as_built(KernelRecord* record) const;

 private:
  SigningKey() = default;
  std::string signature_of(const std::string& text) const;  // in hexadecimal
  evp_pkey_st* key_ = nullptr;
  std::string public_key_;
};

// A key that a client trusts.
struct Signer {
  std::string public_key, name;
  int64_t head_days = kHeadDays;  // its head is that old at most
};

// Reads a file of lines "KEY NAME", as `warploom signer` prints them, or "KEY NAME 365d" with Signer::head_days; lines
// that begin with # are left out.
// InvalidArgument names the line, what was expected there and what was found, or says that the file has none.
absl::StatusOr<std::vector<Signer>> read_signers(const std::string& file);

// Whether a record whose digest was checked may be used. DataLoss: its signature is not of its digest.
// PermissionDenied: `signers` is not empty, and none of them signed it. Both say what to do.
absl::Status check_signature(const KernelRecord& record, const std::vector<Signer>& signers);

// Whether it is what its signer said.
bool is_sound(const StoreHead& head);
// The heads that are sound and of one of `signers`; of anybody, if there are none. At most kMostHeads.
std::vector<StoreHead> sound_heads(const google::protobuf::RepeatedPtrField<v1::StoreHead>& heads,
                                   const std::vector<Signer>& signers);

// The signer of this key; null: it is none of them.
const Signer* find_signer(const std::vector<Signer>& signers, const std::string& public_key);

// Whether a coordinator gives its word that its own compilers made the record's object of its source: any one or, if
// `signers` is not empty, one of them.
bool is_built(const KernelRecord& record, const std::vector<Signer>& signers);

}  // namespace wl
