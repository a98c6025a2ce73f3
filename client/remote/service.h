// The coordinator as the client sees it: its services as functions over plain data. The channel may lead to another
// machine, to a local socket, or into this process (embedded mode), without any difference here.
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

namespace grpc {
class Status;
}

namespace wl {

class SeenGenerations;

struct InspectedGroup {
  std::string key, graph, plan;
  std::string space;   // for the stages "space" and "plan"
  std::string kernel;  // for stage "kernel"
  int64_t count = 0;
  bool tuned = false;  // whether the plan is a result's or the store's rather than the default schedule
  Source source;       // for stage "source"
};
struct Inspection {
  std::string graph;  // canonical text of the simplified graph
  std::vector<InspectedGroup> groups;
  std::string why, picture;  // explanation and picture of the cover, if they were requested
};

// A lease of a worker.
struct LeaseSummary {
  std::string target;
  std::string step;    // "compile", "check" or "measure"; empty: not known yet
  int64_t phase = 0;   // what it is for, as in Batch
  int candidates = 0;  // of its batch
  double seconds = 0;  // since it was given out
};

struct WorkerSummary {
  std::string name;
  uint64_t epoch = 0;
  std::vector<Device> devices;
  bool alive = false;
  int64_t last_seen_unix_ms = 0;
  int leases = 0;
  std::string team;  // empty: it measures for all
  std::vector<LeaseSummary> doing = {};
};

inline constexpr size_t kKeyDigits = 64, kLeastDigits = 6;  // of a key in hexadecimal; of what stands for it

struct RecordSummary {
  std::string key, digest, environment, target, device, plan;
  int64_t ops = 0;
  double best_ns = 0, default_ns = 0;
  int64_t created_unix_ms = 0;
  bool pinned = false;
  std::string measured_by, confirmed_by;
  std::string team;  // empty: it is shared
  std::string name;  // describe_group() of its group
};

// What a coordinator says about itself.
struct ServerSummary {
  std::string version;
  int api_version = 0;
  int64_t schema_version = 0;
  std::string store, sqlite_version;
  bool draining = false;
  std::string signing_key;                     // public key that it signs records with; empty: it signs none
  int64_t heap_bytes = 0, resident_bytes = 0;  // 0: not known
  std::string upstream, upstream_problem;      // its address, empty: none; and why it cannot be asked now
};

struct WatchLimits {
  double patience_s = 60;  // seconds to wait for a coordinator that has disappeared, each time
  // When to end although the job is not done; absent: never.
  std::optional<std::chrono::system_clock::time_point> until = {};
  std::stop_token stop = {};  // requested: end at once, whatever the job does
};

// Whom a Service calls.
struct Peer {
  std::string where;  // names it in error messages
  DialOptions dialled = {};
  std::vector<Signer> signers = {};  // one of them must have signed what it gives; empty: anybody, or nobody
  // What is known of the generations that the signers gave, and is told of them; null: nothing is asked of that.
  std::shared_ptr<SeenGenerations> seen = {};
  std::chrono::seconds patience = std::chrono::seconds(120);  // with a call, unless that says another
  std::stop_token stop = {};                                  // requested: calls end at once, with Cancelled
  // When every call ends, whatever arrives meanwhile; absent: never. A peer may send a little for ever.
  std::optional<std::chrono::system_clock::time_point> until = {};

  // When a call that is made now ends.
  std::chrono::system_clock::time_point end_of_call(std::chrono::system_clock::duration allowed) const {
    const auto end = std::chrono::system_clock::now() + allowed;
    return until ? std::min(end, *until) : end;
  }
};

// What it means that a call has failed, and what to do; OK if it has not.
absl::Status status_of(const grpc::Status& status, const Peer& peer);

// Every call returns the coordinator's error, or Unavailable with the address when it cannot be reached. Safe to use
// from several threads.
class Service {
 public:
  Service(std::shared_ptr<grpc::Channel> channel, Peer peer);
  // Connects to "HOST:PORT" or "unix:PATH" at the first call.
  static absl::StatusOr<Service> at(const std::string& address, const DialOptions& options,
                                    std::vector<Signer> signers = {});
  // Waits until the coordinator is connected, and for `patience` at most: one that was started a moment ago, as in a
  // script, does not listen yet. Calls say what is wrong.
  void await_connection(std::chrono::milliseconds patience) const;
  // The same coordinator, with another Peer::patience, Peer::stop and Peer::until.
  Service limited(std::chrono::seconds patience, std::stop_token stop,
                  std::optional<std::chrono::system_clock::time_point> until = {}) const {
    Service out = *this;
    out.peer_.patience = patience;
    out.peer_.stop = std::move(stop);
    out.peer_.until = until;
    return out;
  }

  const std::vector<Signer>& signers() const { return peer_.signers; }

  // Returns at once. The same request_id with the same body gives the same job. `trace`: its trace id.
  absl::StatusOr<Job> create_job(const std::string& request_id, const std::string& graph, const TuneOptions& options,
                                 const std::string& label, const std::string& trace);
  // Calls on_change with every state of the job until it is done, and returns the last. If the coordinator disappears,
  // tries again with growing delays; on_lost is called with true when it is lost and with false when it is back.
  // Unavailable: it did not come back in time. DeadlineExceeded: it is there, but the job is not done by limits.until.
  // Cancelled: limits.stop was requested.
  absl::StatusOr<Job> watch_job(const std::string& name, const std::function<void(const Job&)>& on_change,
                                const std::function<void(bool lost)>& on_lost, const WatchLimits& limits = {});
  absl::StatusOr<Job> get_job(const std::string& name);
  // DeadlineExceeded when there is no answer within `patience`.
  absl::StatusOr<Job> cancel_job(const std::string& name, std::chrono::seconds patience = std::chrono::seconds(120));
  // The newest first, without their results. `unfinished`: only those that are not done.
  absl::StatusOr<std::vector<Job>> list_jobs(int most, bool unfinished = false);

  absl::StatusOr<Inspection> inspect(const std::string& graph, const TuneOptions& options, const std::string& stage,
                                     bool simplify_only, bool why = false);
  // Of what a result launches, which is shown as it is. DataLoss also: the coordinator's version inspects graphs only.
  absl::StatusOr<Inspection> inspect(const JobResult& result, const std::string& stage, bool why);

  // NotFound means that the coordinator's store has no record of the key. DataLoss, PermissionDenied: a record may not
  // be used, by its signature (proto/trust/signing.h) or its age (client/remote/seen.h).
  absl::StatusOr<KernelRecord> get_record(const std::string& key);
  // Returns records in the order of the digests; NotFound when the store lacks one.
  absl::StatusOr<std::vector<KernelRecord>> get_records(const std::vector<std::string>& digests);
  // The newest first; only those whose key begins with `key_prefix`.
  absl::StatusOr<std::vector<RecordSummary>> list_records(int most, const std::string& key_prefix = "");
  // The key of stored kernels that begins with `digits`, of which at least kLeastDigits are needed. A text that is no
  // beginning of a key, or a whole key, is returned as it is. NotFound: there is none; InvalidArgument: several.
  absl::StatusOr<std::string> whole_key(const std::string& digits);
  // Returns the bytes whose SHA-256 is the digest.
  absl::StatusOr<std::string> get_blob(const std::string& digest);

  absl::StatusOr<std::vector<WorkerSummary>> list_workers();
  absl::StatusOr<ServerSummary> server();
  // Whether workers get no new leases; what they have they may finish.
  absl::Status set_drained(bool drained);
  // Makes a backup of the coordinator's store and returns its file there. Takes up to an hour.
  struct Backup {
    std::string file;
    int64_t bytes = 0;
  };
  absl::StatusOr<Backup> make_backup();
  // Forgets whatever the workers of a producer measured, confirmed or reported: its records are served no more.
  // FailedPrecondition: it may still call the coordinator, and what to do about it.
  struct Revoked {
    int64_t records = 0, trials = 0;
  };
  absl::StatusOr<Revoked> revoke(const std::string& producer);
  // The records of a problem key are no longer served. Returns how many these were; NotFound: none.
  absl::StatusOr<int64_t> invalidate(const std::string& key);
  // Keeps the served records of a problem key, or the record of a digest, whatever the bounds of the store are. Returns
  // how many records these are; NotFound: none.
  absl::StatusOr<int64_t> set_pinned(const std::string& key_or_digest, bool pinned);

  // client/cli/reverify: kernels that other compilers or another driver made are verified again. Returns the new jobs.
  absl::StatusOr<std::vector<std::string>> reverify(const std::string& target, bool again);
  struct Reverification {
    std::string job, digest, key, environment_before, environment, outcome, plan_before, plan;
    double before_ns = 0, ns = 0;
    std::string message;
  };
  // What became of them, newest jobs first. `job`: of this one; empty: of all.
  absl::StatusOr<std::vector<Reverification>> list_reverified(const std::string& job, int most);

 private:
  absl::Status check_age(const KernelRecord& record);

  std::shared_ptr<grpc::Channel> channel_;
  Peer peer_;
};

}  // namespace wl
