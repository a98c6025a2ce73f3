// The store of a coordinator: one SQLite file, and a folder of compiled objects beside it. All writes go through one
// connection in one thread, which commits the queued writes in one transaction (fsync included) and only then answers.
// So a change whose function returned OK survives a crash, and a function that returned an error changed nothing,
// unless the store broke (StoreOptions::on_broken). Reads use read-only connections. A record is *blessed* if it is the
// one that is served for its key and environment in its namespace. A new field of a job, search, batch or trial needs a
// migration in schema/ and a row of its columns.
//
// Threads: every function may be called from any thread and blocks until it is done.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"
#include "proto/trust/signing.h"

namespace wl {

class FileCalls;
class Sql;

struct StoreOptions {
  std::string file;
  bool in_turn = false;      // this process has the store for one command, and others wait for that (StoreLock)
  bool quick_check = false;  // check the file when it is opened after an unclean stop; takes longer for larger files
  int64_t max_pages = 0;     // the largest size of the database, in pages of 4 KiB; 0 = no limit
  // Limit of the bytes of objects; those that no blessed or pinned record names make room for new ones. 0 = none.
  int64_t max_object_bytes = 0;
  // Tests: called at named points ("begin", the text of every statement, "commit", "committed", "checkpoint",
  // "checkpointed", and those of objects.h), where a test may end the process.
  std::function<void(const char*)> at_point = {};
  // Called once, on any thread, when it is unknown which of the last writes are on the disk: after a failed fsync,
  // after an I/O error of a COMMIT, or if another program took the store's files away. Every function returns DataLoss
  // from then on. The process must end; the next one reads what the disk has.
  std::function<void(const absl::Status&)> on_broken = {};
  std::string vfs = {};              // tests: the name of the sqlite3_vfs to use; empty: SQLite's default
  const FileCalls* files = nullptr;  // tests: the calls for object files; null: those of the system
};

// Counts since the store was opened.
struct StoreStats {
  int64_t queued = 0;  // writes that wait now, for the end of the transaction before theirs
  int64_t writes = 0, transactions = 0;
  int64_t checkpoints = 0, unfinished_checkpoints = 0;  // unfinished: the write-ahead log was not emptied
  int64_t wal_bytes = 0;  // of the log that no checkpoint has moved yet; the log's file may be larger
  int64_t damaged = 0;    // rows and objects that failed their digest when they were read
  bool unclean = false;   // whoever had the store before did not close it
  bool checked = false;   // the file was checked for damage when it was opened
  bool broken = false;
};

// Who looks at jobs and records. A team ("": none) sees its own jobs, its own records, and the shared records, which
// are those of no team. Of one key, its own record comes before the shared one.
struct Reader {
  std::string team = {};
  bool every = false;  // sees the jobs and records of all teams
};

struct JobRow {
  int64_t id = 0;
  std::string team, request_id, body_hash, label, graph, trace;
  TuneOptions options;
  std::optional<Device> device;
  JobState state = JobState::kQueued;
  bool cached = false, cancelling = false;
  std::optional<JobResult> result;
  absl::Status error;
  int64_t created_ms = 0, started_ms = 0, finished_ms = 0;
  int64_t plan_attempts = 0;  // how often planning began without ending; it may have crashed the coordinator
};

struct SearchRow {
  int64_t id = 0;
  std::string key, environment, strategy;
  int64_t generation = 0;
  uint64_t seed = 0;
  std::string team = {};
};

struct BatchRow {
  std::string id;
  int64_t search_id = 0;
  int64_t phase = 0, first_trial = 0, size = 0;
  uint64_t check_seed = 0;
  bool leased = false, done = false;  // neither: ready
  int64_t attempt = 0, failures = 0;  // failures: leases that ended without a report, for any reason
  std::string lease_id, worker;
  std::vector<PlannedTrial> candidates;
  std::vector<std::string> lost_on;  // names of the workers that were lost with the batch, one for each loss
};

// A point of a search's curve: the outcome and time of one trial.
struct TrialPoint {
  int64_t trial = 0;
  Outcome outcome = Outcome::kRejected;
  double ns = 0;  // undisturbed_ns of its samples; 0: it has none
};

struct RevokedRows {
  int64_t records = 0, trials = 0;
};

// Where a record comes from: a search of this coordinator, its upstream, or a coordinator whose upstream it is.
enum class RecordOrigin { kHere, kUpstream, kBelow };
inline constexpr int64_t kSearchElsewhere = 0;  // the search of records from other coordinators; it has no trials

struct RecordRow {
  KernelRecord record;
  int64_t search_id = 0;
  int64_t created_ms = 0;
  bool pinned = false;
  std::string team = {};  // empty: it is shared
};

// Names a record by its digest or, if that is empty, the blessed one by its key and environment (empty: any).
struct RecordName {
  std::string key = {}, environment = {}, digest = {};
  Reader reader = {};
};
struct RecordMessage {
  std::string key, bytes;  // bytes: a serialized v1::KernelRecord
};

// The names of a record. A new record gets a higher id than all that are stored.
struct NumberedRecord {
  int64_t id = 0;
  std::string digest, key, environment;
};

// Of records: those for a machine (machine_name() in functions.h), those of groups that a job with this label searched,
// and those whose key begins with these hexadecimal digits in lower case, at most 64. Empty: of any.
struct RecordFilter {
  std::string machine = {}, model = {}, key_prefix = {};
};
struct RecordCounts {
  using Names = std::vector<std::pair<std::string, int64_t>>;  // each with its number of records or groups; by name
  Names machines, models;
};

// A kernel from another environment that a job verifies again (docs/design/service.md#verifying-winners-again).
struct ReverifiedRow {
  int64_t job_id = 0;
  std::string digest, key;                      // of the record from the other environment
  std::string environment_before, environment;  // in which it was made, and in which it is verified
  Reverified outcome = Reverified::kWaiting;
  std::string plan_before, plan;  // plan: of the kernel that `environment` serves; empty: none
  double before_ns = 0, ns = 0;   // undisturbed_ns() of both
  std::string message = {};       // for people: what has changed
};

struct RecordCursor {
  int64_t created_ms = 0;
  std::string digest;
};

// How many bytes a store may take; 0: any number. Blessed and pinned records, unfinished jobs and their trials stay.
struct StoreBounds {
  int64_t database_bytes = 0, object_bytes = 0;
};
// What was removed, and how many bytes are in use afterwards.
struct Evicted {
  int64_t records = 0, objects = 0, jobs = 0, answers = 0;
  int64_t database_bytes = 0, object_bytes = 0;
};

enum class ReportOutcome { kAccepted, kDuplicate, kStale };

class Store {
 public:
  // Opens the file, or creates it. Unavailable: another coordinator has it, by whatever name; PermissionDenied: not
  // writable; FailedPrecondition: of a newer Warploom, not a Warploom store, several hard links, or a network disk;
  // DataLoss: damaged; InvalidArgument: not the name of a file. A refused file is not changed.
  static absl::StatusOr<std::unique_ptr<Store>> open(const StoreOptions& options);
  ~Store();
  // Checkpoints and closes; nothing may be called afterwards.
  void close();
  const std::string& file() const;
  StoreStats stats() const;
  static int64_t schema_version();
  static std::string sqlite_version();

  // --- upkeep (backup.cpp, evict.cpp)
  // Makes a backup of all writes that were acknowledged before, the file `to` and its folder of objects, and checks it.
  // The store stays in use. On the same disk both share the object files. AlreadyExists: `to` exists.
  absl::Status backup(const std::string& to);
  // Replaces a store by a backup. Unavailable: a process uses the store. NotFound or DataLoss: the backup is missing or
  // damaged; the store is then unchanged.
  static absl::Status restore(const std::string& from, const std::string& to);
  // Removes rows and objects until the store is within its bounds. From the database: records that are neither blessed
  // nor pinned, finished jobs with the trials that only they led to, and whole answers. Of the objects: those that no
  // blessed or pinned record names.
  absl::StatusOr<Evicted> evict(const StoreBounds& bounds);

  // --- jobs (jobs.cpp)
  // Stores a job and returns it with its id, or returns the job that has its request_id (InvalidArgument: with another
  // body or team). The job's result, if any, becomes the whole answer for result_id, unless that is empty.
  // ResourceExhausted: the job is not done, and most_unfinished jobs of its team are not (0: any number may be).
  absl::StatusOr<JobRow> create_job(const JobRow& job, const std::string& result_id = "", int64_t most_unfinished = 0);
  absl::Status set_job_running(int64_t id, const Device& device, int64_t started_ms);
  absl::Status set_job_cancelling(int64_t id);
  // Planning of a job begins (true) or ends. Returns how often it has begun without ending, this time included.
  absl::StatusOr<int64_t> set_job_planning(int64_t id, bool begins);
  // Ends a job that is not done: `end` gives state, cached, result, error and finished_ms. With a result_id, the result
  // also becomes the whole answer for it.
  absl::Status finish_job(const JobRow& end, const std::string& result_id);
  absl::StatusOr<std::optional<JobRow>> job(int64_t id);
  absl::StatusOr<std::optional<std::string>> team_of_job(int64_t id);
  absl::StatusOr<std::optional<JobRow>> job_by_request(const std::string& request_id);
  absl::StatusOr<std::vector<JobRow>> unfinished_jobs();  // oldest first
  // Newest first, ids below `before` (0 = all), without graphs and results. `unfinished`: only jobs that are not done.
  absl::StatusOr<std::vector<JobRow>> list_jobs(int64_t before, int limit, const Reader& reader = {},
                                                bool unfinished = false);
  // The result of a finished job, stored under a hash of graph, device, options and team (result_key()).
  struct WholeAnswer {
    JobResult result;
    int64_t trials_asked = 0;
    double budget_s = 0;
  };
  // Returns a whole answer if the objects of all its kernels are there and undamaged; reads these objects.
  absl::StatusOr<std::optional<WholeAnswer>> whole_answer(const std::string& result_id);

  // --- winners that are verified again (reverified.cpp)
  // The digests of the records that a job verifies or has verified in the environment. With `again`: only of jobs that
  // are not done. Otherwise also of finished jobs, but not where a job failed before it came to the record.
  absl::StatusOr<std::set<std::string>> verified_in(const std::string& environment, bool again);
  // Stores a job that verifies records of other environments again, with those of `rows` whose digests verified_in()
  // does not have by now. nullopt: no row is left, and no job was made.
  absl::StatusOr<std::optional<JobRow>> create_reverification(const JobRow& job, const std::vector<ReverifiedRow>& rows,
                                                              bool again);
  absl::Status settle_reverified(const ReverifiedRow& row);  // stores the outcome of a row
  // The rows of a job, or of all jobs (0), newest jobs first, without the first `skip` rows.
  absl::StatusOr<std::vector<ReverifiedRow>> reverified(int64_t job_id, int64_t skip, int limit);

  // --- searches (search.cpp)
  // Returns the job's search of a key: the one it had, else a new generation (retune), else the team's latest or a new
  // one.
  absl::StatusOr<SearchRow> open_search(int64_t job_id, const SearchRow& wanted, bool retune);
  absl::StatusOr<std::set<std::string>> keys_with_search(
      int64_t job_id);  // the keys of the searches that open_search() gave the job
  absl::StatusOr<std::vector<PhaseTrial>> trials(int64_t search_id);  // by phase, then number
  // The trials of rounds, not of promotions and confirmations, from the number `from` on; at most `limit`.
  absl::StatusOr<std::vector<TrialPoint>> trial_points(int64_t search_id, int64_t from, int64_t limit);
  absl::StatusOr<std::map<std::string, int64_t>> searches_of_job(int64_t job_id);  // by key
  // Returns a job that the search serves and that the reader may see, preferably one that is not done.
  absl::StatusOr<std::optional<int64_t>> job_of_search(int64_t search_id, const Reader& reader);
  absl::StatusOr<std::vector<BatchRow>> open_batches(int64_t search_id);
  // The check seeds of reported promotions and confirmations that led to no record yet, by phase.
  absl::StatusOr<std::map<int64_t, uint64_t>> unconcluded_seeds(int64_t search_id);
  // Stores a new round: its batch, if anything is left to measure, and trials for the plans that lowering rejected.
  absl::Status put_round(const std::optional<BatchRow>& batch, int64_t search_id, int64_t phase,
                         const std::vector<Trial>& rejected);
  // Deletes a batch that was not reported. False: it is not open any more.
  absl::StatusOr<bool> drop_batch(const std::string& batch_id);
  // Replaces a ready batch by its parts. NotFound: it is not open, or is leased.
  absl::Status split_batch(const std::string& batch_id, const std::vector<BatchRow>& parts);
  // Leases a ready batch and returns the number of the attempt. NotFound: the batch is not ready.
  absl::StatusOr<int64_t> lease_batch(const std::string& batch_id, const std::string& lease_id,
                                      const std::string& worker);
  // Ends a lease without a result; the batch is ready again. `lost`: the name of its worker if that was lost. Returns
  // the names of all workers that were lost with the batch. NotFound: the lease does not own the batch.
  absl::StatusOr<std::vector<std::string>> release_lease(const std::string& lease_id, int64_t attempt,
                                                         const std::string& lost);
  // Stores the trials if the lease still owns its batch, in the transaction that ends the batch.
  absl::StatusOr<ReportOutcome> report(const std::string& batch_id, const std::string& lease_id, int64_t attempt,
                                       const std::vector<Trial>& trials);
  // The outcome that a report by this lease would have: kDuplicate or kStale; nullopt: the lease owns its batch, so the
  // report would be accepted.
  absl::StatusOr<std::optional<ReportOutcome>> reported(const std::string& batch_id, const std::string& lease_id,
                                                        int64_t attempt);
  // Ends a batch that no worker can do, with trials of the coordinator itself.
  absl::Status abandon_batch(const std::string& batch_id, const std::vector<Trial>& trials);

  // --- records (records.cpp)
  // Stores a record, signed if there is a key, and makes it the blessed one of its key and environment: in the
  // namespace of the search's team or, if `shared`, in the shared one, and then no record of the team's own stays
  // blessed. Drops the whole answers that used its key. FailedPrecondition: its object is not stored.
  absl::Status promote(const KernelRecord& record, int64_t search_id, bool shared = false);
  // Returns the blessed record of a key and environment (empty: the newest of any). A record that is damaged, or whose
  // object is lost or damaged, counts as missing, so that a job makes it again.
  absl::StatusOr<std::optional<RecordRow>> record_by_key(const std::string& key, const std::string& environment,
                                                         const Reader& reader = {});
  absl::StatusOr<std::optional<RecordRow>> record_by_digest(const std::string& digest);  // of every team
  // Whether record_by_key() finds nothing only because the object of a record is lost or damaged.
  absl::StatusOr<bool> has_record_without_object(const std::string& key, const std::string& environment,
                                                 const Reader& reader = {});
  // Returns a record as the bytes of a v1::KernelRecord, to be sent as they are. Without texts, its source has neither
  // prelude nor text, and little is read. Its object is not looked at.
  absl::StatusOr<std::optional<RecordMessage>> record_message(const RecordName& name, bool with_texts);
  // Lists blessed records, newest first and those of one time by digest, after the one that the cursor names. A cursor
  // without a digest names a time: records made before it follow. The sources have neither prelude nor text. These are
  // not read, so a record whose texts are damaged is listed.
  absl::StatusOr<std::vector<RecordRow>> list_records(const std::optional<RecordCursor>& after, int limit,
                                                      const Reader& reader = {}, const RecordFilter& filter = {});
  // The machines and models that a RecordFilter can name, at most `limit` of each.
  absl::StatusOr<RecordCounts> record_counts(int limit, const Reader& reader = {});
  absl::StatusOr<int64_t> invalidate(const std::string& key);  // records of every team; returns how many
  // Deletes the records that a worker of the principal measured or confirmed, pinned ones too, the trials that such a
  // worker reported, and all whole answers. Takes several transactions; a second call after a crash does the rest.
  absl::StatusOr<RevokedRows> revoke(const std::string& principal);  // (generations.cpp)
  // Pins records, which are then never evicted, or unpins them. A key names its blessed records of every team, and of
  // every environment unless one is given. Returns how many records were named.
  absl::StatusOr<int64_t> pin(const RecordName& name, bool pinned);
  // --- records of other coordinators (exchange.cpp)
  // Stores a record of another coordinator, whose object must be stored as for promote(). With by_key, it becomes the
  // blessed one in the namespace of the team (empty: the shared one), but a record from the upstream replaces only
  // records from the upstream. Otherwise it is found by its digest alone.
  absl::Status take_record(const KernelRecord& record, RecordOrigin origin, bool by_key, const std::string& team = "");
  // Shared blessed records that the upstream does not have, by id.
  absl::StatusOr<std::vector<NumberedRecord>> unoffered_records(int64_t after, int limit);
  absl::Status set_offered(const std::string& digest);  // notes that the upstream has the record
  // Blessed records, of every team, by id.
  absl::StatusOr<std::vector<NumberedRecord>> served_records(int64_t after, int limit);
  // Stores the fields of a record that its digest does not cover: who signed it and who built its object. Also OK if
  // the record is gone meanwhile.
  absl::Status put_words(const KernelRecord& record);
  // Blessed records that were fetched from the upstream, by id.
  absl::StatusOr<std::vector<NumberedRecord>> fetched_records(int64_t after, int limit);
  // Deletes a record that was fetched from the upstream, pinned or not, and whole answers that used its key.
  absl::Status drop_fetched(const std::string& digest);
  // --- generations of what is signed (generations.cpp; docs/design/trust.md#generations)
  // Sets the key with which promote() signs records, in the transaction that stores them. Called before anything else.
  void sign_with(std::shared_ptr<const SigningKey> key);
  // Returns this coordinator's current head: which of its records are no longer valid. nullopt: it signs nothing.
  absl::StatusOr<std::optional<StoreHead>> head();
  // Whether all served records have to be signed again, so that one generation tells which are valid: the signing key
  // is new, or too many single keys have a floor. Steps: new_generation(); sign_anew() for every served record;
  // forget_below() that generation.
  absl::StatusOr<bool> should_sign_anew();
  absl::StatusOr<int64_t> new_generation();
  // Signs a record again, as record_by_digest() gave it and with a checked signature, so that nothing is signed that
  // others wrote into the file. A record from elsewhere, or one that is no longer served, stays as it is.
  absl::Status sign_anew(const KernelRecord& record);
  absl::Status forget_below(int64_t generation);
  // Stores the heads of other coordinators, the newest of each; keeps at most kMostHeads.
  absl::Status put_heads(const std::vector<StoreHead>& heads);
  absl::StatusOr<std::vector<StoreHead>> heads();
  // Returns the newest stored head of a signer, or the current head if the signer is this coordinator.
  absl::StatusOr<std::optional<StoreHead>> head_of(const std::string& signer);

  // Stores devices that the upstream knows, so that jobs may be for them. Devices that are known here stay as they are.
  absl::Status put_devices(const std::vector<Device>& devices);

  // --- objects, workers and devices (blobs.cpp, records.cpp)
  // Stores an object. InvalidArgument: the digest is not that of the bytes. ResourceExhausted: the disk is full, or
  // max_object_bytes is reached. blob() returns nullopt for an object that is missing or damaged.
  absl::Status put_blob(const std::string& digest, const std::string& bytes);
  absl::StatusOr<std::optional<std::string>> blob(const std::string& digest);
  absl::StatusOr<int64_t> object_bytes();  // of all compiled objects
  // Removes object files that have no row, which a crash left. Returns how many.
  absl::StatusOr<int64_t> sweep_blobs();
  // Returns those of the objects that belong to records which the reader may see, by one query.
  absl::StatusOr<std::set<std::string>> seen_objects(const std::vector<std::string>& digests, const Reader& reader);
  absl::StatusOr<std::vector<std::string>> missing_blobs(const std::vector<std::string>& digests);
  // Registers a process of a worker and returns its epoch. `epoch`: the one that this process was given before, or 0. A
  // process without one takes the worker's name over, under the next epoch. `machine`: on which the process says that
  // it runs. FailedPrecondition: a newer process has taken the name over.
  absl::StatusOr<uint64_t> put_worker(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                                      const std::string& machine, int64_t now_ms);
  // Returns the machine that the newest process of a worker named; "": it named none, or there is no such worker.
  absl::StatusOr<std::string> worker_machine(const std::string& name);
  absl::StatusOr<std::vector<Device>> devices();  // last seen first

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  // Runs `work` in a transaction of the writer; an error undoes its changes, and only its.
  absl::Status write(const std::function<absl::Status(Sql&)>& work);
  absl::Status read(const std::function<absl::Status(Sql&)>& work);
  absl::StatusOr<std::optional<RecordRow>> record(const RecordName& name, bool with_object);
  std::unique_ptr<Impl> impl_;
};

// Returns the heads that a coordinator gives to others: its own, if it signs, and those that it has stored.
absl::StatusOr<std::vector<StoreHead>> heads_of(Store& store);

int64_t unix_ms_now();
// The folder of a store's objects, beside its file.
std::string objects_of(const std::string& file);

}  // namespace wl
