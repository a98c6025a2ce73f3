// The coordinator: gRPC services over the job engine and the store. An object of the class is one coordinator.
// warploomd serves it on sockets; embedded mode has it in the client's process and calls the same services over an
// in-process channel. Every change of state is committed to the store before the call is answered, so the process may
// be killed at any time.
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

struct CoordinatorOptions : EngineSettings {
  std::string store;  // path of the SQLite file; it and its folder are created if missing
  // Addresses, separated by commas: "HOST:PORT" or "unix:PATH"; empty: in-process calls only. Without `tls` every HOST
  // must be a loopback address; with it every port speaks TLS.
  std::string listen;
  TlsFiles tls;
  // "HOST:PORT" at which web pages, metrics and health are served (server/metrics/http.h); empty: nowhere.
  std::string http;
  // File of the private key that signs records, created if it is missing. Empty: records are not signed.
  std::string signing_key;
  std::string callers;  // file of callers and their rights (server/services/callers.h); empty: same as an empty file
  // Trust domains whose certificates may name a role (AuthorizerOptions::trust_domains); empty: only rows of `callers`
  // give roles.
  std::string trust_domains;
  // File of the public keys of other coordinators (read_signers()) whose records are accepted. Empty: records of the
  // upstream are accepted whoever signed them, and no coordinator may offer records.
  std::string signers;
  UpstreamOptions upstream;
  int max_connections = 0;  // limit on open connections; 0: chosen by the listener (server/listener.h)
  // A connection is closed after this time without a call, also before its first call. This project's own clients close
  // theirs sooner (proto/rpc.cpp).
  int silence_ms = 10'000;
  // Called once, on any thread, when the store no longer knows what is on the disk (StoreOptions::on_broken). From then
  // on the store serves nothing: the process must call stop() and end.
  std::function<void(const absl::Status&)> on_broken = {};
  // Compiles the sources of promoted kernels on this machine (server/engine/engine.h). Empty: nothing is compiled here.
  Build build = {};
  const Compiler* compiler = nullptr;  // for tests: replaces the compiler (server/jobs/compiler.h); null: not replaced
  // File of a learned cost model (server/training.h). Empty: the file beside the store, if it exists and can be read;
  // "none": no model.
  std::string ranker;
  // Limit on the bytes of blobs and of answers of Inspect that are in transfer at the same time; at least the size of
  // the largest allowed blob.
  int64_t max_transfer_bytes = 256ll << 20;
  int64_t max_waiting_calls = 20'000;  // limit on open long polls, watches and calls of Attend
  int64_t reply_bytes = 64 << 20;      // bytes of the cache of encoded replies with records
  UpkeepOptions upkeep;                // settings of backups, and size limits of the store
  int64_t max_store_pages = 0;         // for tests: number of 4 KiB pages at which the store is full; 0: no limit
};

// If start() returned Unavailable only because another process holds the store for the duration of one command, returns
// the id of that process: a later start() will succeed. Returns nullopt for every other status.
std::optional<std::string> in_use_by(const absl::Status& status);

class Coordinator {
 public:
  Coordinator();
  ~Coordinator();  // calls stop()
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Must be called once. Opens the store, resumes the jobs that were not done, and serves. InvalidArgument: an address
  // is malformed or not allowed, or the process cannot have so many connections. Unavailable: another process uses the
  // port or the store. FailedPrecondition, ResourceExhausted, PermissionDenied, DataLoss: the store cannot be used; the
  // message says why.
  absl::Status start(const CoordinatorOptions& options);
  // Returns a channel to this coordinator, for embedded mode. No call on the channel may begin after stop() has begun,
  // since gRPC 1.51 crashes on an in-process channel whose server is gone; so stop the worker and the client first.
  std::shared_ptr<grpc::Channel> in_process_channel();
  int port() const;  // the bound port of the first address; 0: that address is a unix socket
  // Returns the addresses on which the coordinator listens, with the bound ports.
  std::vector<std::string> addresses() const;
  std::string http_address() const;  // address of the web pages, with the bound port; empty: none
  // Gives no new leases, ends open calls with UNAVAILABLE, checkpoints the store and closes it. Takes about 10 s at
  // most, or as long as a backup that is in progress.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl
