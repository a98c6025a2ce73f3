// How often programs ran kernels, and how long, as their clients counted; which graphs they asked for in vain; and what
// searches took.
#include <algorithm>

#include "server/store/impl.h"
#include "server/store/sql/functions.h"

namespace wl {
namespace {

constexpr double kMostSeconds = 1e15;  // larger sums of seconds, which only a worker that lies can make, count as this

// The table `used`: sums of the days from ?1 to ?2 for each team and key, with their place among those of the team.
const std::string kWithUsed =
    "WITH used AS (SELECT team, key, CAST(min(total(calls), 9e18) AS INTEGER) AS calls, CAST(min(total(ns), 9e18) AS "
    "INTEGER) AS ns, min(day) AS first, row_number() OVER (PARTITION BY team ORDER BY total(ns) DESC, total(calls) "
    "DESC, key) AS place FROM uses WHERE day BETWEEN ?1 AND ?2 GROUP BY team, key) ";
// The sums of at most ?3 keys of each team, those of most time first. Parameter ?3 is the last place.
constexpr std::string_view kUsed = "SELECT u.team, u.key, u.calls, u.ns, u.first";
constexpr std::string_view kInOrder =
    " FROM used u WHERE u.place <= ?3 ORDER BY u.ns DESC, u.calls DESC, u.team, u.key";
const std::string kMostUsed = cat(kWithUsed, kUsed, kInOrder);
// The same with the digest of the record that record_by_key() returns for the team, and the label of the team's newest
// job that has the kernel. The coordinator's own jobs have labels of their own.
const std::string kUsedRecords = cat(
    kWithUsed, kUsed,
    ", (SELECT r.digest FROM records r WHERE r.key = u.key AND r.blessed = 1 AND r.namespace IN (0, (SELECT id FROM "
    "namespaces WHERE name = u.team)) ORDER BY r.namespace <> 0 DESC, r.created_ms DESC, r.digest DESC LIMIT 1), "
    "(SELECT j.label FROM job_groups g JOIN jobs j ON j.id = g.job_id WHERE g.key = lower(hex(u.key)) AND j.team = "
    "u.team AND j.own = 0 AND j.label <> '' ORDER BY g.job_id DESC LIMIT 1)",
    kInOrder);

KernelUseOfTeam use_of(const Sql::Row& row) {
  return {row.text(0), {hex_of(row.text(1)), row.integer(2), row.integer(3)}, row.integer(4)};
}

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
    return sql.run("DELETE FROM uses WHERE day <= ?", day - kUseDays);
  });
  WL_RETURN_IF_ERROR(done);
  return known;
}

absl::StatusOr<std::vector<KernelUseOfTeam>> Store::most_used(int64_t since_day, int64_t until_day, int each) {
  std::vector<KernelUseOfTeam> used;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        kMostUsed.c_str(),
        [&](const Sql::Row& row) {
          used.push_back(use_of(row));
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

absl::StatusOr<UsedKernelRows> Store::used_records(int64_t since_day, int64_t until_day, int each) {
  UsedKernelRows out;
  const absl::Status done = read([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.each(
        kUsedRecords.c_str(),
        [&](const Sql::Row& row) {
          out.records.push_back({use_of(row), row.null(5) ? std::string() : hex_of(row.text(5)),
                                 row.null(6) ? std::string() : row.text(6)});
          return true;
        },
        since_day, until_day, each));
    return sql.each(
        "SELECT team, count(DISTINCT key) FROM uses WHERE day BETWEEN ?1 AND ?2 GROUP BY team",
        [&](const Sql::Row& row) {
          if (row.integer(1) > each) out.more[row.text(0)] = row.integer(1) - each;
          return true;
        },
        since_day, until_day);
  });
  WL_RETURN_IF_ERROR(done);
  return out;
}

absl::StatusOr<MissedGraphs> Store::missed_graphs(int64_t since_ms, int each) {
  MissedGraphs out;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT team, last, n, at, graphs, jobs, place FROM (SELECT team, max(id) AS last, count(*) AS n, "
        "max(created_ms) AS at, count(*) OVER (PARTITION BY team) AS graphs, sum(count(*)) OVER (PARTITION BY team) AS "
        "jobs, row_number() OVER (PARTITION BY team ORDER BY count(*) DESC, max(id) DESC) AS place FROM jobs INDEXED "
        "BY "
        "jobs_missed_of WHERE state = 5 AND created_ms >= ?1 GROUP BY team, body_hash) WHERE place <= ?2 "
        "ORDER BY n DESC, last DESC",
        [&](const Sql::Row& row) {
          out.graphs.push_back({row.text(0), row.integer(1), row.integer(2), row.integer(3)});
          out.all[row.text(0)] = {row.integer(4), row.integer(5)};
          return true;
        },
        since_ms, each);
  }));
  return out;
}

absl::StatusOr<std::vector<SearchTime>> Store::search_times(int64_t since_day, int64_t until_day) {
  std::vector<SearchTime> out;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT team, sum(trials), total(seconds) FROM search_time WHERE day BETWEEN ?1 AND ?2 GROUP BY team ORDER BY "
        "team",
        [&](const Sql::Row& row) {
          out.push_back({row.text(0), row.integer(1), row.real(2)});
          return true;
        },
        since_day, until_day);
  }));
  return out;
}

absl::Status add_search_time(Sql& sql, int64_t search_id, const std::vector<Trial>& trials) {
  double seconds = 0;
  for (const Trial& trial : trials) seconds += trial.compile_s + trial.check_s + trial.measure_s;
  const int64_t day = unix_ms_now() / 86'400'000;
  WL_RETURN_IF_ERROR(sql.run(
      "INSERT INTO search_time (team, day, trials, seconds) SELECT team, ?2, ?3, ?4 FROM searches WHERE id = ?1 "
      "ON CONFLICT (team, day) DO UPDATE SET trials = trials + excluded.trials, seconds = min(seconds + "
      "excluded.seconds, ?5)",
      search_id, day, static_cast<int64_t>(trials.size()), std::min(seconds, kMostSeconds), kMostSeconds));
  return sql.run("DELETE FROM search_time WHERE day <= ?", day - kUseDays);
}

}  // namespace wl
