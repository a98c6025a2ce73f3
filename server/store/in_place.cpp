// Which programs run a kernel, and what was seen when a kernel replaced another one in them.
#include <set>

#include "compiler/base/sha256.h"
#include "server/store/impl.h"
#include "server/store/sql/functions.h"

namespace wl {
namespace {

// Number of the newest replacements that are kept.
constexpr int64_t kMostReplaced = 10'000;

constexpr std::string_view kSelectReplaced =
    "SELECT x.id, x.key, n.name, x.before, x.after, x.outcome, x.before_ns, x.after_ns, x.calls, x.message, x.made_ms "
    "FROM replaced x JOIN namespaces n ON n.id = x.namespace WHERE ";

bool add_replaced(const Sql::Row& row, std::vector<ReplacedRow>* rows) {
  rows->push_back({.id = row.integer(0),
                   .key = hex_of(row.text(1)),
                   .team = row.text(2),
                   .before = hex_of(row.text(3)),
                   .after = hex_of(row.text(4)),
                   .outcome = static_cast<TriedInPlace>(row.integer(5)),
                   .before_ns = row.real(6),
                   .after_ns = row.real(7),
                   .calls = row.integer(8),
                   .message = row.text(9),
                   .made_ms = row.integer(10)});
  return true;
}

// Serves the record of `before` again in place of the record of `after`.
absl::Status serve_again(Sql& sql, SignedParts& parts, const KernelRecord& record, const ReplacedRow& end) {
  WL_RETURN_IF_ERROR(parts.sign(sql));
  WL_RETURN_IF_ERROR(check_object(sql, record, parts.object_row()));
  WL_RETURN_IF_ERROR(sql.run("UPDATE records SET blessed = 0 WHERE digest = ?", Blob{key_bytes(end.after)}));
  WL_RETURN_IF_ERROR(
      sql.run("UPDATE records SET blessed = 1, used_ms = ? WHERE digest = ?", unix_ms_now(), Blob{parts.digest}));
  WL_RETURN_IF_ERROR(put_payload(sql, parts));
  return drop_answers_of(sql, end.key);
}

}  // namespace

absl::Status note_program(Sql& sql, int64_t job_id, const std::string& graph, const JobResult& result) {
  // A kernel that is a program by itself has no neighbours.
  if (graph.empty() || result.steps.size() < 2) return absl::OkStatus();
  std::set<std::string> keys;
  for (const GroupResult& group : result.groups) keys.insert(key_bytes(group.key));
  const std::string name = sha256_bytes(graph);
  for (const std::string& key : keys)
    WL_RETURN_IF_ERROR(
        sql.run("INSERT INTO programs (key, graph, job_id) VALUES (?, ?, ?) ON CONFLICT (key, graph) DO UPDATE SET "
                "job_id = excluded.job_id",
                Blob{key}, Blob{name}, job_id));
  return absl::OkStatus();
}

absl::Status note_replaced(Sql& sql, const RecordParts& parts, const KernelRecord& record, int64_t environment,
                           int64_t into) {
  if (!record.device.target.starts_with("cpu:")) return absl::OkStatus();  // workers time programs on CPUs only
  // If a replacement waits for its trial, what it replaced is what this record is compared with.
  return sql.run(
      "INSERT INTO replaced (key, environment, namespace, before, after, plan, made_ms) SELECT r.key, r.environment, "
      "r.namespace, r.digest, ?4, ?5, ?6 FROM records r WHERE r.key = ?1 AND r.environment = ?2 AND r.namespace = ?3 "
      "AND r.blessed = 1 AND r.digest <> ?4 AND r.search_id > 0 AND EXISTS (SELECT 1 FROM uses WHERE key = ?1) AND "
      "EXISTS (SELECT 1 FROM programs WHERE key = ?1) ON CONFLICT (key, environment, namespace) WHERE outcome = 0 DO "
      "UPDATE SET after = excluded.after, plan = excluded.plan, made_ms = excluded.made_ms",
      Blob{parts.key}, environment, into, Blob{parts.digest}, record.plan, unix_ms_now());
}

absl::StatusOr<std::vector<ReplacedRow>> Store::waiting_replacements(int limit) {
  std::vector<ReplacedRow> rows;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        cat(kSelectReplaced, "x.outcome = 0 ORDER BY x.id LIMIT ?").c_str(),
        [&](const Sql::Row& row) { return add_replaced(row, &rows); }, limit);
  }));
  return rows;
}

absl::StatusOr<std::vector<ReplacedRow>> Store::replacements_of(const std::string& key, const Reader& reader,
                                                                int limit) {
  std::vector<ReplacedRow> rows;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        cat(kSelectReplaced, "x.key = ?1 AND (?2 OR n.name IN ('', ?3)) ORDER BY x.id DESC LIMIT ?4").c_str(),
        [&](const Sql::Row& row) { return add_replaced(row, &rows); }, Blob{key_bytes(key)}, reader.every, reader.team,
        limit);
  }));
  return rows;
}

absl::StatusOr<bool> Store::was_taken_back(const std::string& key, const std::string& environment,
                                           const std::string& team, const std::string& plan) {
  int64_t found = 0;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(found, sql.number("SELECT EXISTS (SELECT 1 FROM replaced x JOIN namespaces n ON n.id = "
                                          "x.namespace JOIN environments e ON e.id = x.environment WHERE x.key = ?1 "
                                          "AND e.name = ?2 AND n.name IN ('', ?3) AND x.plan = ?4 AND x.outcome = ?5)",
                                          Blob{key_bytes(key)}, environment, team, plan,
                                          static_cast<int64_t>(TriedInPlace::kTakenBack)));
    return absl::OkStatus();
  }));
  return found != 0;
}

absl::StatusOr<std::vector<int64_t>> Store::programs_with(const std::string& key, int limit) {
  std::vector<int64_t> ids;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT job_id FROM programs WHERE key = ? ORDER BY job_id DESC LIMIT ?",
        [&](const Sql::Row& row) {
          ids.push_back(row.integer(0));
          return true;
        },
        Blob{key_bytes(key)}, limit);
  }));
  return ids;
}

absl::Status Store::end_replacement(const ReplacedRow& end, const KernelRecord* before) {
  std::optional<SignedParts> parts;
  if (before != nullptr) parts.emplace(*before, impl_->signing);
  return write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.run(
        "UPDATE replaced SET outcome = ?3, before_ns = ?4, after_ns = ?5, calls = ?6, message = ?7 WHERE id = ?1 AND "
        "after = ?2 AND outcome = 0 AND EXISTS (SELECT 1 FROM records WHERE digest = ?2 AND blessed = 1)",
        end.id, Blob{key_bytes(end.after)}, static_cast<int64_t>(end.outcome), end.before_ns, end.after_ns, end.calls,
        end.message));
    if (sql.changes() == 0) {
      // The record that was tried is not served any more, unless a newer one took its place in the row.
      return sql.run(
          "UPDATE replaced SET outcome = ?3, message = 'it is no longer served' WHERE id = ?1 AND after = "
          "?2 AND outcome = 0",
          end.id, Blob{key_bytes(end.after)}, static_cast<int64_t>(TriedInPlace::kNotTried));
    }
    if (parts) WL_RETURN_IF_ERROR(serve_again(sql, *parts, *before, end));
    return sql.run("DELETE FROM replaced WHERE outcome <> 0 AND id <= (SELECT max(id) FROM replaced) - ?",
                   kMostReplaced);
  });
}

}  // namespace wl
