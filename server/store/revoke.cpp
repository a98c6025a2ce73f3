// Revocation: what a principal's workers made is deleted, as if it had never been.
#include <algorithm>

#include "proto/wire.h"
#include "server/store/impl.h"

namespace wl {
namespace {

constexpr int64_t kRevokedAtOnce = 256;  // records or searches of one transaction, so that other writes get in between

bool names_principal(const Sql::Row& payload, const std::string& principal) {
  v1::KernelRecord record;
  const std::string bytes = payload.text(1);
  if (!record.ParseFromString(bytes)) return false;
  const auto is_of = [&](const std::string& worker) { return !worker.empty() && principal_of(worker) == principal; };
  return is_of(record.measured_by()) || is_of(record.confirmed_by());
}

}  // namespace

absl::StatusOr<RevokedRows> Store::revoke(const std::string& principal) {
  RevokedRows gone;
  std::vector<int64_t> ids;
  int64_t searches = 0;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(searches, sql.number("SELECT coalesce(max(id), 0) FROM searches"));
    return sql.each("SELECT record, bytes FROM payloads", [&](const Sql::Row& row) {
      if (names_principal(row, principal)) ids.push_back(row.integer(0));
      return true;
    });
  }));
  for (size_t first = 0; first < ids.size(); first += kRevokedAtOnce) {
    const absl::Status dropped = write([&](Sql& sql) -> absl::Status {
      for (size_t i = first; i < std::min(ids.size(), first + kRevokedAtOnce); ++i)
        WL_RETURN_IF_ERROR(drop_record(sql, ids[i]));
      return absl::OkStatus();
    });
    WL_RETURN_IF_ERROR(dropped);
  }
  gone.records = static_cast<int64_t>(ids.size());
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

}  // namespace wl
