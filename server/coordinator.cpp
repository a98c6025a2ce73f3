#include "server/coordinator.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "proto/rpc.h"
#include "server/doors.h"
#include "server/engine/engine.h"
#include "server/listener.h"
#include "server/metrics/calls.h"
#include "server/metrics/http.h"
#include "server/services/asking.h"
#include "server/services/memory.h"
#include "server/services/offers.h"
#include "server/services/services.h"
#include "server/store/disk.h"
#include "server/store/store.h"
#include "server/store/upkeep.h"
#include "server/training.h"
#include "server/vouching.h"
#include "server/web/web.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr auto kDrain = std::chrono::seconds(8);
// Threads of the pools for quick and slow calls; more than cores, since writes mostly wait for a shared commit.
constexpr int kQuickThreads = 16, kSlowThreads = 4;
constexpr size_t kMaxQueued = 4096;  // maximum number of calls that may wait for a thread of one pool

// Limits of a connection, by which the server notices peers that do not speak HTTP/2 or have vanished.
constexpr std::pair<const char*, int> kConnectionLimits[] = {
    {GRPC_ARG_MAX_CONCURRENT_STREAMS, 2'000},
    {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000},
    {GRPC_ARG_KEEPALIVE_TIME_MS, 30'000},
    {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000},
    {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
    // 0: a connection may send any number of pings without data, as it does while a long poll waits
    {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
    {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000},
};

// Reads the ranker. A file that the options name must be readable; an unreadable file beside the store is skipped.
absl::StatusOr<Ranker> ranker_for(const CoordinatorOptions& options) {
  if (options.ranker == "none") return Ranker();
  if (!options.ranker.empty()) return read_ranker(options.ranker);
  auto ranker = read_ranker(ranker_beside(options.store));
  if (ranker.ok()) return ranker;
  if (!absl::IsNotFound(ranker.status())) spdlog::warn("going on without: {}", std::string(ranker.status().message()));
  return Ranker();
}

}  // namespace

struct Coordinator::Impl {
  std::unique_ptr<Metrics> metrics;  // the metrics; null: none are kept, since there is no HTTP server
  LookedUpSum looked_up;
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<Store> store;
  std::unique_ptr<Upkeep> upkeep;
  std::unique_ptr<Upstream> upstream;  // the upstream coordinator; null: there is none
  std::unique_ptr<Engine> engine;
  std::unique_ptr<WorkPool> quick, slow, heavy;
  std::unique_ptr<Budget> waiting, transfers;
  std::unique_ptr<Vouching> vouching;  // completes signed statements; null: this coordinator signs no records
  std::unique_ptr<ReplyCache> replies;
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::unique_ptr<Authorizer> authorizer;
  std::shared_ptr<const SigningKey> signing;
  std::vector<Signer> signers;
  std::unique_ptr<grpc::Server> server;
  std::vector<std::unique_ptr<Doors>> doors;  // the doors (entrances) of each address, by the index of the address
  std::vector<std::string> addresses;
  std::unique_ptr<Listener> listener;  // accepts connections; null: there are only in-process calls
  std::unique_ptr<Web> web;            // the web pages; null: none are served
  std::unique_ptr<HttpServer> http;    // the HTTP server; null: there is none

  absl::Status open(const CoordinatorOptions& options);
  absl::Status open_trust(const CoordinatorOptions& options);
  std::vector<Signer> own_and(std::vector<Signer> others) const;
  absl::Status open_upstream(const UpstreamOptions& options);
  EngineOptions engine_options(const CoordinatorOptions& options);
  bool build(const CoordinatorOptions& options);
  absl::Status open_http(const CoordinatorOptions& options);
  CoordinatorState state() const;
  void close();
};

std::optional<std::string> in_use_by(const absl::Status& status) {
  return holder_in_turn(status);
}

Coordinator::Coordinator() : impl_(std::make_unique<Impl>()) {}

Coordinator::~Coordinator() {
  stop();
}

// Loads the keys of trusted signers. This coordinator's own key is one of them, since other coordinators may return
// records that it signed.
absl::Status Coordinator::Impl::open_trust(const CoordinatorOptions& options) {
  if (!options.signing_key.empty()) {
    WL_ASSIGN_OR_RETURN(signing, SigningKey::open(options.signing_key));
    store->sign_with(signing);
  }
  if (options.signers.empty()) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(signers, read_signers(options.signers));
  if (signing != nullptr) signers = own_and(signers);
  return absl::OkStatus();
}

std::vector<Signer> Coordinator::Impl::own_and(std::vector<Signer> others) const {
  if (find_signer(others, signing->public_key()) == nullptr)
    others.push_back({signing->public_key(), "this coordinator"});
  return others;
}

absl::Status Coordinator::Impl::open_upstream(const UpstreamOptions& options) {
  if (options.address.empty()) {
    const bool meant =
        options.offer != OfferRule::kNone || options.dialled.tls.any() || !options.dialled.token_file.empty();
    return meant ? invalid("--offer, --upstream-tls-ca and the like: expected --upstream ADDRESS with them")
                 : absl::OkStatus();
  }
  UpstreamParts parts;
  parts.store = store.get();
  parts.signers = signers;
  parts.why_not = [this](const KernelRecord& record) { return why_not_by_producer(authorizer.get(), record); };
  parts.changed = [this](const std::string& key) {
    replies->drop(key);
    if (vouching != nullptr) vouching->wake();
  };
  if (metrics != nullptr) {
    parts.asked = [this](const char* outcome) { metrics->upstream_asked(outcome); };
    parts.offered = [this](const char* outcome) { metrics->upstream_offered(outcome); };
  }
  WL_ASSIGN_OR_RETURN(upstream, Upstream::open(options, std::move(parts)));
  return absl::OkStatus();
}

EngineOptions Coordinator::Impl::engine_options(const CoordinatorOptions& options) {
  EngineOptions jobs{static_cast<const EngineSettings&>(options)};
  jobs.elsewhere = elsewhere_of(upstream.get());
  if (signing != nullptr) {
    jobs.build = options.build;
    jobs.vouch = [this](KernelRecord* record) { signing->sign_as_built(record); };
    jobs.is_ours = [own = own_and({})](const KernelRecord& record) { return check_signature(record, own).ok(); };
  }
  jobs.promoted = [this](const std::string& key) {
    replies->drop(key);
    if (upstream != nullptr) upstream->wake();
    if (vouching != nullptr) vouching->wake();
  };
  jobs.found = [this](const LookedUp& known) { looked_up.add(known); };
  if (metrics != nullptr) {
    jobs.stored = [this](const std::vector<Trial>& trials) { metrics->trials_stored(trials); };
    jobs.reverified = [this](Reverified outcome) { metrics->reverified(kReverifiedNames[static_cast<int>(outcome)]); };
    jobs.lease_ended = [this](LeaseEnd why) { metrics->lease_ended(kLeaseEndNames[static_cast<int>(why)]); };
    jobs.looked_up = [this](int64_t hits, int64_t misses) { metrics->looked_up(hits, misses); };
    jobs.job_ended = [this](JobState state) { metrics->job_ended(state); };
    jobs.first_kernel = [this](double seconds) { metrics->first_kernel(seconds); };
    jobs.best_kernel = [this](double seconds) { metrics->best_kernel(seconds); };
  }
  if (authorizer != nullptr) {
    jobs.rules = [this](const std::string& team) { return authorizer->rules_of(team); };
    jobs.machine_row = [this](const std::string& principal) { return authorizer->machine_of(principal); };
  }
  return jobs;
}

// Opens the store, and makes the engine, the pools and the services, none of which answers calls yet.
absl::Status Coordinator::Impl::open(const CoordinatorOptions& options) {
  StoreOptions wanted;
  wanted.file = options.store;
  wanted.max_pages = options.max_store_pages;
  wanted.on_broken = options.on_broken;
  wanted.quick_check = !options.listen.empty();
  wanted.in_turn = options.share_machine;
  wanted.max_object_bytes = options.upkeep.bounds.object_bytes;
  if (!options.http.empty()) metrics = std::make_unique<Metrics>(kLeaseEndNames);
  if (metrics != nullptr) wanted.at_point = commit_timer(metrics.get());
  WL_RETURN_IF_ERROR(Upkeep::check(options.upkeep));
  WL_ASSIGN_OR_RETURN(store, Store::open(wanted));
  upkeep = std::make_unique<Upkeep>(store.get(), options.upkeep);
  WL_RETURN_IF_ERROR(open_trust(options));
  replies = std::make_unique<ReplyCache>(options.reply_bytes);
  // The object `vouching` must exist before the upstream and the engine, whose callbacks wake its thread.
  if (signing != nullptr)
    vouching = std::make_unique<Vouching>(Vouching::Parts{store.get(), signing.get(), own_and(signers), options.build,
                                                          [this](const std::string& key) { replies->drop(key); }});
  WL_RETURN_IF_ERROR(open_upstream(options.upstream));
  WL_ASSIGN_OR_RETURN(Ranker ranker, ranker_for(options));
  compiler = warploom_compiler(std::move(ranker));
  engine = std::make_unique<Engine>(store.get(), options.compiler == nullptr ? compiler.get() : options.compiler,
                                    engine_options(options));
  quick = std::make_unique<WorkPool>(kQuickThreads, kMaxQueued);
  slow = std::make_unique<WorkPool>(kSlowThreads, kMaxQueued);
  heavy = std::make_unique<WorkPool>(long_threads(), kMaxQueued, kLongNice);
  waiting = std::make_unique<Budget>(options.max_waiting_calls);
  transfers = std::make_unique<Budget>(options.max_transfer_bytes);
  const Serving serving{.engine = engine.get(),
                        .store = store.get(),
                        .quick = quick.get(),
                        .slow = slow.get(),
                        .heavy = heavy.get(),
                        .upkeep = upkeep.get(),
                        .replies = replies.get(),
                        .authorizer = authorizer.get(),
                        .signing = signing.get(),
                        .upstream = upstream.get(),
                        .signers = &signers,
                        .waiting = waiting.get(),
                        .transfers = transfers.get(),
                        .lease_s = options.lease_s,
                        .forgotten =
                            [this] {
                              if (vouching != nullptr) vouching->wake();
                            },
                        .fetched =
                            [this](int64_t hits, int64_t misses) {
                              if (metrics != nullptr) metrics->fetched(hits, misses);
                            },
                        .looked_up = &looked_up};
  for (const auto make :
       {make_tuning_service, make_worker_service, make_kernel_store_service, make_blob_service, make_admin_service})
    services.push_back(make(serving));
  if (!options.http.empty() && authorizer != nullptr)
    web = std::make_unique<Web>(serving, authorizer.get(), options.tls.any());
  for (WorkPool* pool : {quick.get(), slow.get(), heavy.get()}) pool->start();
  return absl::OkStatus();
}

bool Coordinator::Impl::build(const CoordinatorOptions& options) {
  if (listener != nullptr) grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  for (const auto& [name, value] : kConnectionLimits) builder.AddChannelArgument(name, value);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, options.silence_ms);
  for (const auto& service : services) builder.RegisterService(service.get());
  if (listener != nullptr) {
    for (const std::string& address : addresses) {
      const Door kind = address.starts_with("unix:") ? Door::kUnix : options.tls.any() ? Door::kTls : Door::kLoopback;
      doors.push_back(std::make_unique<Doors>(kind, authorizer.get(), &builder));
    }
  }
  if (metrics != nullptr) {
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> counters;
    counters.push_back(count_calls(metrics.get()));
    builder.experimental().SetInterceptorCreators(std::move(counters));
  }
  server = builder.BuildAndStart();
  return server != nullptr;
}

absl::Status Coordinator::Impl::open_http(const CoordinatorOptions& options) {
  if (options.http.empty()) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(http, HttpServer::open({.address = options.http,
                                              .tls = options.tls,
                                              .metrics =
                                                  [this](const HttpQuestion& asked) {
                                                    return metrics->text(state()) +
                                                           (web ? web->usage_metrics(asked) : "");
                                                  },
                                              .not_ready = [this]() -> std::string {
                                                return engine->draining() ? "drained: workers get no new work" : "";
                                              },
                                              .pages =
                                                  [this](const HttpQuestion& question) {
                                                    return web == nullptr ? std::nullopt : web->answer(question);
                                                  }}));
  return absl::OkStatus();
}

CoordinatorState Coordinator::Impl::state() const {
  CoordinatorState out = process_state();
  out.ready_candidates = engine->ready_candidates();
  std::map<JobState, int64_t> jobs = engine->unfinished_jobs();
  out.queued_jobs = jobs[JobState::kQueued];
  out.running_jobs = jobs[JobState::kRunning];
  for (const WorkerView& worker : engine->workers()) {
    (worker.alive ? out.workers_alive : out.workers_gone) += 1;
    out.leases += static_cast<int64_t>(worker.doing.size());
  }
  std::error_code none;
  const auto size_of = [&](const std::string& file) {
    const auto size = std::filesystem::file_size(file, none);
    return none ? 0 : static_cast<int64_t>(size);
  };
  out.database_bytes = size_of(store->file());
  out.log_bytes = size_of(store->file() + "-wal");
  out.objects_bytes = store->object_bytes().value_or(0);
  const HeldMemory memory = held_memory();
  out.heap_bytes = memory.heap_bytes;
  out.resident_bytes = memory.resident_bytes;
  out.drained = engine->draining();
  if (upstream != nullptr) out.upstream_up = upstream->problem().empty();
  return out;
}

void Coordinator::Impl::close() {
  http.reset();
  web.reset();
  listener.reset();
  if (server) {
    server->Shutdown(std::chrono::system_clock::now() + kDrain);
    server->Wait();
  }
  // The server answers no more calls. The pools end before the engine, since their work may still use the engine.
  if (upstream != nullptr) upstream->stop();
  quick.reset();
  slow.reset();
  heavy.reset();
  engine.reset();
  upstream.reset();
  vouching.reset();
  server.reset();
  doors.clear();
  upkeep.reset();
  store.reset();
}

absl::Status Coordinator::start(const CoordinatorOptions& options) {
  Impl& impl = *impl_;
  if (!options.listen.empty()) {
    impl.addresses = absl::StrSplit(options.listen, ',');
    if (options.tls.any() && options.tls.cert.empty())
      return invalid("--tls-ca: expected --tls-cert and --tls-key with it");
    WL_ASSIGN_OR_RETURN(impl.authorizer, Authorizer::open({.owner = geteuid(),
                                                           .callers = options.callers,
                                                           .trust_domains = options.trust_domains,
                                                           .tls = options.tls}));
    WL_ASSIGN_OR_RETURN(impl.listener, Listener::open({.addresses = impl.addresses,
                                                       .tls = options.tls.any(),
                                                       .every_user = !options.callers.empty(),
                                                       .max_connections = options.max_connections}));
  }
  absl::Status status = impl.open(options);
  if (status.ok() && !impl.build(options)) status = absl::InternalError("gRPC could not start a server");
  if (status.ok()) status = impl.engine->start();
  if (status.ok()) status = impl.open_http(options);
  if (!status.ok()) {
    impl.close();
    return status;
  }
  // Connections that arrived before the listener starts here have waited in the sockets' backlogs.
  if (impl.listener != nullptr) {
    impl.listener->start([&impl](int fd, size_t address) { impl.doors[address]->take(fd); });
  }
  return absl::OkStatus();
}

std::shared_ptr<grpc::Channel> Coordinator::in_process_channel() {
  return impl_->server->InProcessChannel(channel_arguments());
}

int Coordinator::port() const {
  return impl_->listener == nullptr ? 0 : impl_->listener->port(0);
}

std::string Coordinator::http_address() const {
  return impl_->http == nullptr ? "" : impl_->http->address();
}

std::vector<std::string> Coordinator::addresses() const {
  std::vector<std::string> bound = impl_->addresses;
  for (size_t i = 0; i < bound.size(); ++i) {
    if (const int port = impl_->listener->port(i); port != 0)
      bound[i] = cat(bound[i].substr(0, bound[i].rfind(':') + 1), port);
  }
  return bound;
}

void Coordinator::stop() {
  Impl& impl = *impl_;
  if (!impl.store) return;
  if (impl.server) {
    if (auto* health = impl.server->GetHealthCheckService()) health->SetServingStatus(false);
  }
  if (impl.engine) impl.engine->leave();
  impl.close();
}

}  // namespace wl
