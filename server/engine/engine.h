// The job engine: turns jobs into searches, searches into rounds, rounds into leases, and results into records. One
// thread, the engine's thread, owns all jobs and searches and processes events; calls of services use the store and
// those parts that have a lock (leases, workers, views of jobs). impl.h joins the parts and gives the order of their
// locks. Everything that the engine keeps in memory can be derived from the store, so a restarted engine resumes its
// work.
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
#include "proto/usage.h"
#include "server/engine/lease_ends.h"
#include "server/engine/looked_up.h"
#include "server/engine/teams.h"
#include "server/jobs/compiler.h"
#include "server/store/store.h"

namespace wl {

// The upstream coordinator, which may have records and devices that the store lacks. Both functions put what they find
// into the store and call `done` once, on any thread, possibly before they return and at the latest after some seconds.
// `problem` is empty, or says why something could not be asked for. Both functions are empty if there is no upstream.
struct Elsewhere {
  using Done = std::function<void(const std::string& problem)>;
  std::function<void(const std::vector<RecordName>& records, const Done& done)> find_records = {};
  std::function<void(const Done& done)> find_devices = {};
};

// Returns the machine on which a principal's workers run, if a row of the callers file names it; "" if no row does:
// then the machine that the workers themselves report is taken.
using MachineRow = std::function<std::string(const std::string& principal)>;

// Result of compiling a source with the coordinator's own compilers.
struct Built {
  std::string object_sha256;  // SHA-256 of the object; empty: it could not be built, for the reason `why`
  std::string compiler;       // name and version of the compiler (compiler_of()); empty: this machine does not have it
  std::string why;
};
// Compiles a source. Once another thread sets `cancel`, returns soon and without an object.
using Build = std::function<Built(const Source&, const std::atomic<bool>& cancel)>;

// The options of a coordinator that its engine obeys.
struct EngineSettings {
  // Embedded mode: the worker runs on the coordinator's machine, so no lease is given while the coordinator itself
  // computes, which would disturb timings. Such a process holds the store only for the duration of one command; another
  // process that finds the store held learns this from in_use_by() (server/coordinator.h).
  bool share_machine = false;
  // Whether records from other compilers or another driver are verified again when a worker registers whose compilers
  // or driver its machine did not have before.
  bool reverify = false;
  // Whether kernels that programs run (count_uses()) are searched further while nobody waits for the workers, and the
  // hours of local time, from 0 to 23, from which and until which such searches may begin; equal: at any time.
  struct Background {
    bool on = false;
    int from_hour = 0, to_hour = 0;
  } background = {};
  // For tests: returns the number of the present day, in days since 1970 (UTC). Called on any thread.
  std::function<int64_t()> today = [] { return unix_ms_now() / 86'400'000; };
  double lease_s = 15;   // seconds after which a lease ends if the worker does not renew it
  double stuck_s = 180;  // seconds without progress of the runner after which a lease is lost, although it is renewed
  // Seconds after which a leased batch is given to another worker that waits for work. Where the usual time of such
  // batches is known, several times that time counts instead (server/engine/bounds/overdue.h).
  double patience_s = 60;
  int check_threads = 2;          // number of threads of the pool that makes plans, checks and proposals
  int64_t plan_memory_bytes = 0;  // limit in bytes on the graphs and plans of all unfinished jobs; 0: no limit
};

struct EngineOptions : EngineSettings {
  // Adds the coordinator's signed statement that build() makes the record's object from its source. Called on the
  // engine's thread.
  std::function<void(KernelRecord*)> vouch = {};
  // Whether this coordinator may sign a stored record again: it signs nothing, or the record has its signature.
  std::function<bool(const KernelRecord&)> is_ours = [](const KernelRecord&) { return true; };
  Build build = {};  // compiles promoted kernels on threads of the pool, which takes seconds; empty: none is compiled
  // Called on the engine's thread when a key has a new record.
  std::function<void(const std::string& key)> promoted = {};
  RulesOf rules = [](const std::string&) { return TeamRules(); };
  // Reads the machine of a principal's workers from the callers file. Called on any thread.
  MachineRow machine_row = [](const std::string&) { return std::string(); };
  Elsewhere elsewhere = {};
  // For metrics; called on any thread. `stored` gets the trials of a batch once they are stored; `lease_ended` is
  // called for leases that end without a report.
  std::function<void(const std::vector<Trial>&)> stored = [](const auto&) {};
  std::function<void(LeaseEnd)> lease_ended = [](LeaseEnd) {};
  // Called on the engine's thread with the outcome of verifying a record again.
  std::function<void(Reverified)> reverified = [](Reverified) {};
  // Called for a new job with the numbers of its groups that have, and have not, a sufficient record in the store.
  std::function<void(int64_t hits, int64_t misses)> looked_up = [](int64_t, int64_t) {};
  // Called for a job that has ended with a result, with the numbers of its kernels that the store had, and lacked,
  // before the job.
  std::function<void(const LookedUp&)> found = [](const LookedUp&) {};
  std::function<void(JobState)> job_ended = [](JobState) {};
  // Called with the seconds from the start of a search until its first correct kernel, and until the fastest kernel of
  // its rounds; not called for searches that began before this process.
  std::function<void(double)> first_kernel = [](double) {}, best_kernel = [](double) {};
};

struct LeaseGrant {
  std::string lease_id;
  int64_t attempt = 0;
  std::shared_ptr<const Batch> batch;
};
struct Acquired {
  std::vector<LeaseGrant> leases;
  bool drain = false;  // whether the coordinator is draining and gives no leases
};
struct LeaseRef {
  std::string lease_id;
  int64_t attempt = 0;
};
struct LeaseCall;  // a worker's call that waits for work (ready_queue.h)
using AcquireDone = std::function<void(absl::StatusOr<Acquired>)>;
struct JobWatch;  // a watch of a job by a client (job_views.h)
using TellJob = std::function<void(absl::StatusOr<std::shared_ptr<const Job>>)>;
enum class RenewOutcome { kOk, kLost, kCancel };
// A lease that a worker holds, for status pages.
struct WorkerDoing {
  std::string target;
  std::string step;    // the step that the worker named at its last renewal; empty: not renewed yet
  int64_t phase = 0;   // phase of the leased batch: 0 for a round of a search, more for any other batch
  int candidates = 0;  // number of candidates of the leased batch
  double seconds = 0;  // seconds since the lease began, or since the coordinator started if that is later
  int64_t search_id = 0;
};
struct WorkerView {
  std::string name, team;
  uint64_t epoch = 0;
  std::vector<Device> devices;
  bool alive = false;
  int64_t last_seen_ms = 0;
  std::vector<WorkerDoing> doing;  // the worker's leases, oldest first
};

// All functions may be called from any thread. Besides the errors that their comments list, they return those of the
// store.
class Engine {
 public:
  // `store` and `compiler` must outlive the engine.
  Engine(Store* store, const Compiler* compiler, const EngineOptions& options);
  ~Engine();  // calls stop()

  absl::Status start();  // Starts the threads and resumes the jobs that are not done.
  void drain(bool on);   // While draining is on, no new leases are given; leased batches may finish.
  bool draining();
  bool leaving() const;  // whether leave() was called
  void leave();          // Makes waiting calls return and gives no new leases: the process is about to end.
  void stop();           // Calls leave() and ends the engine's threads.

  // Deletes what a principal's workers measured, confirmed and reported (Store::revoke), and gives them no more batches
  // of live searches. The caller must have made sure that the principal can report nothing more.
  absl::StatusOr<RevokedRows> revoke(const std::string& principal);

  // Makes jobs that verify records of other compilers or another driver again, on the devices of live workers that can
  // run code for `target` (empty: any target). `again`: also verifies records that were verified before with the
  // outcome kLost. Returns the names of the jobs, possibly none. A job has at most 256 records; further records get a
  // job once that job has succeeded.
  absl::StatusOr<std::vector<std::string>> reverify(const std::string& target, bool again);

  // --- Functions for clients

  // Makes a job, planned already if its device is known, or returns the job with this `request_id`. `trace`: the job's
  // trace id; empty: a new one. `caller`: name of the caller; empty: unknown. `gone` is called repeatedly during
  // planning and returns whether the caller has gone; planning then ends with Cancelled, and no job is made.
  // InvalidArgument: the graph or an option is invalid. ResourceExhausted: the team has too many jobs, or the graph
  // needs more memory than is left in all or for this caller. DeadlineExceeded: planning took the whole budget.
  absl::StatusOr<Job> create(const std::string& request_id, const std::string& graph, const TuneOptions& options,
                             const std::string& label, const std::string& team = "", const std::string& trace = "",
                             const std::function<bool()>& gone = {}, const std::string& caller = "");
  // Reserves memory for planning a graph outside of jobs, until the result is destroyed. ResourceExhausted: as
  // create().
  absl::StatusOr<std::shared_ptr<const void>> memory_for(const std::string& graph, const std::string& caller);
  absl::StatusOr<Job> get(int64_t id);  // NotFound: there is no job with this id
  absl::StatusOr<Job> cancel(int64_t id);
  // Calls `tell` with the state of the job, now and after every change, until unwatch(). A state whose version is
  // `seen` is left out, unless the job is done. `tell` runs on another thread, or on this one before watch() returns;
  // while a call of `tell` runs, older states are skipped in favour of the newest. After leave(), `tell` gets
  // Unavailable. NotFound: no such job.
  absl::StatusOr<std::shared_ptr<JobWatch>> watch(int64_t id, uint64_t seen, TellJob tell);
  void unwatch(const std::shared_ptr<JobWatch>& watch);  // Ends a watch; a call of its `tell` may still run afterwards.
  // Returns the device that `options` ask for. NotFound: no such device was ever registered.
  absl::StatusOr<Device> device_for(const TuneOptions& options, const std::string& team = "");
  const Compiler& compiler() const;

  // Adds what programs of a team ran to the sums of the present day. Returns how many of the keys have a record that
  // the team may see; the others are ignored.
  absl::StatusOr<int64_t> count_uses(const std::string& team, const std::vector<KernelUse>& uses);

  // Returns what programs ran, for those whose jobs the reader may see; the lists of kernels and of graphs have at most
  // `most` items. The sums may be some seconds old. May take seconds after the start.
  absl::StatusOr<Usage> usage(const Reader& reader, int most);

  // --- Functions for workers

  // Registers a process of a worker and returns its epoch. `epoch`: the one that the process was given before, or 0. A
  // worker of a team measures for that team only. `machine`: the machine on which the process says that it runs ("":
  // unknown). Workers of one machine do not confirm each other's kernels and measure in turns; a worker of an unknown
  // machine confirms nobody's kernels. `rates`: measured rates of the devices, in the order of the devices, possibly
  // fewer. FailedPrecondition: a newer process has taken the name.
  absl::StatusOr<uint64_t> register_worker(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                                           const std::string& team = "", const std::string& machine = "",
                                           const std::vector<MeasuredRates>& rates = {});
  // attend() and left() say that a worker process has begun and ended a call of Attend; every attend() is followed by
  // one left(). When a process has no open call left, it counts as lost unless it is heard from within a second.
  // FailedPrecondition: the process is not registered under this epoch. ResourceExhausted: it has too many open calls.
  absl::Status attend(const std::string& name, uint64_t epoch);
  void left(const std::string& name, uint64_t epoch);
  // Returns OK if attend() may be called. Unavailable: leave() was called. FailedPrecondition: as attend().
  absl::Status may_attend(const std::string& name, uint64_t epoch);
  // Stores an object, as Store::put_blob() does.
  absl::Status put_blob(const std::string& digest, const std::string& bytes);
  // Waits up to `wait` for work, without blocking: `done` is called exactly once, on another thread or before this
  // function returns. `done` gets FailedPrecondition if the worker is not registered under this epoch (the result is
  // then null), and Cancelled if cancel_acquire() was called for the result.
  std::shared_ptr<LeaseCall> acquire(const std::string& name, uint64_t epoch, int max, std::chrono::milliseconds wait,
                                     AcquireDone done);
  // Says that the caller of acquire() has gone: the call gets no lease, unless it was answered already. `call` may be
  // null.
  void cancel_acquire(const std::shared_ptr<LeaseCall>& call);
  // A lease may be used only by the worker that it was granted to; for other workers renew() returns kLost, report()
  // returns kStale, and release() does nothing.
  RenewOutcome renew(const std::string& worker, const LeaseRef& lease, const std::string& phase, int64_t done);
  // Stores the trials of a batch. Unavailable: the coordinator has just started and does not know the batch yet, so the
  // worker has to report again.
  absl::StatusOr<ReportOutcome> report(const std::string& worker, const std::string& batch_id, const LeaseRef& lease,
                                       std::vector<Trial> trials);
  // Gives the batch back unfinished, for other workers.
  void release(const std::string& worker, const LeaseRef& lease, LeaseEnd why);
  bool has_lease(const std::string& principal) const;  // whether a worker of the principal has a lease
  std::vector<WorkerView> workers();
  std::map<std::string, int64_t> ready_candidates();  // number of candidates that wait for a worker, by target
  std::map<JobState, int64_t> unfinished_jobs();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Job job_of(const JobRow& row);
std::string job_name(int64_t id);                        // returns the name of a job, such as "jobs/7"
std::optional<int64_t> job_id(const std::string& name);  // the id in a name, "jobs/7" or "7"; nullopt: no such name

}  // namespace wl
