// Jobs and whole answers.
#include <set>

#include "proto/wire.h"
#include "server/store/sql.h"
#include "server/store/store.h"

namespace wl {
namespace {

#define WL_JOB_COLUMNS                                                                                        \
  "id, request_id, body_hash, label, graph, options, device, state, cached, cancelling, result, error_code, " \
  "error_message, created_ms, started_ms, finished_ms"

// A stored message that cannot be read is absent: an answer is made again rather than refused.
JobRow job_of(const Sql::Row& row) {
  JobRow job;
  job.id = row.integer(0);
  job.request_id = row.text(1);
  job.body_hash = row.text(2);
  job.label = row.text(3);
  job.graph = row.text(4);
  if (auto options = decode_options(row.text(5)); options.ok()) job.options = *std::move(options);
  if (!row.null(6)) {
    if (auto device = decode_device(row.text(6)); device.ok()) job.device = *std::move(device);
  }
  job.state = static_cast<JobState>(row.integer(7));
  job.cached = row.integer(8) != 0;
  job.cancelling = row.integer(9) != 0;
  if (!row.null(10)) {
    if (auto result = decode_result(row.text(10)); result.ok()) job.result = *std::move(result);
  }
  if (row.integer(11) != 0) job.error = absl::Status(static_cast<absl::StatusCode>(row.integer(11)), row.text(12));
  job.created_ms = row.integer(13);
  job.started_ms = row.integer(14);
  job.finished_ms = row.integer(15);
  return job;
}

absl::StatusOr<std::optional<JobRow>> find(Sql& sql, const char* text, const auto& argument) {
  std::optional<JobRow> found;
  WL_RETURN_IF_ERROR(sql.each(
      text,
      [&](const Sql::Row& row) {
        found = job_of(row);
        return false;
      },
      argument));
  return found;
}

absl::Status put_answer(Sql& sql, const std::string& id, const TuneOptions& options, const JobResult& result) {
  WL_RETURN_IF_ERROR(sql.run("DELETE FROM results WHERE id = ?", id));
  const std::string payload = encode(result);
  WL_RETURN_IF_ERROR(sql.run("INSERT INTO results (id, trials_asked, budget_s, payload) VALUES (?, ?, ?, ?)", id,
                             options.trials, options.budget_s, Blob{payload}));
  std::set<std::string> keys;
  for (const GroupResult& group : result.groups) keys.insert(group.key);
  for (const std::string& key : keys) {
    WL_RETURN_IF_ERROR(sql.run("INSERT INTO result_keys (key, result_id) VALUES (?, ?)", key, id));
  }
  return absl::OkStatus();
}

constexpr char kByRequest[] = "SELECT " WL_JOB_COLUMNS " FROM jobs WHERE request_id = ?";
constexpr char kById[] = "SELECT " WL_JOB_COLUMNS " FROM jobs WHERE id = ?";

}  // namespace

absl::StatusOr<JobRow> Store::create_job(const JobRow& job, const std::string& result_id) {
  JobRow made = job;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(std::optional<JobRow> known, find(sql, kByRequest, job.request_id));
    if (known) {
      if (known->body_hash != job.body_hash) {
        return invalid("request_id ", job.request_id, ": was used before with another request; use a new one");
      }
      made = *std::move(known);
      return absl::OkStatus();
    }
    const std::string options = encode(job.options);
    const std::string device = job.device ? encode(*job.device) : std::string();
    const std::string result = job.result ? encode(*job.result) : std::string();
    WL_RETURN_IF_ERROR(sql.run(
        "INSERT INTO jobs (request_id, body_hash, label, graph, options, device, state, cached, result, error_code, "
        "error_message, created_ms, started_ms, finished_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        job.request_id, job.body_hash, job.label, job.graph, Blob{options},
        job.device ? std::optional(Blob{device}) : std::nullopt, static_cast<int>(job.state), job.cached,
        job.result ? std::optional(Blob{result}) : std::nullopt, static_cast<int>(job.error.code()),
        std::string(job.error.message()), job.created_ms, job.started_ms, job.finished_ms));
    made.id = sql.last_id();
    if (job.result && !result_id.empty()) return put_answer(sql, result_id, job.options, *job.result);
    return absl::OkStatus();
  });
  WL_RETURN_IF_ERROR(done);
  return made;
}

absl::Status Store::set_job_running(int64_t id, const Device& device, int64_t started_ms) {
  return write([&](Sql& sql) {
    const std::string bytes = encode(device);
    return sql.run(
        "UPDATE jobs SET state = 1, device = ?, started_ms = CASE started_ms WHEN 0 THEN ? ELSE started_ms END "
        "WHERE id = ? AND state < 2",
        Blob{bytes}, started_ms, id);
  });
}

absl::Status Store::set_job_cancelling(int64_t id) {
  return write([&](Sql& sql) { return sql.run("UPDATE jobs SET cancelling = 1 WHERE id = ? AND state < 2", id); });
}

absl::Status Store::finish_job(const JobRow& end, const std::string& result_id) {
  return write([&](Sql& sql) -> absl::Status {
    const std::string result = end.result ? encode(*end.result) : std::string();
    WL_RETURN_IF_ERROR(
        sql.run("UPDATE jobs SET state = ?, cached = ?, result = ?, error_code = ?, error_message = ?, finished_ms = ? "
                "WHERE id = ? AND state < 2",
                static_cast<int>(end.state), end.cached, end.result ? std::optional(Blob{result}) : std::nullopt,
                static_cast<int>(end.error.code()), std::string(end.error.message()), end.finished_ms, end.id));
    if (sql.changes() == 1 && end.result && !result_id.empty()) {
      return put_answer(sql, result_id, end.options, *end.result);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::optional<JobRow>> Store::job(int64_t id) {
  std::optional<JobRow> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(found, find(sql, kById, id));
    return absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<std::optional<JobRow>> Store::job_by_request(const std::string& request_id) {
  std::optional<JobRow> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(found, find(sql, kByRequest, request_id));
    return absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<std::vector<JobRow>> Store::unfinished_jobs() {
  std::vector<JobRow> jobs;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each("SELECT " WL_JOB_COLUMNS " FROM jobs WHERE state < 2 ORDER BY id", [&](const Sql::Row& row) {
      jobs.push_back(job_of(row));
      return true;
    });
  }));
  return jobs;
}

absl::StatusOr<std::vector<JobRow>> Store::list_jobs(int64_t before, int limit) {
  std::vector<JobRow> jobs;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT id, request_id, body_hash, label, '', options, device, state, cached, cancelling, NULL, error_code, "
        "error_message, created_ms, started_ms, finished_ms FROM jobs WHERE ?1 = 0 OR id < ?1 ORDER BY id DESC LIMIT "
        "?2",
        [&](const Sql::Row& row) {
          jobs.push_back(job_of(row));
          return true;
        },
        before, limit);
  }));
  return jobs;
}

absl::StatusOr<std::optional<Store::WholeAnswer>> Store::whole_answer(const std::string& result_id) {
  std::optional<WholeAnswer> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT payload, trials_asked, budget_s FROM results WHERE id = ?",
        [&](const Sql::Row& row) {
          if (auto result = decode_result(row.text(0)); result.ok()) {
            found = WholeAnswer{*std::move(result), row.integer(1), row.real(2)};
          }
          return false;
        },
        result_id);
  }));
  return found;
}

}  // namespace wl
