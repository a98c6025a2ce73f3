// Records that are no longer valid. Revoking a principal deletes what its workers made. Generations tell this
// coordinator, its clients and other coordinators which signed records are no longer valid.
#include <algorithm>

#include "proto/wire.h"
#include "server/store/impl.h"
#include "server/store/sql/functions.h"

namespace wl {
namespace {

// The table `floors` has one generation for each scope. A floor is the lowest generation that is valid: in the scope
// "signer:KEY" for all records signed with this signing key, in "key:KEY" for the records of this tuning key. The scope
// "last" has the highest generation that was given out so far.
const std::string kLast = "last";

std::string of_signer(const SigningKey& key) {
  return "signer:" + key.public_key();
}

absl::StatusOr<int64_t> floor_in(Sql& sql, const std::string& scope) {
  return sql.number("SELECT coalesce((SELECT generation FROM floors WHERE scope = ?), 0)", scope);
}

absl::Status raise(Sql& sql, const std::string& scope, int64_t generation) {
  return sql.run(
      "INSERT INTO floors (scope, generation) VALUES (?1, ?2) ON CONFLICT (scope) DO UPDATE SET generation = "
      "max(generation, ?2)",
      scope, generation);
}

absl::StatusOr<int64_t> keys_with_floors(Sql& sql) {
  return sql.number("SELECT count(*) FROM floors WHERE scope GLOB 'key:*'");
}

bool add_head(const Sql::Row& payload, std::vector<StoreHead>* heads) {
  v1::StoreHead message;
  const std::string bytes = payload.text(0);
  if (message.ParseFromString(bytes)) heads->push_back(from_proto(message));
  return true;
}

// Most records or searches that one transaction of a revocation handles, so that other writes can run in between.
constexpr int64_t kRevokedAtOnce = 256;

// Returns the key of the record in `payload` if a worker of the principal measured or confirmed the record; otherwise
// nullopt.
std::optional<std::string> key_if_of(const Sql::Row& payload, const std::string& principal) {
  v1::KernelRecord record;
  const std::string bytes = payload.text(1);
  if (!record.ParseFromString(bytes)) return std::nullopt;
  const auto is_of = [&](const std::string& worker) { return !worker.empty() && principal_of(worker) == principal; };
  return is_of(record.measured_by()) || is_of(record.confirmed_by()) ? std::optional(record.key()) : std::nullopt;
}

}  // namespace

absl::StatusOr<int64_t> next_generation(Sql& sql) {
  WL_ASSIGN_OR_RETURN(const int64_t last, floor_in(sql, kLast));
  const int64_t next = std::max(unix_ms_now(), last + 1);
  WL_RETURN_IF_ERROR(raise(sql, kLast, next));
  return next;
}

absl::Status forget_older(Sql& sql, const std::string& key, bool is_signed) {
  WL_ASSIGN_OR_RETURN(const int64_t generation, next_generation(sql));
  WL_RETURN_IF_ERROR(raise(sql, "key:" + key, generation));
  if (is_signed) return absl::OkStatus();
  // Without a signing key, records are never signed again, so the number of floors (lowest valid generations) could
  // only grow. All floors are therefore deleted when they are more than kMostFloors. If the coordinator gets a signing
  // key later, it finds no floor of that signing key, and signs all records again.
  WL_ASSIGN_OR_RETURN(const int64_t keys, keys_with_floors(sql));
  return keys <= static_cast<int64_t>(kMostFloors) ? absl::OkStatus()
                                                   : sql.run("DELETE FROM floors WHERE scope <> ?", kLast);
}

SignedParts::SignedParts(const KernelRecord& record, std::shared_ptr<const SigningKey> signing)
    : RecordParts(record), signing_(std::move(signing)) {
  if (signing_ == nullptr) return;
  manifest_ = record;
  manifest_.source.prelude.clear();
  manifest_.source.text.clear();
}

absl::Status SignedParts::sign(Sql& sql) {
  if (signing_ == nullptr) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(manifest_.generation, next_generation(sql));
  signing_->sign(&manifest_);
  set_payload(manifest_);
  return absl::OkStatus();
}

void Store::sign_with(std::shared_ptr<const SigningKey> key) {
  impl_->signing = std::move(key);
}

absl::StatusOr<std::optional<StoreHead>> Store::head() {
  if (impl_->signing == nullptr) return std::nullopt;
  StoreHead head;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(head.oldest, floor_in(sql, of_signer(*impl_->signing)));
    return sql.each(
        "SELECT substr(scope, 5), generation FROM floors WHERE scope GLOB 'key:*' ORDER BY generation DESC, scope "
        "LIMIT ?",
        [&](const Sql::Row& row) {
          head.floors.push_back({row.text(0), row.integer(1)});
          return true;
        },
        static_cast<int64_t>(kMostFloors));
  }));
  head.unix_ms = unix_ms_now();
  impl_->signing->sign(&head);
  return head;
}

absl::StatusOr<bool> Store::should_sign_anew() {
  bool should = false;
  if (impl_->signing == nullptr) return should;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(const int64_t known, floor_in(sql, of_signer(*impl_->signing)));
    WL_ASSIGN_OR_RETURN(const int64_t keys, keys_with_floors(sql));
    should = known == 0 || keys > static_cast<int64_t>(kMostFloors);
    return absl::OkStatus();
  }));
  return should;
}

absl::StatusOr<int64_t> Store::new_generation() {
  int64_t generation = 0;
  WL_RETURN_IF_ERROR(write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(generation, next_generation(sql));
    return absl::OkStatus();
  }));
  return generation;
}

absl::Status Store::sign_anew(const KernelRecord& record) {
  SignedParts parts(record, impl_->signing);
  return write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(
        const int64_t served,
        sql.number("SELECT count(*) FROM records WHERE digest = ? AND blessed = 1 AND origin = 0", Blob{parts.digest}));
    if (served == 0) return absl::OkStatus();
    WL_RETURN_IF_ERROR(parts.sign(sql));
    WL_RETURN_IF_ERROR(put_payload(sql, parts));
    return sql.run("UPDATE records SET offered = 0 WHERE digest = ?", Blob{parts.digest});
  });
}

absl::Status Store::forget_below(int64_t generation) {
  WL_CHECK(impl_->signing != nullptr, "a coordinator that signs nothing forgets nothing");
  return write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(raise(sql, of_signer(*impl_->signing), generation));
    return sql.run("DELETE FROM floors WHERE scope GLOB 'key:*' AND generation <= ?", generation);
  });
}

absl::StatusOr<RevokedRows> Store::revoke(const std::string& principal) {
  RevokedRows gone;
  std::vector<std::pair<int64_t, std::string>> records;  // ids and keys of the records to be deleted
  int64_t searches = 0;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(searches, sql.number("SELECT coalesce(max(id), 0) FROM searches"));
    return sql.each("SELECT record, bytes FROM payloads", [&](const Sql::Row& row) {
      if (auto key = key_if_of(row, principal)) records.emplace_back(row.integer(0), *std::move(key));
      return true;
    });
  }));
  for (size_t first = 0; first < records.size(); first += kRevokedAtOnce) {
    const absl::Status dropped = write([&](Sql& sql) -> absl::Status {
      for (size_t i = first; i < std::min(records.size(), first + kRevokedAtOnce); ++i) {
        WL_RETURN_IF_ERROR(drop_record(sql, records[i].first));
        WL_RETURN_IF_ERROR(forget_older(sql, records[i].second, impl_->signing != nullptr));
      }
      return absl::OkStatus();
    });
    WL_RETURN_IF_ERROR(dropped);
  }
  gone.records = static_cast<int64_t>(records.size());
  // The worker of a trial is PRINCIPAL#EPOCH or PRINCIPAL/REST#EPOCH.
  for (int64_t first = 0; first <= searches; first += kRevokedAtOnce) {
    const absl::Status dropped = write([&](Sql& sql) -> absl::Status {
      WL_RETURN_IF_ERROR(
          sql.run("DELETE FROM trials WHERE search_id BETWEEN ?1 AND ?2 AND (worker = ?3 OR substr(worker, 1, "
                  "length(?3) + 1) IN (?3 || '/', ?3 || '#'))",
                  first, first + kRevokedAtOnce - 1, principal));
      gone.trials += sql.changes();
      return absl::OkStatus();
    });
    WL_RETURN_IF_ERROR(dropped);
  }
  WL_RETURN_IF_ERROR(write([&](Sql& sql) { return sql.run("DELETE FROM results"); }));
  return gone;
}

absl::Status Store::put_heads(const std::vector<StoreHead>& heads) {
  if (heads.empty()) return absl::OkStatus();
  return write([&](Sql& sql) -> absl::Status {
    for (const StoreHead& head : heads) {
      const std::string payload = to_proto(head).SerializeAsString();
      WL_RETURN_IF_ERROR(
          sql.run("INSERT INTO heads (signer, unix_ms, payload) VALUES (?, ?, ?) ON CONFLICT (signer) DO UPDATE SET "
                  "unix_ms = excluded.unix_ms, payload = excluded.payload WHERE excluded.unix_ms > unix_ms",
                  head.signed_by, head.unix_ms, Blob{payload}));
    }
    return sql.run("DELETE FROM heads WHERE signer NOT IN (SELECT signer FROM heads ORDER BY unix_ms DESC LIMIT ?)",
                   static_cast<int64_t>(kMostHeads));
  });
}

absl::StatusOr<std::vector<StoreHead>> Store::heads() {
  std::vector<StoreHead> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each("SELECT payload FROM heads ORDER BY unix_ms DESC",
                    [&](const Sql::Row& row) { return add_head(row, &found); });
  }));
  return found;
}

absl::StatusOr<std::optional<StoreHead>> Store::head_of(const std::string& signer) {
  if (impl_->signing != nullptr && signer == impl_->signing->public_key()) return head();
  std::vector<StoreHead> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT payload FROM heads WHERE signer = ?", [&](const Sql::Row& row) { return add_head(row, &found); },
        signer);
  }));
  return found.empty() ? std::nullopt : std::optional(std::move(found[0]));
}

absl::StatusOr<std::vector<StoreHead>> heads_of(Store& store) {
  WL_ASSIGN_OR_RETURN(std::vector<StoreHead> heads, store.heads());
  WL_ASSIGN_OR_RETURN(const std::optional<StoreHead> own, store.head());
  if (!own) return heads;
  std::erase_if(heads, [&](const StoreHead& head) { return head.signed_by == own->signed_by; });
  heads.insert(heads.begin(), *own);
  return heads;
}

}  // namespace wl
