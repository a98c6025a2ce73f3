// The coordinator as the client sees it: its services as functions over plain data. The channel leads to another
// machine, to a socket of this one, or into this process (embedded mode); nothing here can tell.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"

namespace grpc {
class Channel;
}

namespace wl {

struct InspectedGroup {
  std::string key, graph, plan, text, space;
  int64_t count = 0;
  bool tuned = false;  // the plan is the store's, not the default schedule
  Source source;       // of the stage "source"
};
struct Inspection {
  std::string graph;  // simplified
  std::vector<InspectedGroup> groups;
  std::string why, picture;  // where they were asked for
};

struct WorkerSummary {
  std::string name;
  uint64_t epoch = 0;
  std::vector<Device> devices;
  bool alive = false;
  int64_t last_seen_unix_ms = 0;
  int leases = 0;
};

struct RecordSummary {
  std::string key, digest, environment, target, device, plan;
  int64_t ops = 0;
  double best_ns = 0, default_ns = 0;
  int64_t created_unix_ms = 0;
};

// Errors of every call: what the coordinator said; Unavailable, naming the address, when it cannot be reached. Safe to
// use from several threads.
class Service {
 public:
  // `where` names the coordinator in messages.
  Service(std::shared_ptr<grpc::Channel> channel, std::string where);
  // "HOST:PORT" or "unix:PATH". Connects when first used.
  static Service at(const std::string& address);

  // Returns at once. The same request_id with the same body gives the same job.
  absl::StatusOr<Job> create_job(const std::string& request_id, const std::string& graph, const TuneOptions& options,
                                 const std::string& label);
  // Calls on_change with every state seen until the job is done, and returns its last. A coordinator that goes away is
  // waited for, `patience_s` long each time; on_lost tells (true: lost, false: back).
  absl::StatusOr<Job> watch_job(const std::string& name, const std::function<void(const Job&)>& on_change,
                                const std::function<void(bool lost)>& on_lost, double patience_s = 60);
  absl::StatusOr<Job> get_job(const std::string& name);
  absl::StatusOr<Job> cancel_job(const std::string& name);
  absl::StatusOr<std::vector<Job>> list_jobs(int most);

  absl::StatusOr<Inspection> inspect(const std::string& graph, const TuneOptions& options, const std::string& stage,
                                     bool simplify_only, bool why = false);

  // NotFound is a miss.
  absl::StatusOr<KernelRecord> get_record(const std::string& key);
  // In the order of the digests; NotFound when the store has lost one.
  absl::StatusOr<std::vector<KernelRecord>> get_records(const std::vector<std::string>& digests);
  absl::StatusOr<std::vector<RecordSummary>> list_records(int most);
  // Bytes whose SHA-256 is the digest.
  absl::StatusOr<std::string> get_blob(const std::string& digest);

  absl::StatusOr<std::vector<WorkerSummary>> list_workers();

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::string where_;
};

// A random UUIDv4, for request ids.
std::string new_request_id();

}  // namespace wl
