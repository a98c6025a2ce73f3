// The parts of the engine, joined. Each owns its state and the lock over it, and says in its header what it is:
//
//   EventLoop  queued events, steps and pool work       one mutex, and an atomic count
//   Workers    who is registered                        one mutex
//   Leases     what is handed out                       one mutex
//     ReadyQueue   what is ready, and who waits for it  one mutex, innermost
//   JobViews   what clients see of jobs                 one mutex
//   Searches   the live searches of groups              none: the engine's thread only
//   Jobs       the jobs that are not done               none: the engine's thread only
//   PlanMemory what their graphs and plans may take     one mutex
//
// The order of locks (docs/design/service.md#engine-parts-and-locks):
//   The five mutexes are leaves: who holds one takes no other lock, calls no other part and runs no SQL. What is needed
//   of two parts is copied out of the first and then given to the second. EventLoop::busy() takes no lock and may be
//   asked under any. Leases has its queue of ready batches below it: the mutex of ReadyQueue may be taken under that of
//   Leases, never the other way round.
#pragma once

#include <atomic>

#include "server/engine/bounds/plan_memory.h"
#include "server/engine/job_views.h"
#include "server/engine/jobs.h"
#include "server/engine/leases.h"
#include "server/engine/searches.h"
#include "server/engine/workers.h"

namespace wl {

struct Engine::Impl {
  Impl(Store* store_in, const Compiler* compiler_in, const EngineOptions& options_in)
      : store(store_in), compiler(compiler_in), options(options_in) {}

  Store* const store;
  const Compiler* const compiler;
  const EngineOptions options;

  PlanMemory memory{options.plan_memory_bytes};
  JobViews views;
  Workers workers{store, duration_of(options.lease_s), options.machine_row};
  EventLoop loop{[this] { leases.wake(); }};
  Leases leases{store,
                &workers,
                &loop,
                duration_of(options.lease_s),
                duration_of(options.stuck_s),
                options.patience_s,
                options.share_machine,
                {.stored =
                     [this](int64_t search_id, const std::string& batch_id, const std::vector<Trial>& trials,
                            const std::string& worker) {
                       options.stored(trials);
                       loop.post([this, search_id, batch_id, trials, worker] {
                         searches.on_trials(search_id, batch_id, trials, worker);
                         races.on_trials(search_id, batch_id, trials);
                       });
                     },
                 .split =
                     [this](int64_t search_id, const std::string& batch_id, const std::vector<BatchRow>& parts) {
                       loop.post([this, search_id, batch_id, parts] { searches.on_split(search_id, batch_id, parts); });
                     },
                 .ended = options.lease_ended,
                 .store_failed =
                     [this](int64_t search_id, const absl::Status& status) {
                       loop.post([this, search_id, status] {
                         searches.on_store_failure(search_id, status);
                         races.on_store_failure(search_id, status);
                       });
                     }}};
  Searches searches{store, compiler, &loop, &leases, &workers, &jobs, options};
  Races races{store, &leases, &workers, options, [this](int64_t job) { jobs.on_race(job); }};
  Jobs jobs{store,   compiler,
            &loop,   &workers,
            &views,  &searches,
            &races,  [this] { leases.recovered(); },
            options, [this](const Device& device, const std::string& team) { go_on_with_winners(device, team); }};

  // Winners that other environments have for a device (reverify/find.cpp).
  void look_for_winners(const Device& device, const std::string& team);    // the engine's thread: a worker has come
  void go_on_with_winners(const Device& device, const std::string& team);  // any thread: after a job of some of them
  // Any thread; reads many records. Makes jobs for the winners of a worker's device and team, of one target or of all.
  absl::StatusOr<std::vector<std::string>> queue_winners(const Device& device, const std::string& team,
                                                         const std::string& target, bool again);
  void end_lost();  // the engine's thread
  std::atomic<bool> leaving = false;
  std::map<std::string, Clock::time_point> looked;  // when, by class of worker; the engine's thread only
};

// A job that a client asks for, before it is stored: answered from the store where that suffices.
struct NewJob {
  JobRow row;
  std::optional<JobPlan> plan;   // made for a job that is to be searched
  std::string result_id;         // under which its result, if it has one, becomes a whole answer
  int64_t hits = 0, misses = 0;  // groups that the store has a good enough record of, and others
};
// A job whose device is not known yet waits for one: that is no error. What the store lacks is looked for elsewhere
// first.
absl::StatusOr<NewJob> answer_or_plan(JobRow row, Store& store, const Compiler& compiler, const Workers& workers,
                                      const Elsewhere& elsewhere, Work* work);

}  // namespace wl
