// Heads. A head is a coordinator's dated statement, signed with the key of its records, about all records that it has
// signed: it gives the least generation of records that are still valid, for all keys and for single ones. So a record
// that was replaced or revoked since is recognised. See docs/design/trust.md#generations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "warploom/v1/kernel_store.pb.h"

namespace wl {

namespace v1 = ::warploom::v1;

inline constexpr size_t kMostFloors = 256;  // single keys in a head
inline constexpr size_t kMostHeads = 64;    // heads of other coordinators in one answer
inline constexpr int64_t kHeadDays = 30;    // days for which a head is accepted, unless the --signers file gives others
inline constexpr int64_t kDayMs = 86'400'000;

struct StoreHead {
  struct Floor {
    std::string key;
    int64_t generation = 0;
    bool operator==(const Floor&) const = default;
  };
  std::string signed_by;       // public key, in hexadecimal
  int64_t unix_ms = 0;         // when the head was signed
  int64_t oldest = 0;          // records of generations below this one are no longer valid
  std::vector<Floor> floors;   // the same for records of single keys
  std::string signature = {};  // in hexadecimal
  bool operator==(const StoreHead&) const = default;
};

// Returns the text that is signed.
std::string text_of_head(const StoreHead& head);

v1::StoreHead to_proto(const StoreHead& head);
// The message's fields must have been checked (proto/limits.h).
StoreHead from_proto(const v1::StoreHead& message);

// Returns the least generation of records of this key that are valid by the head of their signer; 0: all are valid.
int64_t floor_of(const StoreHead& head, const std::string& key);
// Returns why a record is no longer valid by its signer's head, for people; "": it is valid.
std::string why_too_old(const KernelRecord& record, const StoreHead& head);

}  // namespace wl
