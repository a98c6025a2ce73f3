// The store of a coordinator: one SQLite file, and a folder of compiled objects beside it. All writes go through one
// connection in one thread, which commits the queued writes in one transaction (fsync included) and only then
// answers. So a change whose function returned OK survives a crash, and a function that returned an error changed
// nothing, unless the store broke (StoreOptions::on_broken). Reads use read-only connections. Of the records of a key
// and environment in a namespace, one is served; the code calls it *blessed*. A new field of a job, search, batch or
// trial needs a migration in schema/ and a row of its columns.
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
#include "server/store/rows.h"

namespace wl {

class FileCalls;
class Sql;

struct StoreOptions {
  std::string file;
  bool in_turn = false;      // whether the store is held for one command only, for whose end others may wait
  bool quick_check = false;  // whether to check the file after an unclean stop; takes longer for larger files
  int64_t max_pages = 0;     // the largest size of the database, in pages of 4 KiB; 0 = no limit
  // Limit on the bytes of compiled objects. When it is reached, objects that no served or pinned record names are
  // removed. 0 = no limit.
  int64_t max_object_bytes = 0;
  // For tests: called at named points ("begin", the text of every statement, "commit", "committed", "checkpoint",
  // "checkpointed", and those of objects.h), where a test may end the process.
  std::function<void(const char*)> at_point = {};
  // Called once, on any thread, when it is unknown which of the last writes are on the disk: after a failed fsync,
  // after an I/O error of a COMMIT, or if another program removed or changed the store's files. Every function returns
  // DataLoss from then on. The process must end; the next process reads what the disk has.
  std::function<void(const absl::Status&)> on_broken = {};
  std::string vfs = {};              // for tests: name of the sqlite3_vfs to use; empty: SQLite's default
  const FileCalls* files = nullptr;  // for tests: the calls on object files; null: those of the system
};

// What the store has done since it was opened, and its present state.
struct StoreStats {
  int64_t queued = 0;  // number of writes that now wait to become part of the next transaction
  int64_t writes = 0, transactions = 0;
  int64_t checkpoints = 0, unfinished_checkpoints = 0;  // checkpoints, and how many of them did not empty the log
  int64_t wal_bytes = 0;  // bytes of the write-ahead log that no checkpoint has moved yet; its file may be larger
  int64_t damaged = 0;    // number of rows and objects that failed their digest when they were read
  bool unclean = false;   // whether the process that had the store before did not close it
  bool checked = false;   // whether the file was checked for damage when it was opened
  bool broken = false;
};

// How many bytes a store may take; 0: any number. Served and pinned records, unfinished jobs and their trials stay.
struct StoreBounds {
  int64_t database_bytes = 0, object_bytes = 0;
};
// What an eviction has removed, and how many bytes are in use after it.
struct Evicted {
  int64_t records = 0, objects = 0, jobs = 0, answers = 0;
  int64_t database_bytes = 0, object_bytes = 0;
};

enum class ReportOutcome { kAccepted, kDuplicate, kStale };

class Store {
 public:
  // Opens or creates a store. Unavailable: another coordinator has the file, by whatever name; PermissionDenied: the
  // file is not writable; FailedPrecondition: it is of a newer Warploom, is no Warploom store, has several hard links,
  // or is on a network disk; DataLoss: it is damaged; InvalidArgument: not the name of a file. A refused file is not
  // changed.
  static absl::StatusOr<std::unique_ptr<Store>> open(const StoreOptions& options);
  ~Store();
  // Checkpoints and closes the store; no function may be called afterwards.
  void close();
  const std::string& file() const;
  StoreStats stats() const;
  static int64_t schema_version();
  static std::string sqlite_version();

  // --- Upkeep (backup.cpp, evict.cpp). ---
  // Backs up all writes that were acknowledged before, as the file `to` and its folder of objects, and checks the
  // backup. The store stays in use. On the same disk, store and backup share the object files. AlreadyExists: `to`
  // exists.
  absl::Status backup(const std::string& to);
  // Replaces a store by a backup. Unavailable: a process uses the store. NotFound or DataLoss: the backup is missing or
  // damaged; the store is then unchanged.
  static absl::Status restore(const std::string& from, const std::string& to);
  // Removes rows and objects until the store is within its limits. From the database: records that are neither served
  // nor pinned, finished jobs with the trials that only these jobs led to, and answers to whole jobs. From the
  // objects: those that no served or pinned record names.
  absl::StatusOr<Evicted> evict(const StoreBounds& bounds);

  // --- Jobs (jobs.cpp). --- Stores a job and returns it with its id. If a job with its request_id exists already,
  // returns that job (InvalidArgument: it has another body or team). The job's result, if any, becomes the stored
  // answer for result_id, unless that is empty. ResourceExhausted: the job is not done, and its team has
  // `most_unfinished` other jobs that are not done (0: no limit).
  absl::StatusOr<JobRow> create_job(const JobRow& job, const std::string& result_id = "", int64_t most_unfinished = 0);
  absl::Status set_job_running(int64_t id, const Device& device, int64_t started_ms);
  absl::Status set_job_cancelling(int64_t id);
  // Notes that planning of a job begins or ends. Returns how often it has begun without ending, this time included.
  absl::StatusOr<int64_t> set_job_planning(int64_t id, bool begins);
  // Ends a job that is not done: state, cached, result, error and finished_ms are taken from `end`. With a result_id,
  // the result also becomes the stored answer for it.
  absl::Status finish_job(const JobRow& end, const std::string& result_id);
  absl::StatusOr<std::optional<JobRow>> job(int64_t id);
  absl::StatusOr<std::optional<std::string>> team_of_job(int64_t id);
  absl::StatusOr<std::optional<JobRow>> job_by_request(const std::string& request_id);
  absl::StatusOr<std::vector<JobRow>> unfinished_jobs();  // the jobs that are not done, oldest first
  // Lists jobs with ids below `before` (0: all), newest first, without graphs and results. `unfinished`: none that is
  // done.
  absl::StatusOr<std::vector<JobRow>> list_jobs(int64_t before, int limit, const Reader& reader = {},
                                                bool unfinished = false);
  // The answer to a whole job: its result, stored under a hash of graph, device, options and team (result_key()).
  struct WholeAnswer {
    JobResult result;
    int64_t trials_asked = 0;
    double budget_s = 0;
  };
  // Returns the answer to a whole job if all objects of its kernels exist and are undamaged; reads these objects.
  absl::StatusOr<std::optional<WholeAnswer>> whole_answer(const std::string& result_id);

  // --- Winners that are verified again (reverified.cpp). --- Returns the digests of the records that jobs verify or
  // have verified in the environment. With `again`, only jobs that are not done count; otherwise also finished jobs,
  // except for records that a failed job did not get to.
  absl::StatusOr<std::set<std::string>> verified_in(const std::string& environment, bool again);
  // Stores a job that verifies records of other environments again: those of `rows` whose digests verified_in() does
  // not return. nullopt: there is no such row, so no job was made.
  absl::StatusOr<std::optional<JobRow>> create_reverification(const JobRow& job, const std::vector<ReverifiedRow>& rows,
                                                              bool again);
  absl::Status settle_reverified(const ReverifiedRow& row);  // stores the outcome of a row
  // Returns the rows of a job, or of all jobs (0), newest jobs first, without the first `skip` rows.
  absl::StatusOr<std::vector<ReverifiedRow>> reverified(int64_t job_id, int64_t skip, int limit);

  // --- Searches (search.cpp). --- Returns the search that a job uses for a key: the one it has already; else a new
  // generation if `retune`; else the team's latest search or, if there is none, a new one.
  absl::StatusOr<SearchRow> open_search(int64_t job_id, const SearchRow& wanted, bool retune);
  // Returns the keys of the searches that open_search() gave the job.
  absl::StatusOr<std::set<std::string>> keys_with_search(int64_t job_id);
  absl::StatusOr<std::vector<PhaseTrial>> trials(int64_t search_id);  // a search's trials by phase, then by number
  // Returns at most `limit` trials of rounds (not of promotions and confirmations), from the number `from` on.
  absl::StatusOr<std::vector<TrialPoint>> trial_points(int64_t search_id, int64_t from, int64_t limit);
  absl::StatusOr<std::map<std::string, int64_t>> searches_of_job(int64_t job_id);  // ids of the job's searches, by key
  // Returns a job that the search serves and that the reader may see, preferably one that is not done.
  absl::StatusOr<std::optional<int64_t>> job_of_search(int64_t search_id, const Reader& reader);
  absl::StatusOr<std::vector<BatchRow>> open_batches(int64_t search_id);
  // Returns the check seeds, by phase, of reported promotions and confirmations that led to no record yet.
  absl::StatusOr<std::map<int64_t, uint64_t>> unconcluded_seeds(int64_t search_id);
  // Stores a new round: its batch, if any candidate is left to measure, and trials of plans that lowering rejected.
  absl::Status put_round(const std::optional<BatchRow>& batch, int64_t search_id, int64_t phase,
                         const std::vector<Trial>& rejected);
  // Deletes a batch that was not reported. Returns false if the batch is not open any more.
  absl::StatusOr<bool> drop_batch(const std::string& batch_id);
  // Replaces a ready batch by its parts. NotFound: the batch is not open, or is leased.
  absl::Status split_batch(const std::string& batch_id, const std::vector<BatchRow>& parts);
  // Leases a ready batch and returns the number of the attempt. NotFound: the batch is not ready.
  absl::StatusOr<int64_t> lease_batch(const std::string& batch_id, const std::string& lease_id,
                                      const std::string& worker);
  // Ends a lease without a result; its batch is ready again. `lost`: the name of the lease's worker, if it was lost.
  // Returns the names of all workers that were lost with this batch. NotFound: the lease does not own the batch.
  absl::StatusOr<std::vector<std::string>> release_lease(const std::string& lease_id, int64_t attempt,
                                                         const std::string& lost);
  // Stores the trials of a batch and ends the batch, in one transaction, if the lease still owns the batch.
  absl::StatusOr<ReportOutcome> report(const std::string& batch_id, const std::string& lease_id, int64_t attempt,
                                       const std::vector<Trial>& trials);
  // Returns the outcome that a report by this lease would have, kDuplicate or kStale; nullopt: the lease owns its
  // batch, so the report would be accepted.
  absl::StatusOr<std::optional<ReportOutcome>> reported(const std::string& batch_id, const std::string& lease_id,
                                                        int64_t attempt);
  // Ends a batch that no worker can measure, with trials made up by the coordinator.
  absl::Status abandon_batch(const std::string& batch_id, const std::vector<Trial>& trials);

  // --- Records (records.cpp). --- Stores a record, signed if there is a signing key, and makes it the one that is
  // served for its key and environment: in the namespace of the search's team or, if `shared`, in the shared namespace;
  // the team's own record is then no longer served. Deletes the answers to whole jobs that used its key.
  // FailedPrecondition: its object is not stored.
  absl::Status promote(const KernelRecord& record, int64_t search_id, bool shared = false);
  // Returns the record that is served for a key and environment (empty: the newest of any environment). A record that
  // is damaged, or whose object is lost or damaged, counts as missing, so that a job makes it again.
  absl::StatusOr<std::optional<RecordRow>> record_by_key(const std::string& key, const std::string& environment,
                                                         const Reader& reader = {});
  absl::StatusOr<std::optional<RecordRow>> record_by_digest(const std::string& digest);  // finds records of every team
  // Whether record_by_key() finds nothing only because the object of a record is lost or damaged.
  absl::StatusOr<bool> has_record_without_object(const std::string& key, const std::string& environment,
                                                 const Reader& reader = {});
  // Returns a record as the bytes of a v1::KernelRecord, which can be sent unchanged. Without texts, its source has
  // neither prelude nor text, and little is read. Whether its object exists is not checked.
  absl::StatusOr<std::optional<RecordMessage>> record_message(const RecordName& name, bool with_texts);
  // Lists served records after the one that the cursor names, newest first; records of one time are ordered by
  // digest. With a cursor without a digest, the list begins with records made before its time. Prelude and text of
  // the sources are not read, so records whose texts are damaged are listed, too.
  absl::StatusOr<std::vector<RecordRow>> list_records(const std::optional<RecordCursor>& after, int limit,
                                                      const Reader& reader = {}, const RecordFilter& filter = {});
  // Returns the machines and models that a RecordFilter can name, at most `limit` of each.
  absl::StatusOr<RecordCounts> record_counts(int limit, const Reader& reader = {});
  // Invalidates the records of a key, of every team; returns how many there were.
  absl::StatusOr<int64_t> invalidate(const std::string& key);
  // Deletes the records that a worker of the principal measured or confirmed, even pinned ones, the trials that such a
  // worker reported, and all answers to whole jobs. Takes several transactions; after a crash, a second call does the
  // rest.
  absl::StatusOr<RevokedRows> revoke(const std::string& principal);  // defined in generations.cpp
  // Pins records, which are then never evicted, or unpins them. A key names its served records of every team, and of
  // every environment unless one is given. Returns how many records were named.
  absl::StatusOr<int64_t> pin(const RecordName& name, bool pinned);
  // --- Records of other coordinators (exchange.cpp). --- Stores a record of another coordinator; its object must be
  // stored already. With by_key, the record is served in the namespace of the team (empty: the shared one); but a
  // record from the upstream replaces only records from the upstream. Without by_key, it is found by its digest alone.
  absl::Status take_record(const KernelRecord& record, RecordOrigin origin, bool by_key, const std::string& team = "");
  // Returns the shared, served records with ids above `after` that the upstream does not have, in the order of ids.
  absl::StatusOr<std::vector<NumberedRecord>> unoffered_records(int64_t after, int limit);
  absl::Status set_offered(const std::string& digest);  // notes that the upstream has the record
  // Gives the stored record of this origin the signature of `record` if that has a higher generation. Returns whether
  // it did; the stored record is then offered to the upstream again.
  absl::StatusOr<bool> take_signature(const KernelRecord& record, RecordOrigin origin);
  // Returns the served records of every team with ids above `after`, in the order of ids.
  absl::StatusOr<std::vector<NumberedRecord>> served_records(int64_t after, int limit);
  // Stores the fields of a record that its digest does not cover: who signed it and who built its object. Returns OK
  // even if the record is no longer stored.
  absl::Status put_words(const KernelRecord& record);
  // Returns the served records with ids above `after` that were fetched from the upstream, in the order of ids.
  absl::StatusOr<std::vector<NumberedRecord>> fetched_records(int64_t after, int limit);
  // Deletes a record that was fetched from the upstream, even if pinned, and answers to whole jobs that used its key.
  absl::Status drop_fetched(const std::string& digest);
  // --- Generations of signed records (generations.cpp; docs/design/trust.md#generations). --- Sets the key with
  // which promote() signs records, in the transaction that stores them. Must be called before all else.
  void sign_with(std::shared_ptr<const SigningKey> key);
  // Returns this coordinator's head, which tells which of its records are no longer valid. nullopt: it signs nothing.
  absl::StatusOr<std::optional<StoreHead>> head();
  // Whether all served records have to be signed again, so that one generation tells which are valid: the signing key
  // is new, or too many single keys have a floor (lowest valid generation). To do so, call new_generation(), then
  // sign_anew() for every served record, then forget_below() with that generation.
  absl::StatusOr<bool> should_sign_anew();
  absl::StatusOr<int64_t> new_generation();
  // Signs a record again. `record` must be a result of record_by_digest() whose signature was checked, so that data
  // which others wrote into the file are never signed. A record from elsewhere, or one that is no longer served, stays
  // as it is. A record that was signed is offered to the upstream again.
  absl::Status sign_anew(const KernelRecord& record);
  absl::Status forget_below(int64_t generation);
  // Stores the newest head (StoreHead) of each other coordinator; keeps at most kMostHeads heads.
  absl::Status put_heads(const std::vector<StoreHead>& heads);
  absl::StatusOr<std::vector<StoreHead>> heads();
  // Returns the newest stored head of a signer, or the current head if the signer is this coordinator.
  absl::StatusOr<std::optional<StoreHead>> head_of(const std::string& signer);

  // --- Uses of kernels (uses.cpp). --- Adds what programs of a team ran to the sums of a day (days since 1970, UTC).
  // Returns how many of the keys have a record that the team may see; other keys are not stored. Sums are kept for a
  // week.
  absl::StatusOr<int64_t> add_uses(const std::string& team, const std::vector<KernelUse>& uses, int64_t day);
  // Returns the sums of the days from `since_day` to `until_day`, those of most time first, and of kernels without
  // times those of most calls; at most `each` of a team, so that no team hides others.
  absl::StatusOr<std::vector<KernelUseOfTeam>> most_used(int64_t since_day, int64_t until_day, int each);

  // What usage pages show. used_records() is most_used() with the team's records; missed_graphs() is
  // most_missed() by team, at most `each` graphs of one, those asked for most often first; search_times() sums the time
  // that workers took in the days from `since_day` to `until_day`. Such sums are kept for a week.
  absl::StatusOr<UsedKernelRows> used_records(int64_t since_day, int64_t until_day, int each);
  absl::StatusOr<MissedGraphs> missed_graphs(int64_t since_ms, int each);
  absl::StatusOr<std::vector<SearchTime>> search_times(int64_t since_day, int64_t until_day);

  // Returns the ids of jobs since a time that found no kernels and were not to search, the last of each graph with its
  // options, those that were asked for most often first.
  absl::StatusOr<std::vector<int64_t>> most_missed(int64_t since_ms, int limit);

  // --- Kernels that replaced others (in_place.cpp). --- promote() notes which record of programs it replaces, unless
  // the record is a GPU's. Returns the replacements that were not tried in programs yet, oldest first.
  absl::StatusOr<std::vector<ReplacedRow>> waiting_replacements(int limit);
  // Returns the replacements of a key that the reader may see, newest first.
  absl::StatusOr<std::vector<ReplacedRow>> replacements_of(const std::string& key, const Reader& reader, int limit);
  // Returns whether a plan replaced another one for this key, environment and team, and was taken back.
  absl::StatusOr<bool> was_taken_back(const std::string& key, const std::string& environment, const std::string& team,
                                      const std::string& plan);
  // Returns the ids of jobs whose graphs run the kernel of a key beside others, newest first, one for each graph.
  absl::StatusOr<std::vector<int64_t>> programs_with(const std::string& key, int limit);
  // Stores what was seen of a replacement. With the outcome kTakenBack, the record `before`, which must be the result
  // of record_by_digest(), is served again and signed again, in the same transaction. Nothing changes if the
  // replacement has an outcome already, or if the record `end.after` was replaced meanwhile.
  absl::Status end_replacement(const ReplacedRow& end, const KernelRecord* before = nullptr);

  // Stores devices that the upstream knows, so that jobs may be for them. Devices already stored stay unchanged.
  absl::Status put_devices(const std::vector<Device>& devices);

  // --- Objects, workers and devices (blobs.cpp, records.cpp). --- Stores an object. InvalidArgument: the digest is
  // not that of the bytes. ResourceExhausted: the disk is full, or max_object_bytes is reached. blob() returns
  // nullopt for an object that is missing or damaged.
  absl::Status put_blob(const std::string& digest, const std::string& bytes);
  absl::StatusOr<std::optional<std::string>> blob(const std::string& digest);
  absl::StatusOr<int64_t> object_bytes();  // total size of all compiled objects, in bytes
  // Removes object files that have no row, such as a crash leaves behind. Returns how many there were.
  absl::StatusOr<int64_t> sweep_blobs();
  // Returns which of the objects belong to a record that the reader may see. Runs a single query.
  absl::StatusOr<std::set<std::string>> seen_objects(const std::vector<std::string>& digests, const Reader& reader);
  absl::StatusOr<std::vector<std::string>> missing_blobs(const std::vector<std::string>& digests);
  // Registers a process of a worker and returns its epoch. `epoch`: the epoch that the process got before, or 0: it
  // then takes over the worker's name, with the next epoch. `machine`: the machine on which the process says that it
  // runs. FailedPrecondition: a newer process has taken over the name.
  absl::StatusOr<uint64_t> put_worker(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                                      const std::string& machine, int64_t now_ms);
  // Returns the machine that the newest process of a worker named; "": it named none, or there is no such worker.
  absl::StatusOr<std::string> worker_machine(const std::string& name);
  absl::StatusOr<std::vector<Device>> devices();  // all known devices, the last seen first

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  // Runs `work` in a transaction of the writer; an error undoes the changes of `work` and no others.
  absl::Status write(const std::function<absl::Status(Sql&)>& work);
  absl::Status read(const std::function<absl::Status(Sql&)>& work);
  absl::StatusOr<std::optional<RecordRow>> record(const RecordName& name, bool with_object);
  std::unique_ptr<Impl> impl_;
};

// Returns the heads that a coordinator gives to others: its own, if it signs, and those that it has stored.
absl::StatusOr<std::vector<StoreHead>> heads_of(Store& store);

int64_t unix_ms_now();
// Returns the folder of a store's objects, which is beside its file.
std::string objects_of(const std::string& file);

}  // namespace wl
