// Stores searches, rounds, leases and trials.
#include "compiler/base/code.h"
#include "server/store/sql/columns.h"
#include "server/store/store.h"

namespace wl {
namespace {

struct TrialRow {
  int64_t search_id = 0;
  PhaseTrial of;
};

template <auto field>
constexpr SqlColumn<TrialRow> of_trial(const char* name) {
  return column<TrialRow, &TrialRow::of, &PhaseTrial::trial, field>(name);
}

constexpr SqlColumn<TrialRow> kTrialColumns[] = {
    column<TrialRow, &TrialRow::search_id>("search_id"),
    column<TrialRow, &TrialRow::of, &PhaseTrial::phase>("phase"),
    of_trial<&Trial::trial>("trial"),
    of_trial<&Trial::plan>("plan"),
    of_trial<&Trial::outcome>("outcome"),
    of_trial<&Trial::samples_ns>("samples_ns"),
    of_trial<&Trial::hopeless>("hopeless"),
    of_trial<&Trial::max_error>("max_error"),
    of_trial<&Trial::bound>("bound"),
    of_trial<&Trial::message>("message"),
    of_trial<&Trial::compile_s>("compile_s"),
    of_trial<&Trial::check_s>("check_s"),
    of_trial<&Trial::measure_s>("measure_s"),
    of_trial<&Trial::object_sha256>("object_sha256"),
    column<TrialRow, &TrialRow::of, &PhaseTrial::worker>("worker"),
    {"code",
     [](const TrialRow& row) -> SqlValue {
       const CodeFacts& code = row.of.trial.code;
       return code.registers > 0 ? code_text(code) : std::string();
     },
     [](TrialRow& out, const Sql::Row& row, int at) {
       // The stored facts about a trial's code are ignored if this version cannot parse their text.
       if (const auto code = parse_code(row.text(at)); code.ok()) out.of.trial.code = *code;
     }},
    of_trial<&Trial::clock_mhz>("clock_mhz"),
    of_trial<&Trial::clocks_mhz>("clocks_mhz"),
};

constexpr SqlColumn<SearchRow> kSearchColumns[] = {
    column<SearchRow, &SearchRow::id>("id"),
    column<SearchRow, &SearchRow::key>("key"),
    column<SearchRow, &SearchRow::environment>("environment"),
    column<SearchRow, &SearchRow::generation>("generation"),
    column<SearchRow, &SearchRow::strategy>("strategy"),
    column<SearchRow, &SearchRow::seed>("seed"),
    column<SearchRow, &SearchRow::team>("team"),
};

// Returns the text of a batch's candidates. It has a line for each candidate: its number, a space and its plan.
SqlValue candidates_text(const BatchRow& batch) {
  return absl::StrJoin(batch.candidates, "\n", [](std::string* out, const PlannedTrial& candidate) {
    append(out, candidate.trial, " ", candidate.plan);
  });
}

void read_candidates(BatchRow& batch, const Sql::Row& row, int at) {
  const std::string text = row.text(at);
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    PlannedTrial candidate{0, std::string(parts.second)};
    if (absl::SimpleAtoi(parts.first, &candidate.trial)) batch.candidates.push_back(std::move(candidate));
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

constexpr SqlColumn<BatchRow> kBatchColumns[] = {
    column<BatchRow, &BatchRow::id>("id"),
    column<BatchRow, &BatchRow::search_id>("search_id"),
    column<BatchRow, &BatchRow::phase>("phase"),
    column<BatchRow, &BatchRow::first_trial>("first_trial"),
    column<BatchRow, &BatchRow::size>("size"),
    column<BatchRow, &BatchRow::check_seed>("check_seed"),
    {"state",
     [](const BatchRow& batch) -> SqlValue {
       return std::string(batch.done ? "done" : batch.leased ? "leased" : "ready");
     },
     [](BatchRow& batch, const Sql::Row& row, int at) {
       const std::string state = row.text(at);
       batch.leased = state == "leased";
       batch.done = state == "done";
     }},
    column<BatchRow, &BatchRow::attempt>("attempt"),
    column<BatchRow, &BatchRow::failures>("failures"),
    column<BatchRow, &BatchRow::lease_id>("lease_id"),
    column<BatchRow, &BatchRow::worker>("worker"),
    {"candidates", &candidates_text, &read_candidates},
    {"lost_on", [](const BatchRow& batch) -> SqlValue { return absl::StrJoin(batch.lost_on, "\n"); },
     [](BatchRow& batch, const Sql::Row& row, int at) { batch.lost_on = lines_of(row.text(at)); }},
};

const std::string kSelectBatch = cat("SELECT ", names_of<BatchRow>(kBatchColumns), " FROM batches WHERE ");
const std::string kSelectSearch = cat("SELECT ", names_of<SearchRow>(kSearchColumns, "s."), " FROM ");

absl::Status put_trials(Sql& sql, int64_t search_id, int64_t phase, const std::vector<Trial>& trials,
                        const std::string& worker) {
  for (const Trial& trial : trials)
    WL_RETURN_IF_ERROR(insert<TrialRow>(sql, "trials", kTrialColumns, {search_id, {phase, trial, worker}}));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<BatchRow>> unfinished_batch(Sql& sql, const std::string& id) {
  std::optional<BatchRow> batch;
  WL_RETURN_IF_ERROR(sql.each(
      cat(kSelectBatch, "id = ? AND state <> 'done'").c_str(),
      [&](const Sql::Row& row) {
        batch = record_from<BatchRow>(kBatchColumns, row);
        return false;
      },
      id));
  return batch;
}

// Returns the batch `id` if this lease owns it, or owned it until the batch was reported; otherwise nullopt.
absl::StatusOr<std::optional<BatchRow>> leased_batch(Sql& sql, const std::string& id, const std::string& lease_id,
                                                     int64_t attempt) {
  std::optional<BatchRow> batch;
  if (lease_id.empty()) return batch;
  WL_RETURN_IF_ERROR(sql.each(
      cat(kSelectBatch, "id = ? AND lease_id = ? AND attempt = ?").c_str(),
      [&](const Sql::Row& row) {
        batch = record_from<BatchRow>(kBatchColumns, row);
        return false;
      },
      id, lease_id, attempt));
  return batch;
}

}  // namespace

absl::StatusOr<SearchRow> Store::open_search(int64_t job_id, const SearchRow& wanted, bool retune) {
  SearchRow search;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    std::optional<SearchRow> found;
    const auto take = [&](const Sql::Row& row) {
      found = record_from<SearchRow>(kSearchColumns, row);
      return false;
    };
    WL_RETURN_IF_ERROR(sql.each(
        cat(kSelectSearch, "job_groups g JOIN searches s ON s.id = g.search_id WHERE g.job_id = ? AND g.key = ?")
            .c_str(),
        take, job_id, wanted.key));
    if (found) {
      search = *found;
      return absl::OkStatus();
    }
    WL_RETURN_IF_ERROR(sql.each(
        cat(kSelectSearch,
            "searches s WHERE s.key = ? AND s.environment = ? AND s.team = ? ORDER BY s.generation DESC LIMIT 1")
            .c_str(),
        take, wanted.key, wanted.environment, wanted.team));
    if (!found || retune) {
      search = wanted;
      WL_ASSIGN_OR_RETURN(
          search.generation,
          sql.number("SELECT coalesce(max(generation) + 1, 0) FROM searches WHERE key = ? AND environment = ?",
                     wanted.key, wanted.environment));
      // The id is left out, so SQLite chooses it.
      WL_RETURN_IF_ERROR(insert(sql, "searches", std::span(kSearchColumns).subspan(1), search));
      search.id = sql.last_id();
    } else {
      search = *found;
    }
    return sql.run("INSERT INTO job_groups (job_id, key, search_id) VALUES (?, ?, ?)", job_id, wanted.key, search.id);
  });
  WL_RETURN_IF_ERROR(done);
  return search;
}

absl::StatusOr<std::set<std::string>> Store::keys_with_search(int64_t job_id) {
  std::set<std::string> keys;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT key FROM job_groups WHERE job_id = ?",
        [&](const Sql::Row& row) {
          keys.insert(row.text(0));
          return true;
        },
        job_id);
  }));
  return keys;
}

absl::StatusOr<std::vector<PhaseTrial>> Store::trials(int64_t search_id) {
  std::vector<PhaseTrial> trials;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        cat("SELECT ", names_of<TrialRow>(kTrialColumns), " FROM trials WHERE search_id = ? ORDER BY phase, trial")
            .c_str(),
        [&](const Sql::Row& row) {
          trials.push_back(record_from<TrialRow>(kTrialColumns, row).of);
          return true;
        },
        search_id);
  }));
  return trials;
}

absl::StatusOr<std::vector<TrialPoint>> Store::trial_points(int64_t search_id, int64_t from, int64_t limit) {
  std::vector<TrialPoint> points;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT trial, outcome, samples_ns FROM trials WHERE search_id = ? AND phase = 0 AND trial >= ? "
        "ORDER BY trial LIMIT ?",
        [&](const Sql::Row& row) {
          std::vector<int64_t> samples;
          from_column(samples, row, 2);
          points.push_back({row.integer(0), static_cast<Outcome>(row.integer(1)), undisturbed_ns(samples)});
          return true;
        },
        search_id, from, limit);
  }));
  return points;
}

absl::StatusOr<std::map<std::string, int64_t>> Store::searches_of_job(int64_t job_id) {
  std::map<std::string, int64_t> searches;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT key, search_id FROM job_groups WHERE job_id = ?",
        [&](const Sql::Row& row) {
          searches.emplace(row.text(0), row.integer(1));
          return true;
        },
        job_id);
  }));
  return searches;
}

absl::StatusOr<std::optional<int64_t>> Store::job_of_search(int64_t search_id, const Reader& reader) {
  std::optional<int64_t> job;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT j.id FROM job_groups g JOIN jobs j ON j.id = g.job_id WHERE g.search_id = ?1 AND (?2 OR j.team = ?3) "
        "ORDER BY j.state < 2 DESC, j.id DESC LIMIT 1",
        [&](const Sql::Row& row) {
          job = row.integer(0);
          return false;
        },
        search_id, reader.every, reader.team);
  }));
  return job;
}

absl::StatusOr<std::vector<BatchRow>> Store::open_batches(int64_t search_id) {
  std::vector<BatchRow> batches;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        cat(kSelectBatch, "search_id = ? AND state <> 'done' ORDER BY phase, first_trial").c_str(),
        [&](const Sql::Row& row) {
          batches.push_back(record_from<BatchRow>(kBatchColumns, row));
          return true;
        },
        search_id);
  }));
  return batches;
}

absl::StatusOr<std::map<int64_t, uint64_t>> Store::unconcluded_seeds(int64_t search_id) {
  std::map<int64_t, uint64_t> seeds;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT phase, check_seed FROM batches WHERE search_id = ? AND state = 'done' AND phase > 0 AND check_seed <> "
        "0",
        [&](const Sql::Row& row) {
          seeds.emplace(row.integer(0), static_cast<uint64_t>(row.integer(1)));
          return true;
        },
        search_id);
  }));
  return seeds;
}

absl::Status Store::put_round(const std::optional<BatchRow>& batch, int64_t search_id, int64_t phase,
                              const std::vector<Trial>& rejected) {
  return write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(put_trials(sql, search_id, phase, rejected, ""));
    return batch ? insert<BatchRow>(sql, "batches", kBatchColumns, *batch) : absl::OkStatus();
  });
}

absl::StatusOr<bool> Store::drop_batch(const std::string& batch_id) {
  bool dropped = false;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.run("DELETE FROM batches WHERE id = ? AND state <> 'done'", batch_id));
    dropped = sql.changes() > 0;
    return absl::OkStatus();
  });
  WL_RETURN_IF_ERROR(done);
  return dropped;
}

absl::Status Store::split_batch(const std::string& batch_id, const std::vector<BatchRow>& parts) {
  return write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.run("DELETE FROM batches WHERE id = ? AND state = 'ready'", batch_id));
    if (sql.changes() == 0) return absl::NotFoundError(cat("batch ", batch_id, " is not ready"));
    for (const BatchRow& part : parts) WL_RETURN_IF_ERROR(insert<BatchRow>(sql, "batches", kBatchColumns, part));
    return absl::OkStatus();
  });
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

absl::StatusOr<std::vector<std::string>> Store::release_lease(const std::string& lease_id, int64_t attempt,
                                                              const std::string& lost) {
  std::optional<std::vector<std::string>> all;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.each(
        "UPDATE batches SET state = 'ready', failures = failures + 1, lease_id = '', worker = '', "
        "lost_on = CASE WHEN ?1 = '' THEN lost_on ELSE lost_on || char(10) || ?1 END "
        "WHERE lease_id = ?2 AND attempt = ?3 AND state = 'leased' RETURNING lost_on",
        [&](const Sql::Row& row) {
          all = lines_of(row.text(0));
          return true;
        },
        lost, lease_id, attempt));
    return all ? absl::OkStatus() : absl::NotFoundError("no such lease");
  });
  WL_RETURN_IF_ERROR(done);
  return *std::move(all);
}

absl::StatusOr<ReportOutcome> Store::report(const std::string& batch_id, const std::string& lease_id, int64_t attempt,
                                            const std::vector<Trial>& trials) {
  ReportOutcome outcome = ReportOutcome::kStale;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(const std::optional<BatchRow> batch, leased_batch(sql, batch_id, lease_id, attempt));
    if (!batch) return absl::OkStatus();
    if (batch->done) {
      outcome = ReportOutcome::kDuplicate;
      return absl::OkStatus();
    }
    outcome = ReportOutcome::kAccepted;
    WL_RETURN_IF_ERROR(put_trials(sql, batch->search_id, batch->phase, trials, batch->worker));
    WL_RETURN_IF_ERROR(add_search_time(sql, batch->search_id, trials));
    return sql.run("UPDATE batches SET state = 'done' WHERE id = ?", batch_id);
  });
  WL_RETURN_IF_ERROR(done);
  return outcome;
}

absl::StatusOr<std::optional<ReportOutcome>> Store::reported(const std::string& batch_id, const std::string& lease_id,
                                                             int64_t attempt) {
  std::optional<ReportOutcome> outcome;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(const std::optional<BatchRow> batch, leased_batch(sql, batch_id, lease_id, attempt));
    if (!batch) {
      outcome = ReportOutcome::kStale;
    } else if (batch->done) {
      outcome = ReportOutcome::kDuplicate;
    }
    return absl::OkStatus();
  }));
  return outcome;
}

absl::Status Store::abandon_batch(const std::string& batch_id, const std::vector<Trial>& trials) {
  return write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(const std::optional<BatchRow> batch, unfinished_batch(sql, batch_id));
    if (!batch) return absl::OkStatus();
    WL_RETURN_IF_ERROR(put_trials(sql, batch->search_id, batch->phase, trials, ""));
    return sql.run("UPDATE batches SET state = 'done', lease_id = '' WHERE id = ?", batch_id);
  });
}

}  // namespace wl
