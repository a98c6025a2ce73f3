// Stores jobs and the answers to whole jobs.
#include <set>

#include "proto/wire.h"
#include "server/store/impl.h"
#include "server/store/sql/columns.h"

namespace wl {
namespace {

// Returns the value of a column for an optional message: the encoded message, or NULL if there is none.
template <typename Message>
SqlValue to_bytes(const std::optional<Message>& message) {
  return message ? SqlValue(SqlBytes{encode(*message)}) : SqlValue();
}
// A stored message that cannot be decoded counts as missing, so that the answer is made again.
template <typename Message>
void from_bytes(std::optional<Message>& out, absl::StatusOr<Message> decoded) {
  if (decoded.ok()) out = *std::move(decoded);
}

constexpr SqlColumn<JobRow> kJobColumns[] = {
    column<JobRow, &JobRow::id>("id"),
    column<JobRow, &JobRow::request_id>("request_id"),
    column<JobRow, &JobRow::body_hash>("body_hash"),
    column<JobRow, &JobRow::label>("label"),
    column<JobRow, &JobRow::graph>("graph"),
    {"options", [](const JobRow& job) -> SqlValue { return SqlBytes{encode(job.options)}; },
     [](JobRow& job, const Sql::Row& row, int at) {
       if (auto options = decode_options(row.text(at)); options.ok()) job.options = *std::move(options);
     }},
    {"device", [](const JobRow& job) { return to_bytes(job.device); },
     [](JobRow& job, const Sql::Row& row, int at) {
       if (!row.null(at)) from_bytes(job.device, decode_device(row.text(at)));
     }},
    column<JobRow, &JobRow::state>("state"),
    column<JobRow, &JobRow::cached>("cached"),
    column<JobRow, &JobRow::cancelling>("cancelling"),
    column<JobRow, &JobRow::own>("own"),
    {"result", [](const JobRow& job) { return to_bytes(job.result); },
     [](JobRow& job, const Sql::Row& row, int at) {
       if (!row.null(at)) from_bytes(job.result, decode_result(row.text(at)));
     }},
    {"error_code", [](const JobRow& job) -> SqlValue { return static_cast<int64_t>(job.error.code()); },
     [](JobRow& job, const Sql::Row& row, int at) {
       job.error = absl::Status(static_cast<absl::StatusCode>(row.integer(at)), "");
     }},
    {"error_message", [](const JobRow& job) -> SqlValue { return std::string(job.error.message()); },
     [](JobRow& job, const Sql::Row& row, int at) { job.error = absl::Status(job.error.code(), row.text(at)); }},
    column<JobRow, &JobRow::created_ms>("created_ms"),
    column<JobRow, &JobRow::started_ms>("started_ms"),
    column<JobRow, &JobRow::finished_ms>("finished_ms"),
    column<JobRow, &JobRow::plan_attempts>("plan_attempts"),
    column<JobRow, &JobRow::team>("team"),
    column<JobRow, &JobRow::trace>("trace"),
    column<JobRow, &JobRow::trials>("trials"),
};

// Selects all columns of a job, and as the last column whether the stored result does not match its digest.
const std::string kSelectJob =
    cat("SELECT ", names_of<JobRow>(kJobColumns),
        ", result IS NOT NULL AND result_digest IS NOT row_digest(id, result) FROM jobs WHERE ");

absl::StatusOr<std::optional<JobRow>> find_job(auto& impl, Sql& sql, std::string_view where, const auto& argument) {
  std::optional<JobRow> found;
  WL_RETURN_IF_ERROR(sql.each(
      cat(kSelectJob, where).c_str(),
      [&](const Sql::Row& row) {
        found = record_from<JobRow>(kJobColumns, row);
        if (row.integer(static_cast<int>(std::size(kJobColumns))) != 0) {
          impl.note_damage(cat("result of job ", found->id, ": it does not have its digest"));
          found->result.reset();
          found->state = JobState::kFailed;
          found->error = absl::DataLossError("the stored result of this job is damaged; submit the graph again");
        }
        return false;
      },
      argument));
  return found;
}

absl::Status put_answer(Sql& sql, const std::string& id, const TuneOptions& options, const JobResult& result) {
  WL_RETURN_IF_ERROR(sql.run("DELETE FROM results WHERE id = ?", id));
  const std::string payload = encode(result);
  WL_RETURN_IF_ERROR(
      sql.run("INSERT INTO results (id, trials_asked, budget_s, payload, digest) VALUES (?1, ?2, ?3, ?4, "
              "row_digest(?1, ?2, ?3, ?4))",
              id, options.trials, options.budget_s, Blob{payload}));
  std::set<std::string> keys;
  for (const GroupResult& group : result.groups) keys.insert(group.key);
  for (const std::string& key : keys) {
    WL_RETURN_IF_ERROR(sql.run("INSERT INTO result_keys (key, result_id) VALUES (?, ?)", key, id));
  }
  return absl::OkStatus();
}

absl::Status check_quota(Sql& sql, const std::string& team, int64_t most) {
  if (most <= 0) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(const int64_t now,
                      sql.number("SELECT count(*) FROM jobs WHERE team = ? AND state < 2 AND own = 0", team));
  if (now < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      cat("team ", team, " has ", now, " jobs that are not done, and may have ", most,
          " at once (jobs= of its row in the file of --callers): wait for one, or cancel one"));
}

}  // namespace

absl::StatusOr<JobRow> Store::create_job(const JobRow& job, const std::string& result_id, int64_t most_unfinished) {
  JobRow made = job;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(std::optional<JobRow> known, find_job(*impl_, sql, "request_id = ?", job.request_id));
    if (known) {
      if (known->body_hash != job.body_hash || known->team != job.team) {
        return invalid("request_id ", job.request_id, ": was used before with another request; use a new one");
      }
      made = *std::move(known);
      return absl::OkStatus();
    }
    if (!is_done(job.state)) WL_RETURN_IF_ERROR(check_quota(sql, job.team, most_unfinished));
    // The id is left out, so SQLite chooses it.
    WL_RETURN_IF_ERROR(insert(sql, "jobs", std::span(kJobColumns).subspan(1), job));
    made.id = sql.last_id();
    WL_RETURN_IF_ERROR(
        sql.run("UPDATE jobs SET result_digest = row_digest(id, result) WHERE id = ? AND result IS NOT NULL", made.id));
    if (!job.result || result_id.empty()) return absl::OkStatus();
    WL_RETURN_IF_ERROR(note_program(sql, made.id, job.graph, *job.result));
    return put_answer(sql, result_id, job.options, *job.result);
  });
  WL_RETURN_IF_ERROR(done);
  return made;
}

absl::StatusOr<std::optional<JobRow>> Store::create_reverification(const JobRow& job,
                                                                   const std::vector<ReverifiedRow>& rows, bool again) {
  std::optional<JobRow> made;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(const std::vector<ReverifiedRow> left, not_verified_yet(sql, rows, again));
    if (left.empty()) return absl::OkStatus();
    WL_RETURN_IF_ERROR(insert(sql, "jobs", std::span(kJobColumns).subspan(1), job));
    made = job;
    made->id = sql.last_id();
    return put_reverified(sql, made->id, left);
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

absl::StatusOr<int64_t> Store::set_job_planning(int64_t id, bool begins) {
  int64_t attempts = 0;
  const absl::Status done = write([&](Sql& sql) {
    return sql.each(
        "UPDATE jobs SET plan_attempts = CASE WHEN ? THEN plan_attempts + 1 ELSE 0 END WHERE id = ? "
        "RETURNING plan_attempts",
        [&](const Sql::Row& row) {
          attempts = row.integer(0);
          return true;
        },
        begins, id);
  });
  WL_RETURN_IF_ERROR(done);
  return attempts;
}

absl::Status Store::finish_job(const JobRow& end, const std::string& result_id) {
  return write([&](Sql& sql) -> absl::Status {
    const std::string result = end.result ? encode(*end.result) : std::string();
    WL_RETURN_IF_ERROR(sql.run(
        "UPDATE jobs SET state = ?1, cached = ?2, result = ?3, error_code = ?4, error_message = ?5, finished_ms = "
        "?6, trials = ?8, result_digest = row_digest(id, ?3) WHERE id = ?7 AND state < 2",
        static_cast<int>(end.state), end.cached, end.result ? std::optional(Blob{result}) : std::nullopt,
        static_cast<int>(end.error.code()), std::string(end.error.message()), end.finished_ms, end.id, end.trials));
    if (sql.changes() == 0) return absl::OkStatus();
    // Reported batches are kept to recognise repeated reports. A finished job gets no reports, so its batches are
    // deleted.
    WL_RETURN_IF_ERROR(sql.run(
        "DELETE FROM batches WHERE state = 'done' AND search_id IN (SELECT search_id FROM job_groups WHERE "
        "job_id = ?1) AND search_id NOT IN (SELECT g.search_id FROM jobs j JOIN job_groups g ON g.job_id = j.id "
        "WHERE j.state < 2)",
        end.id));
    if (!end.result) return absl::OkStatus();
    WL_RETURN_IF_ERROR(note_program(sql, end.id, end.graph, *end.result));
    return result_id.empty() ? absl::OkStatus() : put_answer(sql, result_id, end.options, *end.result);
  });
}

absl::StatusOr<std::optional<JobRow>> Store::job(int64_t id) {
  std::optional<JobRow> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(found, find_job(*impl_, sql, "id = ?", id));
    return absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<std::optional<std::string>> Store::team_of_job(int64_t id) {
  std::optional<std::string> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT team FROM jobs WHERE id = ?",
        [&](const Sql::Row& row) {
          found = row.text(0);
          return false;
        },
        id);
  }));
  return found;
}

absl::StatusOr<std::optional<JobRow>> Store::job_by_request(const std::string& request_id) {
  std::optional<JobRow> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(found, find_job(*impl_, sql, "request_id = ?", request_id));
    return absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<std::vector<JobRow>> Store::unfinished_jobs() {
  std::vector<JobRow> jobs;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(cat(kSelectJob, "state < 2 ORDER BY id").c_str(), [&](const Sql::Row& row) {
      jobs.push_back(record_from<JobRow>(kJobColumns, row));
      return true;
    });
  }));
  return jobs;
}

absl::StatusOr<std::vector<JobRow>> Store::list_jobs(int64_t before, int limit, const Reader& reader, bool unfinished) {
  constexpr std::string_view kLarge[] = {"graph", "result"};
  std::vector<JobRow> jobs;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        cat("SELECT ", names_of<JobRow>(kJobColumns, "", kLarge),
            " FROM jobs WHERE (?1 = 0 OR id < ?1) AND (?3 OR team = ?4)", unfinished ? " AND state < 2" : "",
            " ORDER BY id DESC LIMIT ?2")
            .c_str(),
        [&](const Sql::Row& row) {
          jobs.push_back(record_from<JobRow>(kJobColumns, row));
          return true;
        },
        before, limit, reader.every, reader.team);
  }));
  return jobs;
}

absl::StatusOr<std::optional<Store::WholeAnswer>> Store::whole_answer(const std::string& result_id) {
  std::optional<WholeAnswer> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT payload, trials_asked, budget_s, digest IS row_digest(id, trials_asked, budget_s, payload) FROM "
        "results WHERE id = ?",
        [&](const Sql::Row& row) {
          auto result = decode_result(row.text(0));
          if (row.integer(3) != 0 && result.ok()) {
            found = WholeAnswer{*std::move(result), row.integer(1), row.real(2)};
          } else {
            impl_->note_damage(cat("answer ", result_id, ": it does not have its digest"));
          }
          return false;
        },
        result_id);
  }));
  if (!found) return found;
  for (const GroupResult& group : found->result.groups) {
    std::string object;
    WL_RETURN_IF_ERROR(read([&](Sql& sql) {
      return sql.each(
          "SELECT object FROM records WHERE digest = ? AND object IS NOT NULL",
          [&](const Sql::Row& row) {
            object = hex_of(row.text(0));
            return false;
          },
          Blob{key_bytes(group.record_digest)});
    }));
    if (!impl_->has_object(object)) return std::nullopt;
  }
  return found;
}

}  // namespace wl
