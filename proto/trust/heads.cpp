#include "proto/trust/heads.h"

#include <algorithm>

#include "compiler/base/status.h"

namespace wl {

std::string text_of_head(const StoreHead& head) {
  std::string text = cat("warploom head 1\n", head.unix_ms, "\n", head.oldest, "\n");
  for (const StoreHead::Floor& floor : head.floors) absl::StrAppend(&text, floor.key, " ", floor.generation, "\n");
  return text;
}

v1::StoreHead to_proto(const StoreHead& head) {
  v1::StoreHead out;
  out.set_signed_by(head.signed_by);
  out.set_unix_ms(head.unix_ms);
  out.set_oldest(head.oldest);
  for (const StoreHead::Floor& floor : head.floors) {
    v1::StoreHead::Floor* item = out.add_floors();
    item->set_key(floor.key);
    item->set_generation(floor.generation);
  }
  out.set_signature(head.signature);
  return out;
}

StoreHead from_proto(const v1::StoreHead& message) {
  StoreHead out{.signed_by = message.signed_by(),
                .unix_ms = message.unix_ms(),
                .oldest = message.oldest(),
                .floors = {},
                .signature = message.signature()};
  for (const auto& item : message.floors()) out.floors.push_back({item.key(), item.generation()});
  return out;
}

int64_t floor_of(const StoreHead& head, const std::string& key) {
  int64_t floor = head.oldest;
  for (const StoreHead::Floor& one : head.floors)
    if (one.key == key) floor = std::max(floor, one.generation);
  return floor;
}

std::string why_too_old(const KernelRecord& record, const StoreHead& head) {
  const int64_t floor = floor_of(head, record.key);
  if (record.generation >= floor) return "";
  return cat("it is of generation ", record.generation, ", and ", record.signed_by, " has said that of its key ",
             "nothing below ", floor, " is right any more");
}

}  // namespace wl
