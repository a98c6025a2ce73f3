// The coordinator as the client sees it: its gRPC services as functions over plain data. The channel may lead to
// another machine, to a local socket, or into this process (embedded mode).
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"
#include "proto/dial.h"
#include "proto/trust/signing.h"
#include "proto/usage.h"

namespace grpc {
class Status;
}

namespace wl {

class SeenGenerations;

struct InspectedGroup {
  std::string key, graph, plan;
  std::string space;   // description of the group's space; only for the stages "space" and "plan" of `inspect`
  std::string kernel;  // text of the group's kernel; only for the stage "kernel" of `inspect`
  int64_t count = 0;
  // Whether the plan comes from a job's result or from the store; otherwise it is the default schedule's.
  bool tuned = false;
  Source source;  // source of the group's kernel; only for the stage "source" of `inspect`
};
struct Inspection {
  std::string graph;  // canonical text of the graph after simplification
  std::vector<InspectedGroup> groups;
  std::string why, picture;  // explanation and picture (SVG) of the chosen groups; empty unless requested
};

// A lease that a worker holds.
struct LeaseSummary {
  std::string target;
  std::string step;    // what the worker does with the batch: "compile", "check" or "measure"; empty: not known yet
  int64_t phase = 0;   // number of the search's phase (search, promotion or confirmation), as in Batch
  int candidates = 0;  // number of candidates in the leased batch
  double seconds = 0;  // seconds since the lease was given out
};

struct WorkerSummary {
  std::string name;
  uint64_t epoch = 0;
  std::vector<Device> devices;
  bool alive = false;
  int64_t last_seen_unix_ms = 0;
  int leases = 0;
  std::string team;  // the only team for which the worker measures; empty: it measures for all
  std::vector<LeaseSummary> doing = {};
};

struct RecordSummary {
  std::string key, digest, environment, target, device, plan;
  int64_t ops = 0;
  double best_ns = 0, default_ns = 0;
  int64_t created_unix_ms = 0;
  bool pinned = false;
  std::string measured_by, confirmed_by;
  std::string team;  // team to which the record belongs; empty: all teams share it
  std::string name;  // description of the group that the record's kernel computes (describe_group())
};

// Whether a text may be the beginning of a key: six or more hexadecimal digits (a whole key has 64).
bool may_be_key(const std::string& text);

// What a coordinator says about itself.
struct ServerSummary {
  std::string version;
  int api_version = 0;
  int64_t schema_version = 0;
  std::string store, sqlite_version;
  bool draining = false;
  std::string signing_key;  // public half of the key that signs the coordinator's records; empty: it signs none
  int64_t heap_bytes = 0, resident_bytes = 0;  // bytes on the coordinator's heap, and in its resident set; 0: not known
  // Address of the upstream coordinator, and why that cannot be asked now; empty: there is none.
  std::string upstream, upstream_problem;
  // For all kernels of jobs that have ended since the coordinator started: how many of them the store had before the
  // job, how many it lacked, and the seconds that workers had spent on the searches for those that it had.
  int64_t groups_found = 0, groups_missed = 0;
  double saved_s = 0;
};

struct WatchLimits {
  double patience_s = 60;  // each time that the coordinator cannot be reached: seconds until waiting for it ends
  // The time at which to stop waiting even if the job is not done; absent: never.
  std::optional<std::chrono::system_clock::time_point> until = {};
  std::stop_token stop = {};  // a stop request ends the waiting at once, but not the job
};

// The coordinator that a Service calls, and the limits of its calls.
struct Peer {
  std::string where;  // name of the coordinator in error messages
  DialOptions dialled = {};
  std::vector<Signer> signers = {};  // a record must be signed by one of these signers; empty: no signature is needed
  // The generations of records that were seen before; null: generations are not checked.
  std::shared_ptr<SeenGenerations> seen = {};
  std::chrono::seconds patience = std::chrono::seconds(120);  // time limit of a call that has no limit of its own
  std::stop_token stop = {};  // a stop request ends calls at once, with the status Cancelled
  // The time at which all calls end; absent: never. A limit of each call would not bound a sequence of calls.
  std::optional<std::chrono::system_clock::time_point> until = {};

  // Returns the deadline of a call that begins now and may take `allowed`.
  std::chrono::system_clock::time_point end_of_call(std::chrono::system_clock::duration allowed) const {
    const auto end = std::chrono::system_clock::now() + allowed;
    return until ? std::min(end, *until) : end;
  }
};

// Converts the status of a call; the message of an error says what the error means and what to do.
absl::Status status_of(const grpc::Status& status, const Peer& peer);

// Every call returns the coordinator's error, or Unavailable with the address when it cannot be reached. Safe to use
// from several threads.
class Service {
 public:
  Service(std::shared_ptr<grpc::Channel> channel, Peer peer);
  // Connects to "HOST:PORT" or "unix:PATH" at the first call.
  static absl::StatusOr<Service> at(const std::string& address, const DialOptions& options,
                                    std::vector<Signer> signers = {});
  // Waits until the coordinator is connected, but no longer than `patience`: a coordinator that a script has just
  // started does not listen yet. If the coordinator stays unreachable, the next call returns the error.
  void await_connection(std::chrono::milliseconds patience) const;
  // Returns a Service for the same coordinator with another Peer::patience, Peer::stop and Peer::until.
  Service limited(std::chrono::seconds patience, std::stop_token stop,
                  std::optional<std::chrono::system_clock::time_point> until = {}) const {
    Service out = *this;
    out.peer_.patience = patience;
    out.peer_.stop = std::move(stop);
    out.peer_.until = until;
    return out;
  }

  const std::vector<Signer>& signers() const { return peer_.signers; }

  // Creates a job and returns at once. The same request_id with the same arguments gives the same job. `trace`: the
  // job's trace id.
  absl::StatusOr<Job> create_job(const std::string& request_id, const std::string& graph, const TuneOptions& options,
                                 const std::string& label, const std::string& trace);
  // Calls on_change with every state of the job until it is done, and returns the last state. If the coordinator cannot
  // be reached, tries again with growing delays, and calls on_lost with true, and with false when it is back.
  // Unavailable: the coordinator did not come back in time. DeadlineExceeded: the coordinator is there, but the job is
  // not done by limits.until. Cancelled: limits.stop was requested.
  absl::StatusOr<Job> watch_job(const std::string& name, const std::function<void(const Job&)>& on_change,
                                const std::function<void(bool lost)>& on_lost, const WatchLimits& limits = {});
  absl::StatusOr<Job> get_job(const std::string& name);
  // Returns the error of a command that waited for a job and no longer reaches the coordinator: Unavailable, with the
  // command that goes on waiting.
  absl::Status unreachable(const std::string& name) const;
  // Cancels a job. DeadlineExceeded: there is no answer within `patience`.
  absl::StatusOr<Job> cancel_job(const std::string& name, std::chrono::seconds patience = std::chrono::seconds(120));
  // Returns jobs without their results, newest first. `unfinished`: only those that are not done.
  absl::StatusOr<std::vector<Job>> list_jobs(int most, bool unfinished = false);

  absl::StatusOr<Inspection> inspect(const std::string& graph, const TuneOptions& options, const std::string& stage,
                                     bool simplify_only, bool why = false);
  // Inspects the kernels that a result launches, without planning its graph again. DataLoss may also mean that the
  // coordinator is of a version that inspects only graphs.
  absl::StatusOr<Inspection> inspect(const JobResult& result, const std::string& stage, bool why);

  // Returns the record of a key. NotFound: the coordinator's store has none. DataLoss or PermissionDenied, here and
  // below: the record's signature (proto/trust/signing.h) or its generation (client/remote/seen.h) forbids its use.
  absl::StatusOr<KernelRecord> get_record(const std::string& key);
  // Returns records in the order of the digests; NotFound when the store lacks one.
  absl::StatusOr<std::vector<KernelRecord>> get_records(const std::vector<std::string>& digests);
  // Returns the newest records first; only those whose key begins with `key_prefix`.
  absl::StatusOr<std::vector<RecordSummary>> list_records(int most, const std::string& key_prefix = "");
  // Counts what a program ran (docs/design/service.md#background-searches).
  absl::Status count_uses(const std::vector<KernelUse>& uses);
  // Returns what programs ran in the last week, with at most `most` kernels and graphs. Unimplemented: the coordinator
  // is of a version that does not say it.
  absl::StatusOr<Usage> usage(int most);
  // Returns the key of stored kernels that begins with `digits`. A whole key, or a text for which may_be_key() is
  // false, is returned as it is. NotFound: no key begins with `digits`; InvalidArgument: several keys do.
  absl::StatusOr<std::string> whole_key(const std::string& digits);
  // Returns the bytes whose SHA-256 is the digest.
  absl::StatusOr<std::string> get_blob(const std::string& digest);

  absl::StatusOr<std::vector<WorkerSummary>> list_workers();
  absl::StatusOr<ServerSummary> server();
  // Sets whether workers get no new leases; they may finish the leases that they have.
  absl::Status set_drained(bool drained);
  // Makes a backup of the coordinator's store, which may take up to an hour. Returns the path of the backup's file on
  // the coordinator's machine, and its size in bytes.
  struct Backup {
    std::string file;
    int64_t bytes = 0;
  };
  absl::StatusOr<Backup> make_backup();
  // Deletes all records and trials that the workers of a producer measured, confirmed or reported, and returns their
  // numbers. FailedPrecondition: the producer may still call the coordinator; the message says how to forbid it first.
  struct Revoked {
    int64_t records = 0, trials = 0;
  };
  absl::StatusOr<Revoked> revoke(const std::string& producer);
  // Stops serving the records of a problem key. Returns their number; NotFound: there are none.
  absl::StatusOr<int64_t> invalidate(const std::string& key);
  // Pins or unpins the served records of a problem key, or the record with a digest: pinned ones stay whatever the size
  // limits of the store are. Returns their number; NotFound: there are none.
  absl::StatusOr<int64_t> set_pinned(const std::string& key_or_digest, bool pinned);

  // Verifies kernels again that were made with other compilers or another driver (reverify.cpp). `target`: only kernels
  // of this target or family; `again`: also kernels whose verification failed or was cancelled. Returns the names of
  // the new jobs.
  absl::StatusOr<std::vector<std::string>> reverify(const std::string& target, bool again);
  struct Reverification {
    std::string job, digest, key, environment_before, environment, outcome, plan_before, plan;
    double before_ns = 0, ns = 0;
    std::string message;
  };
  // Returns the outcomes of repeated verifications, those of the newest jobs first. `job`: only those of this job;
  // empty: of all jobs.
  absl::StatusOr<std::vector<Reverification>> list_reverified(const std::string& job, int most);

 private:
  // PermissionDenied: the record's generation is lower than its signer allows, or lower than one that was seen before
  // (SeenGenerations::admit()).
  absl::Status check_age(const KernelRecord& record);

  std::shared_ptr<grpc::Channel> channel_;
  Peer peer_;
};

}  // namespace wl
