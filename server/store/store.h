// The store of a coordinator: one SQLite file, and a folder of compiled objects beside it. All writes go through one
// connection in one thread, which commits what is queued in one transaction (fsync included) and only then answers. So
// a change whose function returned OK survives a crash, and a function that returned an error changed nothing, unless
// the store broke (StoreOptions::on_broken). Reads use connections that only read. To store a new fact of a job,
// search, batch or trial: a migration in schema/ and a row of its columns.
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
  bool in_turn = false;      // it is held for one command, and others wait for that (StoreLock)
  bool quick_check = false;  // look for damage before serving if the last stop was not clean; time grows with the file
  int64_t max_pages = 0;     // full beyond so many 4 KiB pages; 0 = no limit
  // Objects that no blessed or pinned record names make room for new ones beyond so many bytes; 0 = no limit.
  int64_t max_object_bytes = 0;
  // Called at named points ("begin", every statement's text, "commit", "committed", "checkpoint", "checkpointed", and
  // those of objects.h): tests die there.
  std::function<void(const char*)> at_point = {};
  // Called once, on any thread, when it is not known what of the last writes is on the disk (a failed
  // fsync, or an I/O error of a COMMIT). Every function is DataLoss from then on. The process must end: another one
  // reads what the disk has.
  std::function<void(const absl::Status&)> on_broken = {};
  std::string vfs = {};              // tests: the name of the sqlite3_vfs to use,
  const FileCalls* files = nullptr;  // and the calls for object files, if not those of the system
};

// Counts since the store was opened.
struct StoreStats {
  int64_t queued = 0;  // writes that wait for the transaction before theirs, now
  int64_t writes = 0, transactions = 0;
  int64_t checkpoints = 0, unfinished_checkpoints = 0;  // unfinished: the write-ahead log was not emptied
  int64_t wal_bytes = 0;  // of the log, that no checkpoint has moved; its file may be larger
  int64_t damaged = 0;    // what was read and did not have its digest
  bool checked = false;   // the file was looked through when it was opened
  bool broken = false;
};

// Who looks at jobs and records: a team ("" for none), which sees its own jobs, its own records and the shared ones,
// which are those of no team; of one key its own record comes first.
struct Reader {
  std::string team = {};
  bool every = false;  // sees those of every team
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
  int64_t plan_attempts = 0;  // how often planning began and did not end: it may be what ended the coordinator
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
  int64_t attempt = 0, failures = 0;  // failures: leases that ended without a report, for whatever reason
  std::string lease_id, worker;
  std::vector<PlannedTrial> candidates;
  std::vector<std::string> lost_on;  // names of the workers that were lost while they had it, one for each loss
};

// A trial of a search as a curve shows it.
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
inline constexpr int64_t kSearchElsewhere = 0;  // the search of records of the last two kinds; it has no trials

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
  std::string key, bytes;
};

// A record by what it is called. The ids of records grow.
struct NumberedRecord {
  int64_t id = 0;
  std::string digest, key, environment;
};

// Of records: those for a machine (machine_name() in functions.h), those of groups that a job with this label searched,
// and those whose key begins with these hexadecimal digits in lower case. Empty: of any.
struct RecordFilter {
  std::string machine = {}, model = {}, key_prefix = {};
};
struct RecordCounts {
  using Names = std::vector<std::pair<std::string, int64_t>>;  // with how many records or groups they have, by name
  Names machines, models;
};

// A kernel of another environment that a job verifies again (docs/design/service.md#verifying-winners-again).
struct ReverifiedRow {
  int64_t job_id = 0;
  std::string digest, key;                      // of the record of the other environment
  std::string environment_before, environment;  // in which it was made, and in which it is verified
  Reverified outcome = Reverified::kWaiting;
  std::string plan_before, plan;  // plan: of what is served in the environment; empty: nothing is
  double before_ns = 0, ns = 0;   // undisturbed_ns() of both
  std::string message = {};       // for people: what has changed
};

struct RecordCursor {
  int64_t created_ms = 0;
  std::string digest;
};

// How much a store may take, in bytes; 0: any. Bounds of a store that has only blessed and pinned records are not kept.
struct StoreBounds {
  int64_t database_bytes = 0, object_bytes = 0;
};
// What went, and what is used afterwards.
struct Evicted {
  int64_t records = 0, objects = 0, jobs = 0, answers = 0;
  int64_t database_bytes = 0, object_bytes = 0;
};

enum class ReportOutcome { kAccepted, kDuplicate, kStale };

class Store {
 public:
  // Opens or makes the file. Unavailable: another coordinator has it, by whatever name; PermissionDenied: not writable;
  // FailedPrecondition: made by a newer Warploom, not a Warploom store, a file of several names (hard links), or on a
  // network disk; DataLoss: damaged; InvalidArgument: the name of no file. What is refused is not changed.
  static absl::StatusOr<std::unique_ptr<Store>> open(const StoreOptions& options);
  ~Store();
  // Checkpoints and closes; nothing may be called afterwards.
  void close();
  const std::string& file() const;
  StoreStats stats() const;
  static int64_t schema_version();
  static std::string sqlite_version();

  // --- upkeep (backup.cpp, evict.cpp)
  // Makes a backup, FILE and FILE.objects, beside which everything goes on. It has all that was acknowledged before,
  // and was checked. On the same disk the objects are shared with the store. AlreadyExists: `to` is there.
  absl::Status backup(const std::string& to);
  // Puts a backup in the place of a store that nobody uses (Unavailable). NotFound, DataLoss: of the backup; the store
  // is then as it was.
  static absl::Status restore(const std::string& from, const std::string& to);
  // Drops what is not within the bounds: for the database records that are neither blessed nor pinned, finished jobs
  // with the trials that only they led to, and whole answers; for the objects those that no such record names.
  absl::StatusOr<Evicted> evict(const StoreBounds& bounds);

  // --- jobs (jobs.cpp)
  // A job with this request_id that exists is returned as it is; InvalidArgument when its body or team differs. A job
  // that is made with its result makes that the whole answer for result_id, unless that is empty. ResourceExhausted:
  // the job is not done, and as many jobs of its team are not (0: any number may be).
  absl::StatusOr<JobRow> create_job(const JobRow& job, const std::string& result_id = "", int64_t most_unfinished = 0);
  absl::Status set_job_running(int64_t id, const Device& device, int64_t started_ms);
  absl::Status set_job_cancelling(int64_t id);
  // Planning of a job begins (true) or has ended. Returns how often it has begun and not ended, this time too.
  absl::StatusOr<int64_t> set_job_planning(int64_t id, bool begins);
  // Ends a job that is not done: `end` gives state, cached, result, error, finished_ms and, if it has one, device. With
  // a result_id the result also becomes the whole answer for it.
  absl::Status finish_job(const JobRow& end, const std::string& result_id);
  absl::StatusOr<std::optional<JobRow>> job(int64_t id);
  absl::StatusOr<std::optional<std::string>> team_of_job(int64_t id);
  absl::StatusOr<std::optional<JobRow>> job_by_request(const std::string& request_id);
  absl::StatusOr<std::vector<JobRow>> unfinished_jobs();  // oldest first
  // Newest first, ids below `before` (0 = all), without graphs and results. `unfinished`: without those that are done.
  absl::StatusOr<std::vector<JobRow>> list_jobs(int64_t before, int limit, const Reader& reader = {},
                                                bool unfinished = false);
  struct WholeAnswer {
    JobResult result;
    int64_t trials_asked = 0;
    double budget_s = 0;
  };
  // One whose kernels have all their objects; reads these, since they may be damaged.
  absl::StatusOr<std::optional<WholeAnswer>> whole_answer(const std::string& result_id);

  // --- winners that are verified again (reverified.cpp)
  // The digests of records that some job has for the environment: one that is not done or, unless `again`, any but one
  // that failed before it came to the record.
  absl::StatusOr<std::set<std::string>> verified_in(const std::string& environment, bool again);
  // Makes a job that verifies records of other environments again, and its rows but those that verified_in() has by
  // now. nullopt: no row is left, and there is no job.
  absl::StatusOr<std::optional<JobRow>> create_reverification(const JobRow& job, const std::vector<ReverifiedRow>& rows,
                                                              bool again);
  absl::Status settle_reverified(const ReverifiedRow& row);  // stores what became of it
  // The rows of a job, or of all (0), newest jobs first; after those of the first `skip`.
  absl::StatusOr<std::vector<ReverifiedRow>> reverified(int64_t job_id, int64_t skip, int limit);

  // --- searches (search.cpp)
  // The search that serves `key` for the job: the one it had, else a new generation (retune), else the team's latest.
  absl::StatusOr<SearchRow> open_search(int64_t job_id, const SearchRow& wanted, bool retune);
  absl::StatusOr<std::set<std::string>> keys_with_search(
      int64_t job_id);                                                // those that open_search() opened for the job
  absl::StatusOr<std::vector<PhaseTrial>> trials(int64_t search_id);  // by phase, then number
  // Those of the rounds, without promotions and confirmations, from number `from` on; at most `limit`.
  absl::StatusOr<std::vector<TrialPoint>> trial_points(int64_t search_id, int64_t from, int64_t limit);
  absl::StatusOr<std::map<std::string, int64_t>> searches_of_job(int64_t job_id);  // by key
  // A job that the search serves, one that is not done if there is one, and that the reader may see.
  absl::StatusOr<std::optional<int64_t>> job_of_search(int64_t search_id, const Reader& reader);
  absl::StatusOr<std::vector<BatchRow>> open_batches(int64_t search_id);
  // The seeds of reported promotions and confirmations that no record was made of yet, by phase.
  absl::StatusOr<std::map<int64_t, uint64_t>> unconcluded_seeds(int64_t search_id);
  // A round begins: the batch, if anything is left to measure, and the trials that lowering rejected.
  absl::Status put_round(const std::optional<BatchRow>& batch, int64_t search_id, int64_t phase,
                         const std::vector<Trial>& rejected);
  // A batch is taken back before it was reported. False: it is not open any more.
  absl::StatusOr<bool> drop_batch(const std::string& batch_id);
  // Parts take the place of an open batch. NotFound when it is not open, or is leased.
  absl::Status split_batch(const std::string& batch_id, const std::vector<BatchRow>& parts);
  // The new attempt. NotFound when the batch is not ready.
  absl::StatusOr<int64_t> lease_batch(const std::string& batch_id, const std::string& lease_id,
                                      const std::string& worker);
  // Ends a lease without a result; the batch is ready again. `lost`: the name of its worker, if that was lost. Returns
  // the names of all workers that were lost with the batch, or NotFound when that lease does not own it.
  absl::StatusOr<std::vector<std::string>> release_lease(const std::string& lease_id, int64_t attempt,
                                                         const std::string& lost);
  // Stores the trials if the lease still owns its batch, in the transaction that consumes it.
  absl::StatusOr<ReportOutcome> report(const std::string& batch_id, const std::string& lease_id, int64_t attempt,
                                       const std::vector<Trial>& trials);
  // What a report by this lease would be: kDuplicate or kStale; nullopt when the lease owns its batch, so that the
  // report would be accepted.
  absl::StatusOr<std::optional<ReportOutcome>> reported(const std::string& batch_id, const std::string& lease_id,
                                                        int64_t attempt);
  // The coordinator itself ends a batch that no worker can do.
  absl::Status abandon_batch(const std::string& batch_id, const std::vector<Trial>& trials);

  // --- records (records.cpp)
  // The record becomes the blessed one of its key and environment in the namespace of the search's team or, if it is
  // shared, in everybody's, and the team's own is blessed no more; whole answers that used its key are dropped.
  // FailedPrecondition when its object is not there.
  absl::Status promote(const KernelRecord& record, int64_t search_id, bool shared = false);
  // Empty environment: the newest blessed record of any. A record that cannot be read is a miss, and so is one whose
  // object is lost or damaged: what is searched for then is compiled anew.
  absl::StatusOr<std::optional<RecordRow>> record_by_key(const std::string& key, const std::string& environment,
                                                         const Reader& reader = {});
  absl::StatusOr<std::optional<RecordRow>> record_by_digest(const std::string& digest);  // of every team
  // Whether such a record is a miss only since its object is lost or damaged.
  absl::StatusOr<bool> has_record_without_object(const std::string& key, const std::string& environment,
                                                 const Reader& reader = {});
  // The same as the bytes of a v1::KernelRecord, to be sent as they are. Without texts its source has neither a prelude
  // nor a text, and little is read.
  absl::StatusOr<std::optional<RecordMessage>> record_message(const RecordName& name, bool with_texts);
  // Blessed ones, newest first, of one time by digest; those after the one that the cursor names. A cursor without a
  // digest names the time alone: what was made before it. Their sources have neither a prelude nor a text: these are
  // not read, and a record whose texts are damaged is listed.
  absl::StatusOr<std::vector<RecordRow>> list_records(const std::optional<RecordCursor>& after, int limit,
                                                      const Reader& reader = {}, const RecordFilter& filter = {});
  // What list_records can be asked for, at most `limit` of each.
  absl::StatusOr<RecordCounts> record_counts(int limit, const Reader& reader = {});
  absl::StatusOr<int64_t> invalidate(const std::string& key);  // of every team
  // Deletes the records that a worker of the principal measured or confirmed, pinned ones too, the trials that such a
  // worker reported, and all whole answers. Takes several transactions; done again after a crash, it does the rest.
  absl::StatusOr<RevokedRows> revoke(const std::string& principal);  // (generations.cpp)
  // A pinned record is never evicted. By a key: its blessed records of every team, and of every environment unless one
  // is named. Returns how many records have that name.
  absl::StatusOr<int64_t> pin(const RecordName& name, bool pinned);
  // --- records of other coordinators (exchange.cpp)
  // Stores what another coordinator promoted, whose object must be there as for promote(). By its key it becomes the
  // blessed one in the namespace of the team (empty: everybody's); but what comes from the upstream takes the place of
  // nothing that does not. Otherwise it is found by its digest alone.
  absl::Status take_record(const KernelRecord& record, RecordOrigin origin, bool by_key, const std::string& team = "");
  // Blessed records that everybody may see and that the upstream does not have, by id.
  absl::StatusOr<std::vector<NumberedRecord>> unoffered_records(int64_t after, int limit);
  absl::Status set_offered(const std::string& digest);  // the upstream has this record
  // Blessed records, of every team, by id.
  absl::StatusOr<std::vector<NumberedRecord>> served_records(int64_t after, int limit);
  // Stores what is said of a record that is here beside its digest: who has signed it, and built it. OK also if it has
  // gone meanwhile.
  absl::Status put_words(const KernelRecord& record);
  // Blessed records that were fetched from the upstream, by id.
  absl::StatusOr<std::vector<NumberedRecord>> fetched_records(int64_t after, int limit);
  // Deletes a record that was fetched from the upstream, pinned or not, and whole answers that used its key.
  absl::Status drop_fetched(const std::string& digest);
  // --- generations of what is signed (generations.cpp; docs/design/trust.md#generations)
  // From now on what is promoted is signed in the transaction that stores it. Before anything else is called.
  void sign_with(std::shared_ptr<const SigningKey> key);
  // What this coordinator says of the records that it has signed, as of now; nothing: it signs none.
  absl::StatusOr<std::optional<StoreHead>> head();
  // Whether everything that is served has to be signed anew, so that what is no longer right can be told by one number:
  // the key is new, or single keys are too many. To do so: a new generation; sign_anew() for every record that is
  // served; and then nothing below that generation is right.
  absl::StatusOr<bool> should_sign_anew();
  absl::StatusOr<int64_t> new_generation();
  // The record is as record_by_digest() gave it, and its signature was checked: what somebody else has written into the
  // file is not signed. One that came from elsewhere, or is not served any more, stays as it is.
  absl::Status sign_anew(const KernelRecord& record);
  absl::Status forget_below(int64_t generation);
  // What other coordinators said of theirs, of each what it said last; at most kMostHeads are kept.
  absl::Status put_heads(const std::vector<StoreHead>& heads);
  absl::StatusOr<std::vector<StoreHead>> heads();
  // What is known of this signer's records: what it said last, and of this coordinator's own key what is true now.
  absl::StatusOr<std::optional<StoreHead>> head_of(const std::string& signer);

  // Devices that are known elsewhere: jobs may be for them. What is known of them here stays as it is.
  absl::Status put_devices(const std::vector<Device>& devices);

  // --- objects, workers and devices (blobs.cpp, records.cpp)
  // The digest must be that of the bytes (InvalidArgument). A damaged blob reads as missing. ResourceExhausted: the
  // disk is full, or max_object_bytes.
  absl::Status put_blob(const std::string& digest, const std::string& bytes);
  absl::StatusOr<std::optional<std::string>> blob(const std::string& digest);
  absl::StatusOr<int64_t> object_bytes();  // of all compiled objects
  // Removes the files of objects that no row knows: they were written just before a crash. Returns how many.
  absl::StatusOr<int64_t> sweep_blobs();
  // Which of these objects are those of records that the reader may see. One query, however many are asked for.
  absl::StatusOr<std::set<std::string>> seen_objects(const std::vector<std::string>& digests, const Reader& reader);
  absl::StatusOr<std::vector<std::string>> missing_blobs(const std::vector<std::string>& digests);
  // Registers a process of a worker and returns its epoch. `epoch`: the one that this process was given before, 0 when
  // it has none. A process that has none takes the name over, under the next epoch. FailedPrecondition when a newer
  // process has taken it over since.
  // `machine`: on which it says that it runs.
  absl::StatusOr<uint64_t> put_worker(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                                      const std::string& machine, int64_t now_ms);
  // What the newest process of a worker has said of its machine; "": nothing, or there never was one of this name.
  absl::StatusOr<std::string> worker_machine(const std::string& name);
  absl::StatusOr<std::vector<Device>> devices();  // last seen first

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  // Runs `work` in the writer's transaction; on error its changes, and only its, are undone.
  absl::Status write(const std::function<absl::Status(Sql&)>& work);
  absl::Status read(const std::function<absl::Status(Sql&)>& work);
  absl::StatusOr<std::optional<RecordRow>> record(const RecordName& name, bool with_object);
  std::unique_ptr<Impl> impl_;
};

// What a coordinator tells others of heads: its own, if it signs, and those that it has heard.
absl::StatusOr<std::vector<StoreHead>> heads_of(Store& store);

int64_t unix_ms_now();
// The folder of a store's objects, beside its file.
std::string objects_of(const std::string& file);

}  // namespace wl
