// Jobs, batches, trials and records for tests of the store, and a sequence of writes (the story) that several tests
// use.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "compiler/base/sha256.h"
#include "server/store/store.h"
#include "tests/server/outside.h"
#include "tests/unit/scratch.h"

namespace wl {

inline std::unique_ptr<Store> open_or_die(const StoreOptions& options) {
  auto store = Store::open(options);
  if (!store.ok()) ADD_FAILURE() << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// Runs `work` in a child process. Returns what `work` returned, which must be above 0, or 0 if SIGKILL killed the
// child. Any other end of the child, such as an _exit() of `work`, fails the test.
int number_of_child(const std::function<int()>& work);

// Returns a key for a name. It is a digest, as keys are in every record.
inline std::string key_of(const std::string& name) {
  return sha256_hex(name);
}
inline const std::string kKey = key_of("k");

inline JobRow some_job(const std::string& request) {
  JobRow job;
  job.request_id = request;
  job.body_hash = "hash";
  job.graph = "graph {}";
  job.created_ms = 1;
  return job;
}

inline BatchRow some_batch(const std::string& id, int64_t search, int64_t first = 0) {
  BatchRow batch;
  batch.id = id;
  batch.search_id = search;
  batch.first_trial = first;
  batch.size = 2;
  batch.candidates = {{first, "plan one"}, {first + 1, "plan two"}};
  return batch;
}

inline Trial some_trial(int64_t number) {
  Trial trial;
  trial.trial = number;
  trial.plan = cat("plan ", number);
  trial.outcome = Outcome::kCorrect;
  trial.samples_ns = {100, 90, 95};
  trial.max_error = 0.5;
  trial.bound = 1;
  trial.message = "fine";
  trial.compile_s = 0.25;
  return trial;
}

inline KernelRecord some_record(const std::string& key, const std::string& plan) {
  KernelRecord record;
  record.key = key;
  record.environment = "gcc 12";
  record.device.target = "cpu:avx2";
  record.plan = plan;
  record.source.prelude = std::string(3000, 'p');
  record.source.entry = "wl_k";
  record.source.text = cat("void ", plan, "() {}");
  record.samples_ns = {5};
  record.digest = record_digest(record);
  return record;
}

inline JobResult some_result(const std::string& key) {
  JobResult result;
  result.groups.emplace_back().key = key;
  result.groups[0].plan = "the plan";
  result.device.target = "cpu";
  return result;
}

// Creates a job and a search for it. Returns the search's id.
int64_t make_search(Store& store, const std::string& request = "r");

// Runs the story: eight writes of one job, from its creation to its result. Calls `acknowledged` after each write that
// succeeds, and returns the error of the first that fails. Each variant stores other bytes, and more of them than the
// one before.
absl::Status tell_story(Store& store, const std::function<void()>& acknowledged, int variant = 0);
// Expects that the store has the first `acknowledged` writes, and each of the other writes as a whole or not at all.
void check_story(Store& store, int acknowledged, int variant = 0);

}  // namespace wl
