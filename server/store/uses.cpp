// How often programs ran kernels, and how long, as their clients counted.
#include "server/store/impl.h"
#include "server/store/sql/functions.h"

namespace wl {
namespace {

constexpr int64_t kKeptDays = 7;

}  // namespace

absl::StatusOr<int64_t> Store::add_uses(const std::string& team, const std::vector<KernelUse>& uses, int64_t day) {
  int64_t known = 0;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    known = 0;
    for (const KernelUse& use : uses) {
      // The sums of a day stay below 2^62, whatever clients say.
      WL_RETURN_IF_ERROR(
          sql.run("INSERT INTO uses (team, key, day, calls, ns) SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM "
                  "records r "
                  "JOIN namespaces n ON n.id = r.namespace WHERE r.key = ?2 AND r.blessed = 1 AND n.name IN ('', ?1)) "
                  "ON CONFLICT (team, key, day) DO UPDATE SET calls = min(calls + excluded.calls, 1 << 61), "
                  "ns = min(ns + excluded.ns, 1 << 61)",
                  team, Blob{key_bytes(use.key)}, day, use.calls, use.ns));
      known += sql.changes();
    }
    return sql.run("DELETE FROM uses WHERE day <= ?", day - kKeptDays);
  });
  WL_RETURN_IF_ERROR(done);
  return known;
}

absl::StatusOr<std::vector<KernelUseOfTeam>> Store::most_used(int64_t since_day, int64_t until_day, int each) {
  std::vector<KernelUseOfTeam> used;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT team, key, calls, ns, first FROM (SELECT team, key, CAST(min(total(calls), 9e18) AS INTEGER) AS calls, "
        "CAST(min(total(ns), 9e18) AS INTEGER) AS ns, min(day) AS first, row_number() OVER (PARTITION BY team ORDER BY "
        "total(ns) DESC, total(calls) DESC, key) AS place FROM uses WHERE day BETWEEN ?1 AND ?2 GROUP BY team, key) "
        "WHERE place <= ?3 ORDER BY ns DESC, calls DESC, team, key",
        [&](const Sql::Row& row) {
          used.push_back({row.text(0), {hex_of(row.text(1)), row.integer(2), row.integer(3)}, row.integer(4)});
          return true;
        },
        since_day, until_day, each);
  }));
  return used;
}

absl::StatusOr<std::vector<int64_t>> Store::most_missed(int64_t since_ms, int limit) {
  std::vector<int64_t> ids;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT max(id) FROM jobs INDEXED BY jobs_missed WHERE state = 5 AND created_ms >= ? GROUP BY body_hash "
        "ORDER BY count(*) DESC, max(id) DESC LIMIT ?",
        [&](const Sql::Row& row) {
          ids.push_back(row.integer(0));
          return true;
        },
        since_ms, limit);
  }));
  return ids;
}

}  // namespace wl
