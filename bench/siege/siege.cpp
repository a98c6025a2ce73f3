// Callers of a coordinator that siege.py runs: honest clients, whose calls are timed, and attackers of the kinds that
// docs/design/trust.md and docs/design/covers.md#turns-and-memory-of-planning are about.
//
//   siege clients ADDRESS TOKEN SECONDS KEYS    eight clients that fetch the kernels of KEYS (a file with a key in each
//                                               line) and submit jobs of a small graph that is in the store
//   siege fetch ADDRESS TOKEN SECONDS KEYS      eight clients that only fetch, without waiting between calls
//   siege attack ADDRESS TOKEN SECONDS [KINDS]  attackers of KINDS (workers,plans,giants,idle; default: all): workers
//                                               without credentials that hold leases and use other workers' names,
//                                               callers that submit large or very large graphs and cancel the call
//                                               after a second, and idle connections
//
// TOKEN is a file with the token of an honest client. Prints a line of JSON. ADDRESS is HOST:PORT.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/status.h"
#include "proto/dial.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "warploom/v1/admin.grpc.pb.h"
#include "warploom/v1/kernel_store.grpc.pb.h"
#include "warploom/v1/tuning.grpc.pb.h"
#include "warploom/v1/worker.grpc.pb.h"

namespace wl {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kClients = 8, kWorkers = 4, kPlanners = 10, kGiants = 3, kIdle = 600;
// Numbers of ops of the large and of the very large graphs that attackers submit.
constexpr int64_t kLarge = 9'900, kGiant = 99'000;

std::shared_ptr<grpc::Channel> channel_to(const std::string& address, const std::string& token_file) {
  DialOptions how;
  how.token_file = token_file;
  auto channel = dial(address, how);
  if (!channel.ok()) {
    std::fprintf(stderr, "siege: %s\n", std::string(channel.status().message()).c_str());
    std::exit(1);
  }
  return *channel;
}

std::string chain_of(int64_t ops, int64_t rows) {
  std::string text = cat("graph {\n  %0 = input \"x\" : f32[", rows, ",32] normal(0,1)\n");
  for (int64_t i = 1; i <= ops; ++i) absl::StrAppend(&text, "  %", i, " = tanh %", i - 1, " : f32[", rows, ",32]\n");
  return cat(text, "  output \"y\" %", ops, "\n}\n");
}

void limit(grpc::ClientContext* context, milliseconds most) {
  context->set_deadline(std::chrono::system_clock::now() + most);
}

// Counts events by name. Several threads may use one object.
class Counts {
 public:
  void add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    ++counts_[name];
  }
  void add(const std::string& what, const grpc::Status& status) {
    add(cat(what, " ", status.ok() ? "ok" : cat("error ", static_cast<int>(status.error_code()))));
  }
  std::string json() {
    const std::lock_guard lock(mutex_);
    std::string out;
    for (const auto& [name, count] : counts_) absl::StrAppend(&out, out.empty() ? "" : ", ", "\"", name, "\": ", count);
    return cat("{", out, "}");
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
};

void honest(const std::string& address, const std::string& token, Clock::time_point end,
            const std::vector<std::string>& keys, bool only_fetch) {
  std::mutex mutex;
  std::map<std::string, std::vector<double>> ms;  // for each kind of call, its latencies in ms
  Counts counts;
  std::vector<std::jthread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      const auto channel = channel_to(address, token);
      const auto kernels = v1::KernelStore::NewStub(channel);
      const auto tuning = v1::TuningService::NewStub(channel);
      std::map<std::string, std::vector<double>> own;
      // A call is due 5 ms after the previous call ended or, with only_fetch, at once. Latency is counted from the due
      // time.
      for (int64_t i = 0; Clock::now() < end; ++i) {
        const auto due = Clock::now() + milliseconds(only_fetch ? 0 : 5);
        const bool fetches = only_fetch || i % 20 != 0;
        std::this_thread::sleep_until(due);
        grpc::ClientContext context;
        limit(&context, milliseconds(60'000));
        grpc::Status status;
        if (fetches) {
          v1::GetKernelRequest request;
          request.set_key(keys[static_cast<size_t>(i + c) % keys.size()]);
          v1::KernelRecord record;
          status = kernels->GetKernel(&context, request, &record);
        } else {
          v1::CreateTuningJobRequest request;
          request.set_request_id(cat(c, " ", i, " ", due.time_since_epoch().count()));
          request.set_graph(chain_of(2, 64));
          request.mutable_options()->set_require_cached(true);
          request.mutable_options()->set_target("cpu");
          v1::Job job;
          status = tuning->CreateTuningJob(&context, request, &job);
        }
        const std::string kind = fetches ? "fetch" : "create";
        own[kind].push_back(std::chrono::duration<double, std::milli>(Clock::now() - due).count());
        counts.add(kind, status);
      }
      const std::lock_guard lock(mutex);
      for (const auto& [kind, each] : own)
        for (const std::string& name : {kind, std::string("all")})
          ms[name].insert(ms[name].end(), each.begin(), each.end());
    });
  }
  clients.clear();
  std::string out;
  for (auto& [kind, each] : ms) {
    std::sort(each.begin(), each.end());
    const auto at = [&](double part) { return each[static_cast<size_t>(part * static_cast<double>(each.size() - 1))]; };
    absl::StrAppend(&out, "\"", kind, "\": {\"calls\": ", each.size(), ", \"p50\": ", at(0.5), ", \"p99\": ", at(0.99),
                    ", \"most\": ", each.back(), "}, ");
  }
  std::printf("{%s\"outcomes\": %s}\n", out.c_str(), counts.json().c_str());
}

// Returns the device of the honest worker, which attackers register too, so that they are given the same work. Waits
// until the honest worker has registered.
v1::Device known_device(const std::string& address, const std::string& token) {
  const auto admin = v1::Admin::NewStub(channel_to(address, token));
  for (;;) {
    grpc::ClientContext context;
    v1::ListWorkersResponse answer;
    const grpc::Status status = admin->ListWorkers(&context, {}, &answer);
    for (const v1::WorkerInfo& worker : answer.workers())
      if (worker.devices_size() > 0) return worker.devices(0);
    if (!status.ok()) std::fprintf(stderr, "siege: %s\n", status.error_message().c_str());
    std::this_thread::sleep_for(milliseconds(100));
  }
}

// A worker that acquires leases and renews them with progress, but reports no results. It also tries to renew its
// leases under the name of the honest worker.
void hold_leases(const std::string& address, const v1::Device& device, int number, Clock::time_point end,
                 Counts& counts) {
  const auto workers = v1::WorkerService::NewStub(channel_to(address, ""));
  const std::string said = cat("siege", number);
  std::string name;
  uint64_t epoch = 0;
  std::vector<v1::Lease> held;
  for (int64_t i = 1; Clock::now() < end; ++i) {
    if (name.empty()) {
      grpc::ClientContext context;
      v1::RegisterWorkerRequest request;
      request.set_name(said);
      *request.add_devices() = device;
      v1::RegisterWorkerResponse answer;
      const grpc::Status status = workers->RegisterWorker(&context, request, &answer);
      counts.add("register", status);
      if (status.ok()) {
        name = answer.name();
        epoch = answer.epoch();
      }
    }
    {
      grpc::ClientContext context;
      limit(&context, milliseconds(2'000));
      v1::AcquireLeasesRequest request;
      request.set_worker(name);
      request.set_epoch(epoch);
      request.set_max(4);
      request.set_wait_s(0.2);
      v1::AcquireLeasesResponse answer;
      const grpc::Status status = workers->AcquireLeases(&context, request, &answer);
      counts.add("acquire", status);
      if (!status.ok()) name.clear();
      for (const v1::Lease& lease : answer.leases()) {
        counts.add("lease taken");
        held.push_back(lease);
      }
    }
    for (const std::string& as : {name, std::string("bench/w")}) {
      if (held.empty() || as.empty()) continue;
      grpc::ClientContext context;
      limit(&context, milliseconds(2'000));
      v1::RenewLeasesRequest request;
      request.set_worker(as);
      request.set_epoch(as == name ? epoch : 1);
      for (const v1::Lease& lease : held) {
        v1::RenewLeasesRequest::Item* item = request.add_items();
        item->set_lease_id(lease.lease_id());
        item->set_attempt(lease.attempt());
        item->set_phase("measure");
        item->set_done(i);
      }
      v1::RenewLeasesResponse answer;
      counts.add(as == name ? "renew" : "renew in another's name", workers->RenewLeases(&context, request, &answer));
      if (as != name) continue;
      std::vector<v1::Lease> kept;
      for (int j = 0; j < answer.outcomes_size(); ++j)
        if (answer.outcomes(j) == v1::RenewLeasesResponse::OK) kept.push_back(held[static_cast<size_t>(j)]);
      for (size_t j = kept.size(); j < held.size(); ++j) counts.add("lease lost");
      held = std::move(kept);
    }
    std::this_thread::sleep_for(milliseconds(200));
  }
}

// Submits jobs of a large graph, each with a deadline of one second.
void plan_and_go(const std::string& address, int64_t ops, int number, Clock::time_point end, Counts& counts) {
  const auto tuning = v1::TuningService::NewStub(channel_to(address, ""));
  const std::string graph = chain_of(ops, 64 + number);
  for (int64_t i = 0; Clock::now() < end; ++i) {
    grpc::ClientContext context;
    limit(&context, milliseconds(1'000));
    v1::CreateTuningJobRequest request;
    request.set_request_id(cat("siege ", ops, " ", number, " ", i, " ", getpid()));
    request.set_graph(graph);
    request.mutable_options()->set_target("cpu");
    request.mutable_options()->set_cover("planned");
    v1::Job job;
    counts.add(cat("plan of ", ops), tuning->CreateTuningJob(&context, request, &job));
  }
}

// Keeps kIdle idle connections open, half of them with the preface of HTTP/2 sent, and replaces those that the
// coordinator closes.
void stay_idle(int port, Clock::time_point end, Counts& counts) {
  constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
  std::vector<int> open(kIdle, -1);
  while (Clock::now() < end) {
    for (size_t i = 0; i < open.size(); ++i) {
      char byte = 0;
      if (open[i] >= 0 && recv(open[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0) {
        close(open[i]);
        open[i] = -1;
        counts.add("idle connection closed");
      }
      if (open[i] >= 0) continue;
      open[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in to = {};
      to.sin_family = AF_INET;
      to.sin_port = htons(static_cast<uint16_t>(port));
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      (void)!connect(open[i], reinterpret_cast<sockaddr*>(&to), sizeof to);
      if (i % 2 == 0) (void)!send(open[i], kPreface, sizeof kPreface, MSG_NOSIGNAL | MSG_DONTWAIT);
      counts.add("idle connection opened");
    }
    std::this_thread::sleep_for(milliseconds(250));
  }
  for (const int fd : open) close(fd);
}

void attack(const std::string& address, const std::string& token, Clock::time_point end, const std::string& kinds) {
  const auto has = [&](const char* kind) { return kinds.empty() || kinds.find(kind) != std::string::npos; };
  const v1::Device device = known_device(address, token);
  const int port = std::atoi(address.substr(address.rfind(':') + 1).c_str());
  Counts counts;
  std::vector<std::jthread> all;
  for (int i = 0; has("workers") && i < kWorkers; ++i)
    all.emplace_back([&, i] { hold_leases(address, device, i, end, counts); });
  for (int i = 0; has("plans") && i < kPlanners; ++i)
    all.emplace_back([&, i] { plan_and_go(address, kLarge, i, end, counts); });
  for (int i = 0; has("giants") && i < kGiants; ++i)
    all.emplace_back([&, i] { plan_and_go(address, kGiant, i, end, counts); });
  if (has("idle")) all.emplace_back([&] { stay_idle(port, end, counts); });
  all.clear();
  std::printf("%s\n", counts.json().c_str());
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (!((mode == "clients" || mode == "fetch") && argc == 6) && !(mode == "attack" && (argc == 5 || argc == 6))) {
    std::fprintf(
        stderr, "usage: siege clients|fetch ADDRESS TOKEN SECONDS KEYS | siege attack ADDRESS TOKEN SECONDS [KINDS]\n");
    return 1;
  }
  const auto end = wl::Clock::now() + std::chrono::seconds(std::atoi(argv[4]));
  if (mode == "attack") {
    wl::attack(argv[2], argv[3], end, argc == 6 ? argv[5] : "");
    return 0;
  }
  std::vector<std::string> keys;
  std::ifstream in(argv[5]);
  for (std::string key; in >> key;) keys.push_back(key);
  if (!keys.empty()) wl::honest(argv[2], argv[3], end, keys, /*only_fetch=*/mode == "fetch");
  return keys.empty() ? 1 : 0;
}
