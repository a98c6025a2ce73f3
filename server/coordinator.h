// The coordinator: gRPC services over the job engine and the store. One object is one coordinator; warploomd listens on
// a socket with it, and the client's main puts it into its own process (embedded mode) and talks to it over an
// in-process channel: the same services, the same code paths. A change of state is
// committed to the store before it is answered, so the process may be killed at any time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/tls.h"
#include "server/engine/engine.h"
#include "server/store/upkeep.h"
#include "server/upstream/upstream.h"

namespace grpc {
class Channel;
}

namespace wl {

class Compiler;

struct CoordinatorOptions {
  std::string store;  // path of the SQLite file; made when missing, with its folder
  // Addresses, separated by commas: "HOST:PORT", or "unix:PATH"; empty: in-process only. Without `tls` a HOST must be
  // of this machine; with it every port speaks TLS.
  std::string listen;
  TlsFiles tls;
  std::string http;         // "HOST:PORT" of pages, metrics and health (server/metrics/http.h); empty: none
  std::string signing_key;  // file of the private key that signs records, made when missing; empty: none are signed
  std::string callers;      // file that says who may call what (server/services/callers.h); empty: as if it had no rows
  // Whose certificates may name a role (AuthorizerOptions::trust_domains); empty: nobody's, rows of `callers` alone do.
  std::string trust_domains;
  // File of the public keys of other coordinators (read_signers()) whose records may be used. Empty: what the upstream
  // has need not be signed by anybody in particular, and no records are taken from below.
  std::string signers;
  UpstreamOptions upstream;
  int max_connections = 0;  // at once (server/listener.h)
  // A connection without a call for so long is closed, also before its first one. Callers leave sooner (proto/rpc.cpp).
  int silence_ms = 10'000;
  // The worker shares this machine: hand out no lease while the coordinator itself computes, so that nothing disturbs
  // timing. The store is then held for one command, and in_use_by() tells others of that kind so.
  bool share_machine = false;
  // Kernels that other compilers or another driver made are verified again when a worker registers that has new ones.
  bool reverify = false;
  double lease_s = 15;
  double stuck_s = 180;  // a lease of which the runner shows no progress for so long is lost, although it is renewed
  // Another worker that waits is given what one has had for so long, or for several times what such work takes
  // (server/engine/bounds/overdue.h).
  double patience_s = 60;
  int check_threads = 2;
  int64_t plan_memory_bytes = 0;  // for the graphs of all open jobs and what is planned of them; 0: no limit
  // Called once, on any thread, when the store no longer knows what is on the disk (StoreOptions::on_broken). Nothing
  // is served from it any more: the process is to stop() and end.
  std::function<void(const absl::Status&)> on_broken = {};
  // Compiles the source of what is promoted on this machine (server/engine/engine.h); empty: nothing here can.
  Build build = {};
  const Compiler* compiler = nullptr;  // tests: another one (server/jobs/compiler.h)
  // A learned cost model (server/training.h). Empty: the one beside the store, if there is one that can be read;
  // "none": none.
  std::string ranker;
  // Of blobs and answers of Inspect that arrive or leave at once; no less than a blob may have.
  int64_t max_transfer_bytes = 256ll << 20;
  int64_t max_waiting_calls = 20'000;  // long polls, watches and attending workers at once
  int64_t reply_bytes = 64 << 20;      // of records that were asked for, kept as they go over the wire
  UpkeepOptions upkeep;                // backups, and bounds of the store
  int64_t max_store_pages = 0;         // tests: the store is full beyond so many 4 KiB pages; 0 = no limit
};

// The id of the process that has the store for one command, where start() is Unavailable for that reason alone: to try
// again later will do. None for every other status.
std::optional<std::string> in_use_by(const absl::Status& status);

class Coordinator {
 public:
  Coordinator();
  ~Coordinator();  // stop()
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Once. Opens the store, goes on with the jobs that were not done, and serves. InvalidArgument: an address that
  // cannot be listened on by its form, or more connections than the process can have; Unavailable: the port or the
  // store is in use by another process; FailedPrecondition, ResourceExhausted, PermissionDenied, DataLoss: the store
  // cannot be used, and why.
  absl::Status start(const CoordinatorOptions& options);
  // For embedded mode. No call may begin on it once stop() has begun: gRPC 1.51 crashes on an in-process channel whose
  // server is gone, so stop the agent and the client first.
  std::shared_ptr<grpc::Channel> in_process_channel();
  int port() const;  // the bound port of the first address, when it is HOST:0
  // The addresses that it listens on, with the bound ports.
  std::vector<std::string> addresses() const;
  std::string http_address() const;  // with the bound port; empty: there is none
  // No new leases, open calls end with UNAVAILABLE, the store is checkpointed and closed. Takes at most about 10 s, or
  // as long as a backup that is under way.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl
