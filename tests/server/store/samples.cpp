#include "tests/server/store/samples.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace wl {
namespace {

std::string more(int variant) {
  return std::string(static_cast<size_t>(variant) * 3001, static_cast<char>('a' + variant));
}

std::string object_of(int variant) {
  return "o" + more(variant);
}

JobRow job_of(int variant) {
  JobRow job = some_job("r");
  job.graph += more(variant);
  return job;
}

Trial trial_of(int variant, int64_t number) {
  Trial trial = some_trial(number);
  trial.message += more(variant);
  return trial;
}

KernelRecord record_of(int variant) {
  KernelRecord record = some_record(kKey, "p");
  record.source.text += more(variant);
  record.digest = record_digest(record);
  return record;
}

JobResult result_of(int variant) {
  JobResult result = some_result(kKey);
  result.groups[0].plan += more(variant);
  return result;
}

}  // namespace

absl::Status tell_story(Store& store, const std::function<void()>& acknowledged, int variant) {
  WL_ASSIGN_OR_RETURN(const JobRow job, store.create_job(job_of(variant)));
  acknowledged();
  WL_ASSIGN_OR_RETURN(const SearchRow search, store.open_search(job.id, {0, kKey, "gcc 12", "s", 0, 0}, false));
  acknowledged();
  WL_RETURN_IF_ERROR(store.put_round(some_batch("b", search.id), search.id, 0, {}));
  acknowledged();
  WL_ASSIGN_OR_RETURN(const int64_t attempt, store.lease_batch("b", "L", "w"));
  acknowledged();
  WL_RETURN_IF_ERROR(store.report("b", "L", attempt, {trial_of(variant, 0), trial_of(variant, 1)}).status());
  acknowledged();
  WL_RETURN_IF_ERROR(store.put_blob(sha256_hex(object_of(variant)), object_of(variant)));
  acknowledged();
  WL_RETURN_IF_ERROR(store.promote(record_of(variant), search.id));
  acknowledged();
  JobRow end = job;
  end.state = JobState::kSucceeded;
  end.result = result_of(variant);
  WL_RETURN_IF_ERROR(store.finish_job(end, "answer"));
  acknowledged();
  return absl::OkStatus();
}

void check_story(Store& store, int acknowledged, int variant) {
  const auto job = *store.job(1);
  const auto trials = *store.trials(1);
  const auto open = *store.open_batches(1);
  if (acknowledged >= 1) {
    ASSERT_TRUE(job.has_value());
    EXPECT_EQ(job->graph, job_of(variant).graph);
  }
  if (acknowledged >= 3) {
    EXPECT_EQ(open.size() + trials.size() / 2, 1u) << "open or measured";
  }
  if (acknowledged == 4 && trials.empty()) {
    EXPECT_TRUE(open[0].leased);
  }
  if (acknowledged >= 5) {
    EXPECT_EQ(trials.size(), 2u);
  }
  EXPECT_TRUE(trials.empty() || trials.size() == 2) << "half a report";
  for (const PhaseTrial& each : trials) EXPECT_EQ(each.trial.message, trial_of(variant, 0).message);
  EXPECT_EQ(trials.empty() && acknowledged >= 3, !open.empty() && acknowledged >= 3);
  if (acknowledged >= 6) {
    EXPECT_TRUE(store.missing_blobs({sha256_hex(object_of(variant))})->empty());
  }
  const auto record = *store.record_by_key(kKey, "gcc 12");
  if (acknowledged >= 7) {
    ASSERT_TRUE(record.has_value());
    EXPECT_TRUE(record->record == record_of(variant));
  }
  if (acknowledged >= 8) {
    EXPECT_EQ(job->state, JobState::kSucceeded);
  }
  const auto answer = *store.whole_answer("answer");
  const bool ended = job.has_value() && job->state == JobState::kSucceeded;
  EXPECT_EQ(answer.has_value(), ended) << "a job and its answer end together";
  if (ended) {
    EXPECT_TRUE(job->result == result_of(variant));
    EXPECT_TRUE(answer->result == result_of(variant));
  }
}

int number_of_child(const std::function<int()>& work) {
  int out[2];
  if (pipe(out) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    const int number = work();
    _exit(write(out[1], &number, sizeof number) == sizeof number ? 0 : 1);
  }
  ::close(out[1]);
  int number = 0;
  if (read(out[0], &number, sizeof number) != sizeof number) number = 0;
  ::close(out[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(number > 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) << "status " << status;
  return number;
}

int64_t make_search(Store& store, const std::string& request) {
  return store.open_search(store.create_job(some_job(request))->id, {0, kKey, "gcc 12", "s", 0, 0}, false)->id;
}

}  // namespace wl
