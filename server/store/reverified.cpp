// Stores the rows of jobs that verify winners of another environment again: one row for each winner. The rows are also
// the report on the verification.
#include "server/store/impl.h"
#include "server/store/sql/columns.h"

namespace wl {
namespace {

constexpr SqlColumn<ReverifiedRow> kReverifiedColumns[] = {
    column<ReverifiedRow, &ReverifiedRow::job_id>("job_id"),
    column<ReverifiedRow, &ReverifiedRow::digest>("digest"),
    column<ReverifiedRow, &ReverifiedRow::key>("key"),
    column<ReverifiedRow, &ReverifiedRow::environment_before>("environment_before"),
    column<ReverifiedRow, &ReverifiedRow::environment>("environment"),
    column<ReverifiedRow, &ReverifiedRow::outcome>("outcome"),
    column<ReverifiedRow, &ReverifiedRow::plan_before>("plan_before"),
    column<ReverifiedRow, &ReverifiedRow::plan>("plan"),
    column<ReverifiedRow, &ReverifiedRow::before_ns>("before_ns"),
    column<ReverifiedRow, &ReverifiedRow::ns>("ns"),
    column<ReverifiedRow, &ReverifiedRow::message>("message"),
};

absl::Status read_known(Sql& sql, const std::string& environment, bool again, std::set<std::string>* digests) {
  return sql.each(
      "SELECT r.digest FROM reverified r JOIN jobs j ON j.id = r.job_id WHERE r.environment = ?1 AND "
      "(j.state < 2 OR (NOT ?2 AND NOT (r.outcome = 0 AND j.state = ?3)))",
      [&](const Sql::Row& row) {
        digests->insert(row.text(0));
        return true;
      },
      environment, again, static_cast<int>(JobState::kFailed));
}

}  // namespace

absl::StatusOr<std::vector<ReverifiedRow>> not_verified_yet(Sql& sql, const std::vector<ReverifiedRow>& rows,
                                                            bool again) {
  std::vector<ReverifiedRow> left;
  std::map<std::string, std::set<std::string>> known;  // digests of the records that count as verified, by environment
  for (const ReverifiedRow& row : rows) {
    const auto [at, is_new] = known.try_emplace(row.environment);
    if (is_new) WL_RETURN_IF_ERROR(read_known(sql, row.environment, again, &at->second));
    if (!at->second.contains(row.digest)) left.push_back(row);
  }
  return left;
}

absl::Status put_reverified(Sql& sql, int64_t job_id, const std::vector<ReverifiedRow>& rows) {
  for (ReverifiedRow row : rows) {
    row.job_id = job_id;
    WL_RETURN_IF_ERROR(insert<ReverifiedRow>(sql, "reverified", kReverifiedColumns, row));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::set<std::string>> Store::verified_in(const std::string& environment, bool again) {
  std::set<std::string> digests;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) { return read_known(sql, environment, again, &digests); }));
  return digests;
}

absl::Status Store::settle_reverified(const ReverifiedRow& row) {
  return write([&](Sql& sql) {
    return sql.run("UPDATE reverified SET outcome = ?, plan = ?, ns = ?, message = ? WHERE job_id = ? AND digest = ?",
                   static_cast<int>(row.outcome), row.plan, row.ns, row.message, row.job_id, row.digest);
  });
}

absl::StatusOr<std::vector<ReverifiedRow>> Store::reverified(int64_t job_id, int64_t skip, int limit) {
  std::vector<ReverifiedRow> rows;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        cat("SELECT ", names_of<ReverifiedRow>(kReverifiedColumns),
            " FROM reverified WHERE (?1 = 0 OR job_id = ?1) ORDER BY job_id DESC, digest LIMIT ?3 OFFSET ?2")
            .c_str(),
        [&](const Sql::Row& row) {
          rows.push_back(record_from<ReverifiedRow>(kReverifiedColumns, row));
          return true;
        },
        job_id, skip, limit);
  }));
  return rows;
}

}  // namespace wl
