// Heads. A head is a coordinator's dated statement about all records that it has signed, signed with the same key: it
// gives the least generation of records that are still valid, for all keys and for single keys. By a head, a client
// recognises a record that has since been replaced or revoked. See docs/design/trust.md#generations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "warploom/v1/kernel_store.pb.h"

namespace wl {

namespace v1 = ::warploom::v1;

// Maximum number of keys with a least valid generation of their own in a head.
inline constexpr size_t kMostFloors = 256;
inline constexpr size_t kMostHeads = 64;  // maximum number of heads of other coordinators in one answer
inline constexpr int64_t kHeadDays = 30;  // days for which a head is accepted, if the --signers file gives no number
inline constexpr int64_t kDayMs = 86'400'000;

struct StoreHead {
  struct Floor {
    std::string key;
    int64_t generation = 0;
    bool operator==(const Floor&) const = default;
  };
  std::string signed_by;       // public key of the coordinator that signed the head, in hexadecimal
  int64_t unix_ms = 0;         // when the head was signed, in milliseconds since 1970
  int64_t oldest = 0;          // least generation of records that are still valid, for all keys
  std::vector<Floor> floors;   // least generations of records that are still valid, for single keys
  std::string signature = {};  // signature of the head's text, in hexadecimal
  bool operator==(const StoreHead&) const = default;
};

// Returns the text that a head's signature is made for.
std::string text_of_head(const StoreHead& head);

v1::StoreHead to_proto(const StoreHead& head);
// Converts the message of a head; proto/limits.h must have checked the message's fields before.
StoreHead from_proto(const v1::StoreHead& message);

// Returns the least generation of this key's records that is still valid according to the head; 0: all are valid.
int64_t floor_of(const StoreHead& head, const std::string& key);
// If the record is invalid according to `head`, a head of the record's signer, returns the reason as a text for people;
// "" if the record is valid.
std::string why_too_old(const KernelRecord& record, const StoreHead& head);

}  // namespace wl
