// Searches, rounds, leases and trials.
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/base/code.h"
#include "server/store/sql.h"
#include "server/store/store.h"

namespace wl {
namespace {

absl::Status put_trial(Sql& sql, int64_t search_id, int64_t phase, const Trial& trial, const std::string& worker) {
  return sql.run(
      "INSERT INTO trials (search_id, phase, trial, plan, outcome, samples_ns, hopeless, max_error, bound, message, "
      "compile_s, check_s, measure_s, object_sha256, worker, code, clock_mhz, clocks_mhz) VALUES (?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      search_id, phase, trial.trial, trial.plan, static_cast<int>(trial.outcome), absl::StrJoin(trial.samples_ns, " "),
      trial.hopeless, trial.max_error, trial.bound, trial.message, trial.compile_s, trial.check_s, trial.measure_s,
      trial.object_sha256, worker, trial.code.registers > 0 ? code_text(trial.code) : "", trial.clock_mhz,
      absl::StrJoin(trial.clocks_mhz, " "));
}

double real_or_nan(const Sql::Row& row, int column) {
  return row.null(column) ? std::numeric_limits<double>::quiet_NaN() : row.real(column);
}

std::vector<int64_t> numbers_of(const std::string& text) {
  std::vector<int64_t> out;
  for (absl::string_view item : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    int64_t number = 0;
    if (absl::SimpleAtoi(item, &number)) out.push_back(number);
  }
  return out;
}

PhaseTrial trial_of(const Sql::Row& row) {
  PhaseTrial out;
  out.phase = row.integer(0);
  Trial& trial = out.trial;
  trial.trial = row.integer(1);
  trial.plan = row.text(2);
  trial.outcome = static_cast<Outcome>(row.integer(3));
  trial.samples_ns = numbers_of(row.text(4));
  trial.hopeless = row.integer(5) != 0;
  trial.max_error = real_or_nan(row, 6);
  trial.bound = real_or_nan(row, 7);
  trial.message = row.text(8);
  trial.compile_s = row.real(9);
  trial.check_s = row.real(10);
  trial.measure_s = row.real(11);
  trial.object_sha256 = row.text(12);
  // What another version wrote and this one cannot read is not known.
  if (const auto code = parse_code(row.text(13)); code.ok()) trial.code = *code;
  trial.clock_mhz = static_cast<int>(row.integer(14));
  trial.clocks_mhz = numbers_of(row.text(15));
  return out;
}

SearchRow search_of(const Sql::Row& row) {
  return {row.integer(0), row.text(1), row.text(2), row.text(3), row.integer(4), static_cast<uint64_t>(row.integer(5))};
}

BatchRow batch_of(const Sql::Row& row) {
  BatchRow batch;
  batch.id = row.text(0);
  batch.search_id = row.integer(1);
  batch.phase = row.integer(2);
  batch.first_trial = row.integer(3);
  batch.size = row.integer(4);
  batch.check_seed = static_cast<uint64_t>(row.integer(5));
  batch.leased = row.text(6) == "leased";
  batch.attempt = row.integer(7);
  batch.failures = row.integer(8);
  batch.lease_id = row.text(9);
  batch.worker = row.text(10);
  return batch;
}

#define WL_BATCH_COLUMNS \
  "id, search_id, phase, first_trial, size, check_seed, state, attempt, failures, lease_id, worker"
#define WL_SEARCH_COLUMNS "s.id, s.key, s.environment, s.strategy, s.generation, s.seed"

absl::StatusOr<std::optional<BatchRow>> unfinished_batch(Sql& sql, const std::string& id) {
  std::optional<BatchRow> batch;
  WL_RETURN_IF_ERROR(sql.each(
      "SELECT " WL_BATCH_COLUMNS " FROM batches WHERE id = ? AND state <> 'done'",
      [&](const Sql::Row& row) {
        batch = batch_of(row);
        return false;
      },
      id));
  return batch;
}

}  // namespace

absl::StatusOr<SearchRow> Store::open_search(int64_t job_id, const SearchRow& wanted, bool retune) {
  SearchRow search;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    std::optional<SearchRow> found;
    const auto take = [&](const Sql::Row& row) {
      found = search_of(row);
      return false;
    };
    WL_RETURN_IF_ERROR(
        sql.each("SELECT " WL_SEARCH_COLUMNS
                 " FROM job_groups g JOIN searches s ON s.id = g.search_id WHERE g.job_id = ? AND g.key = ?",
                 take, job_id, wanted.key));
    if (found) {
      search = *found;
      return absl::OkStatus();
    }
    WL_RETURN_IF_ERROR(
        sql.each("SELECT " WL_SEARCH_COLUMNS
                 " FROM searches s WHERE s.key = ? AND s.environment = ? ORDER BY s.generation DESC LIMIT 1",
                 take, wanted.key, wanted.environment));
    if (!found || retune) {
      search = wanted;
      search.generation = found ? found->generation + 1 : 0;
      WL_RETURN_IF_ERROR(
          sql.run("INSERT INTO searches (key, environment, generation, strategy, seed) VALUES (?, ?, ?, ?, ?)",
                  search.key, search.environment, search.generation, search.strategy, search.seed));
      search.id = sql.last_id();
    } else {
      search = *found;
    }
    return sql.run("INSERT INTO job_groups (job_id, key, search_id) VALUES (?, ?, ?)", job_id, wanted.key, search.id);
  });
  WL_RETURN_IF_ERROR(done);
  return search;
}

absl::StatusOr<std::vector<PhaseTrial>> Store::trials(int64_t search_id) {
  std::vector<PhaseTrial> trials;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT phase, trial, plan, outcome, samples_ns, hopeless, max_error, bound, message, compile_s, check_s, "
        "measure_s, object_sha256, code, clock_mhz, clocks_mhz FROM trials WHERE search_id = ? ORDER BY phase, trial",
        [&](const Sql::Row& row) {
          trials.push_back(trial_of(row));
          return true;
        },
        search_id);
  }));
  return trials;
}

absl::StatusOr<std::vector<BatchRow>> Store::open_batches(int64_t search_id) {
  std::vector<BatchRow> batches;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT " WL_BATCH_COLUMNS " FROM batches WHERE search_id = ? AND state <> 'done' ORDER BY phase, first_trial",
        [&](const Sql::Row& row) {
          batches.push_back(batch_of(row));
          return true;
        },
        search_id);
  }));
  return batches;
}

absl::Status Store::put_round(const std::optional<BatchRow>& batch, int64_t search_id, int64_t phase,
                              const std::vector<Trial>& rejected) {
  return write([&](Sql& sql) -> absl::Status {
    for (const Trial& trial : rejected) WL_RETURN_IF_ERROR(put_trial(sql, search_id, phase, trial, ""));
    if (!batch) return absl::OkStatus();
    return sql.run(
        "INSERT INTO batches (id, search_id, phase, first_trial, size, check_seed, state) VALUES (?, ?, ?, ?, ?, ?, "
        "'ready')",
        batch->id, search_id, phase, batch->first_trial, batch->size, batch->check_seed);
  });
}

absl::StatusOr<bool> Store::drop_batch(const std::string& batch_id) {
  bool dropped = false;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(const std::optional<BatchRow> batch, unfinished_batch(sql, batch_id));
    if (!batch) return absl::OkStatus();
    dropped = true;
    WL_RETURN_IF_ERROR(sql.run("DELETE FROM batches WHERE id = ?", batch_id));
    return sql.run("DELETE FROM trials WHERE search_id = ? AND phase = ? AND trial >= ?", batch->search_id,
                   batch->phase, batch->first_trial);
  });
  WL_RETURN_IF_ERROR(done);
  return dropped;
}

absl::StatusOr<int64_t> Store::lease_batch(const std::string& batch_id, const std::string& lease_id,
                                           const std::string& worker) {
  int64_t attempt = 0;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.each(
        "UPDATE batches SET state = 'leased', attempt = attempt + 1, lease_id = ?, worker = ? "
        "WHERE id = ? AND state = 'ready' RETURNING attempt",
        [&](const Sql::Row& row) {
          attempt = row.integer(0);
          return true;
        },
        lease_id, worker, batch_id));
    return attempt == 0 ? absl::NotFoundError(cat("batch ", batch_id, " is not ready")) : absl::OkStatus();
  });
  WL_RETURN_IF_ERROR(done);
  return attempt;
}

absl::StatusOr<int64_t> Store::release_lease(const std::string& lease_id, int64_t attempt, bool failed) {
  int64_t failures = -1;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.each(
        "UPDATE batches SET state = 'ready', failures = failures + ?, lease_id = '', worker = '' "
        "WHERE lease_id = ? AND attempt = ? AND state = 'leased' RETURNING failures",
        [&](const Sql::Row& row) {
          failures = row.integer(0);
          return true;
        },
        failed, lease_id, attempt));
    return failures < 0 ? absl::NotFoundError("no such lease") : absl::OkStatus();
  });
  WL_RETURN_IF_ERROR(done);
  return failures;
}

absl::StatusOr<ReportOutcome> Store::report(const std::string& batch_id, const std::string& lease_id, int64_t attempt,
                                            const std::vector<Trial>& trials) {
  ReportOutcome outcome = ReportOutcome::kStale;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    std::optional<BatchRow> batch;
    bool consumed = false;
    WL_RETURN_IF_ERROR(sql.each(
        "SELECT " WL_BATCH_COLUMNS " FROM batches WHERE id = ? AND lease_id = ? AND attempt = ?",
        [&](const Sql::Row& row) {
          batch = batch_of(row);
          consumed = row.text(6) == "done";
          return false;
        },
        batch_id, lease_id, attempt));
    if (!batch || lease_id.empty()) return absl::OkStatus();
    if (consumed) {
      outcome = ReportOutcome::kDuplicate;
      return absl::OkStatus();
    }
    outcome = ReportOutcome::kAccepted;
    for (const Trial& trial : trials)
      WL_RETURN_IF_ERROR(put_trial(sql, batch->search_id, batch->phase, trial, batch->worker));
    return sql.run("UPDATE batches SET state = 'done' WHERE id = ?", batch_id);
  });
  WL_RETURN_IF_ERROR(done);
  return outcome;
}

absl::Status Store::abandon_batch(const std::string& batch_id, const std::vector<Trial>& trials) {
  return write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(const std::optional<BatchRow> batch, unfinished_batch(sql, batch_id));
    if (!batch) return absl::OkStatus();
    for (const Trial& trial : trials) WL_RETURN_IF_ERROR(put_trial(sql, batch->search_id, batch->phase, trial, ""));
    return sql.run("UPDATE batches SET state = 'done', lease_id = '' WHERE id = ?", batch_id);
  });
}

}  // namespace wl
