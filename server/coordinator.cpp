#include "server/coordinator.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "absl/strings/numbers.h"
#include "compiler/base/status.h"
#include "proto/rpc.h"
#include "server/engine/engine.h"
#include "server/services/services.h"
#include "server/store/store.h"
#include "server/training.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr auto kDrain = std::chrono::seconds(8);
// Calls that write to the store wait for its next commit together, so they are more than the cores.
constexpr int kQuickThreads = 16, kSlowThreads = 4;
constexpr size_t kMaxQueued = 4096;                 // calls that wait for a thread
constexpr int64_t kMaxTransferBytes = 256ll << 20;  // of blobs that are arriving or leaving

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host == "::1" || host.starts_with("127.");
}

absl::Status check_address(const std::string& address, bool allow_remote) {
  if (address.starts_with("unix:")) {
    const size_t length = address.size() - 5;
    if (length == 0 || length >= sizeof(sockaddr_un::sun_path)) {
      return invalid("listen address ", address, ": expected unix:PATH with at most ",
                     sizeof(sockaddr_un::sun_path) - 1, " bytes of path");
    }
    return absl::OkStatus();
  }
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return invalid("listen address ", address, ": expected HOST:PORT or unix:PATH");
  }
  if (!allow_remote && !is_loopback(address.substr(0, colon))) {
    return invalid("listen address ", address,
                   ": is reachable from other machines and there is no authentication yet; listen on "
                   "127.0.0.1 or unix:PATH, or say --allow-remote");
  }
  return absl::OkStatus();
}

// Removes a socket file that nobody answers on: a process that was killed left it.
absl::Status clear_socket(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode))
    return absl::AlreadyExistsError(
        cat("listen address unix:", path, ": is a file that is no socket; name another path"));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool answered = connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(probe);
  if (answered)
    return absl::UnavailableError(
        cat("listen address unix:", path, ": is in use by another process; stop it or choose another path"));
  unlink(path.c_str());
  return absl::OkStatus();
}

// A ranker that is named must be readable. One that only lies beside the store is left out when it is damaged or was
// made by another version.
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
  CoordinatorOptions options;
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<Store> store;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<WorkPool> quick, slow;
  ByteBudget transfers{kMaxTransferBytes};
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

Coordinator::Coordinator() : impl_(std::make_unique<Impl>()) {}

Coordinator::~Coordinator() {
  stop();
}

absl::Status Coordinator::start(const CoordinatorOptions& options) {
  Impl& impl = *impl_;
  impl.options = options;
  if (!options.listen.empty()) {
    WL_RETURN_IF_ERROR(check_address(options.listen, options.allow_remote));
    if (options.listen.starts_with("unix:")) WL_RETURN_IF_ERROR(clear_socket(options.listen.substr(5)));
  }
  StoreOptions store;
  store.file = options.store;
  store.max_pages = options.max_store_pages;
  store.quick_check = !options.listen.empty();
  WL_ASSIGN_OR_RETURN(impl.store, Store::open(store));
  EngineOptions engine;
  engine.share_machine = options.share_machine;
  engine.lease_s = options.lease_s;
  engine.check_threads = options.check_threads;
  WL_ASSIGN_OR_RETURN(Ranker ranker, ranker_for(options));
  impl.compiler = warploom_compiler(std::move(ranker));
  impl.engine = std::make_unique<Engine>(impl.store.get(),
                                         options.compiler == nullptr ? impl.compiler.get() : options.compiler, engine);
  impl.quick = std::make_unique<WorkPool>(kQuickThreads, kMaxQueued);
  impl.slow = std::make_unique<WorkPool>(kSlowThreads, kMaxQueued);
  const Serving serving{.engine = impl.engine.get(),
                        .store = impl.store.get(),
                        .quick = impl.quick.get(),
                        .slow = impl.slow.get(),
                        .transfers = &impl.transfers,
                        .lease_s = options.lease_s};
  for (const auto make :
       {make_tuning_service, make_worker_service, make_kernel_store_service, make_blob_service, make_admin_service})
    impl.services.push_back(make(serving));

  if (!options.listen.empty()) grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  // Otherwise the operating system would let a second coordinator share the port.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  if (!options.listen.empty()) {
    builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &impl.port);
  }
  for (const auto& service : impl.services) builder.RegisterService(service.get());
  impl.server = builder.BuildAndStart();
  if (impl.server == nullptr || (!options.listen.empty() && impl.port == 0)) {
    impl.server.reset();
    impl.quick.reset();
    impl.slow.reset();
    impl.engine.reset();
    impl.store.reset();
    return absl::UnavailableError(
        cat("listen address ", options.listen,
            ": cannot be listened on; it is in use by another process or not of this machine: choose another"));
  }
  if (options.listen.starts_with("unix:")) chmod(options.listen.substr(5).c_str(), 0600);
  return impl.engine->start();
}

std::shared_ptr<grpc::Channel> Coordinator::in_process_channel() {
  return impl_->server->InProcessChannel(channel_arguments());
}

int Coordinator::port() const {
  return impl_->port;
}

void Coordinator::stop() {
  Impl& impl = *impl_;
  if (!impl.store) return;
  if (impl.server) {
    if (auto* health = impl.server->GetHealthCheckService()) health->SetServingStatus(false);
  }
  if (impl.engine) impl.engine->leave();
  if (impl.server) {
    impl.server->Shutdown(std::chrono::system_clock::now() + kDrain);
    impl.server->Wait();
  }
  impl.quick.reset();
  impl.slow.reset();
  impl.engine.reset();
  impl.server.reset();
  impl.store.reset();
}

}  // namespace wl
