// The job engine: turns jobs into searches, searches into rounds, rounds into leases, and results into records. One
// thread owns all jobs and searches and works in events; calls of services touch the parts that have a lock (leases,
// workers, views of jobs) or the store. parts.h joins the parts and gives the order of their locks. What the engine
// knows beyond the store can be derived from it again, so a restart goes on where it was.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "server/engine/lease_ends.h"
#include "server/engine/teams.h"
#include "server/jobs/compiler.h"
#include "server/store/store.h"

namespace wl {

// Where records and devices may be that the store lacks. Both functions put what they find into the store and call
// `done` once, on any thread, perhaps before they return, at the latest after some seconds: with why something could
// not be asked for, or with "". Both are empty: there is no such place.
struct Elsewhere {
  using Done = std::function<void(const std::string& problem)>;
  std::function<void(const std::vector<RecordName>& records, const Done& done)> find_records = {};
  std::function<void(const Done& done)> find_devices = {};
};

// The machine of the workers of a principal, as whoever operates the coordinator says; empty: it is what they say.
using MachineRow = std::function<std::string(const std::string& principal)>;

// What the coordinator's own compilers make of a source.
struct Built {
  std::string object_sha256;  // empty: they cannot, and `why`
  std::string compiler;  // the one of the source, as compiler_of() finds it in an environment; empty: it is not here
  std::string why;
};
// Ends soon, without an object, once `cancel` is set by another thread.
using Build = std::function<Built(const Source&, const std::atomic<bool>& cancel)>;

struct EngineOptions {
  bool share_machine = false;                           // no lease while the coordinator itself computes
  double lease_s = 15, stuck_s = 180, patience_s = 60;  // as CoordinatorOptions
  int check_threads = 2;
  int64_t plan_memory_bytes = 0;  // of all jobs that are not done (plan_memory.h); 0: no limit
  // Gives the coordinator's word that the object of what is promoted is what build() makes of its source. On the
  // engine's thread.
  std::function<void(KernelRecord*)> vouch = {};
  Build build = {};  // takes seconds; called on threads of the pool. Empty: this coordinator builds nothing
  std::function<void(const std::string& key)> promoted = {};  // a key has a new record; on the engine's thread
  RulesOf rules = [](const std::string&) { return TeamRules(); };
  MachineRow machine_row = [](const std::string&) { return std::string(); };  // called on any thread
  Elsewhere elsewhere = {};
  // For those who count; called on any thread. lease_ended: without a report.
  std::function<void(const std::vector<Trial>&)> stored = [](const auto&) {};
  std::function<void(LeaseEnd)> lease_ended = [](LeaseEnd) {};
  bool reverify = false;  // winners are verified again when a worker with other compilers or another driver registers
  std::function<void(Reverified)> reverified = [](Reverified) {};  // what became of one; on the engine's thread
  // The groups of a new job that the store has a good enough record of, and the others.
  std::function<void(int64_t hits, int64_t misses)> looked_up = [](int64_t, int64_t) {};
  std::function<void(JobState)> job_ended = [](JobState) {};
  // Seconds from the beginning of a search, unless it began before this process, until it had a right kernel, and until
  // it had the one that is the fastest of its rounds.
  std::function<void(double)> first_kernel = [](double) {}, best_kernel = [](double) {};
};

struct LeaseGrant {
  std::string lease_id;
  int64_t attempt = 0;
  std::shared_ptr<const Batch> batch;
};
struct Acquired {
  std::vector<LeaseGrant> leases;
  bool drain = false;  // the coordinator gives no leases at present
};
struct LeaseRef {
  std::string lease_id;
  int64_t attempt = 0;
};
struct LeaseCall;  // a call that waits for work (ready_queue.h)
using AcquireDone = std::function<void(absl::StatusOr<Acquired>)>;
struct JobWatch;  // (job_views.h)
using TellJob = std::function<void(absl::StatusOr<std::shared_ptr<const Job>>)>;
enum class RenewOutcome { kOk, kLost, kCancel };
// A lease of a worker.
struct WorkerDoing {
  std::string target;
  std::string step;    // as it said when it renewed the lease; empty: it has not yet
  int64_t phase = 0;   // of the batch
  int candidates = 0;  // of the batch
  double seconds = 0;  // since it was leased, or since the coordinator started
  int64_t search_id = 0;
};
struct WorkerView {
  std::string name, team;
  uint64_t epoch = 0;
  std::vector<Device> devices;
  bool alive = false;
  int64_t last_seen_ms = 0;
  std::vector<WorkerDoing> doing;  // its leases, the oldest first
};

// Every function may be called from any thread. Errors are those of the store, and what is said.
class Engine {
 public:
  // Both must outlive the engine.
  Engine(Store* store, const Compiler* compiler, const EngineOptions& options);
  ~Engine();  // stop()

  absl::Status start();  // Goes on with the jobs that are not done.
  void drain(bool on);   // Gives no new lease while it is on; what is leased may finish.
  bool draining();
  bool leaving() const;  // leave() was called. Any thread.
  void leave();          // Makes waiting calls return and gives no new lease, because the process is about to end.
  void stop();           // Leaves, and ends the engine's threads.

  // Forgets what a principal's workers measured, confirmed and reported (Store::revoke), and gives them no more batches
  // of live searches. To be called once it cannot report any more.
  absl::StatusOr<RevokedRows> revoke(const std::string& principal);

  // Makes jobs that verify again what was made by other compilers or another driver, on the devices of workers that are
  // alive and can run `target` (empty: any). `again`: what was verified and lost before, too. Returns the jobs, which
  // may be none; each has some hundred records at most, and the next one follows it by itself.
  absl::StatusOr<std::vector<std::string>> reverify(const std::string& target, bool again);

  // --- clients
  // At once. InvalidArgument: graph or options cannot be used. ResourceExhausted: the team has too many jobs.
  // `trace`: its trace id; empty: it gets a new one. Where the device is known, the job is planned first. `gone`:
  // whether the caller has gone meanwhile, asked again and again; planning then ends, with Cancelled, and there is no
  // job. DeadlineExceeded: planning took the whole budget. ResourceExhausted also: the graph needs more memory than is
  // left, in all or for `caller`, who is known by that name; empty: by none.
  absl::StatusOr<Job> create(const std::string& request_id, const std::string& graph, const TuneOptions& options,
                             const std::string& label, const std::string& team = "", const std::string& trace = "",
                             const std::function<bool()>& gone = {}, const std::string& caller = "");
  // Memory for what is planned of a graph beside any job, for as long as the result lives. ResourceExhausted as
  // create().
  absl::StatusOr<std::shared_ptr<const void>> memory_for(const std::string& graph, const std::string& caller);
  absl::StatusOr<Job> get(int64_t id);  // NotFound
  absl::StatusOr<Job> cancel(int64_t id);
  // Calls `tell` with the job, and again whenever it has changed, until unwatch(); not with version `seen`, unless the
  // job is done. It is called on another thread, or before this returns; whoever comes late is told the newest state
  // alone. NotFound. Unavailable is told when leaving.
  absl::StatusOr<std::shared_ptr<JobWatch>> watch(int64_t id, uint64_t seen, TellJob tell);
  void unwatch(const std::shared_ptr<JobWatch>& watch);  // A call of `tell` that has begun may still be running.
  // The device that `options` mean. NotFound: none ever registered.
  absl::StatusOr<Device> device_for(const TuneOptions& options, const std::string& team = "");
  const Compiler& compiler() const;

  // --- workers
  // Registers a process of a worker and returns its epoch. `epoch`: the one that it was given before, or 0. A worker of
  // a team measures for that team alone. `machine`: on which it says that it runs; workers of one machine confirm
  // nothing of each other and take turns, and one of an unknown machine ("") confirms nobody. `rates`: of the
  // devices, in their order; there may be fewer. FailedPrecondition: a newer process has the name.
  absl::StatusOr<uint64_t> register_worker(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                                           const std::string& team = "", const std::string& machine = "",
                                           const std::vector<MeasuredRates>& rates = {});
  // A process attends until left() is called, once for each attend(). If it is not heard from within a second after
  // that, it is lost. FailedPrecondition: it is not registered under this epoch.
  absl::Status attend(const std::string& name, uint64_t epoch);
  void left(const std::string& name, uint64_t epoch);
  absl::Status may_attend(const std::string& name, uint64_t epoch);            // Unavailable: leave() was called
  absl::Status put_blob(const std::string& digest, const std::string& bytes);  // as Store::put_blob
  // Waits up to `wait` for work without blocking: `done` is called exactly once, on another thread or before this
  // returns. FailedPrecondition: not registered under this epoch. Cancelled: by cancel_acquire(). May return null.
  std::shared_ptr<LeaseCall> acquire(const std::string& name, uint64_t epoch, int max, std::chrono::milliseconds wait,
                                     AcquireDone done);
  // The caller has gone: the call gets no lease, unless it was answered already. Takes null.
  void cancel_acquire(const std::shared_ptr<LeaseCall>& call);
  // A lease is the worker's that it was granted to: of another's nothing is renewed (kLost), stored (kStale) or
  // released.
  RenewOutcome renew(const std::string& worker, const LeaseRef& lease, const std::string& phase, int64_t done);
  // Unavailable: the coordinator has just started and does not know yet; report again.
  absl::StatusOr<ReportOutcome> report(const std::string& worker, const std::string& batch_id, const LeaseRef& lease,
                                       std::vector<Trial> trials);
  void release(const std::string& worker, const LeaseRef& lease, LeaseEnd why);  // undone; another worker may have it
  bool has_lease(const std::string& principal) const;  // one of its workers measures something at present
  std::vector<WorkerView> workers();
  std::map<std::string, int64_t> ready_candidates();  // that wait for a worker, by target
  std::map<JobState, int64_t> unfinished_jobs();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Job job_of(const JobRow& row);
std::string job_name(int64_t id);                        // "jobs/7"
std::optional<int64_t> job_id(const std::string& name);  // also "7"

}  // namespace wl
