// Heads: what a coordinator says of all records that it has signed, under the same key and with a date, so that a
// record of yesterday is not taken for one of today. A head says below which generation records are no longer right:
// all of them, and those of single keys. See docs/design/trust.md#generations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "warploom/v1/kernel_store.pb.h"

namespace wl {

namespace v1 = ::warploom::v1;

inline constexpr size_t kMostFloors = 256;  // single keys of a head
inline constexpr size_t kMostHeads = 64;    // of other coordinators, in one answer
inline constexpr int64_t kHeadDays = 30;    // how long a head counts, unless the file of --signers says otherwise
inline constexpr int64_t kDayMs = 86'400'000;

struct StoreHead {
  struct Floor {
    std::string key;
    int64_t generation = 0;
    bool operator==(const Floor&) const = default;
  };
  std::string signed_by;       // public key, in hexadecimal
  int64_t unix_ms = 0;         // when it was said
  int64_t oldest = 0;          // records of generations below this one are no longer right
  std::vector<Floor> floors;   // likewise of keys
  std::string signature = {};  // in hexadecimal
  bool operator==(const StoreHead&) const = default;
};

// What is signed.
std::string text_of_head(const StoreHead& head);

v1::StoreHead to_proto(const StoreHead& head);
// The message's fields are within their limits (proto/limits.h).
StoreHead from_proto(const v1::StoreHead& message);

// Below which generation records of a key are no longer right by their signer's head. 0: all are right.
int64_t floor_of(const StoreHead& head, const std::string& key);
// Why a record is no longer right by its signer's head, for people; "": it is.
std::string why_too_old(const KernelRecord& record, const StoreHead& head);

}  // namespace wl
