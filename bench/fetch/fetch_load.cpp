// Rate and latency with which clients fetch kernels from a coordinator in the same process, over TCP on this machine.
// The same interleaved rounds measure a bare gRPC service that answers with the same reply, and bare reads of equal
// replies from an SQLite file. Then latencies are measured at half of the largest rate, while workers report results.
//
//   fetch_load [RECORDS [SECONDS]]
//
// Prints a table; rates are medians of five rounds.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <latch>
#include <list>
#include <map>
#include <thread>

#include "bench/fetch/bare.h"
#include "server/services/callers.h"
#include "server/store/store.h"
#include "tests/server/fakes.h"
#include "tests/unit/scratch.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;
// Sizes in bytes of a record's prelude and source, as in records of CPU kernels.
constexpr size_t kPreludeBytes = 56'000, kSourceBytes = 6'000;
constexpr double kResultsPerSecond = 2'000;

std::string key_of(int64_t i) {
  return sha256_hex(cat("key ", i));
}

KernelRecord record_of(int64_t i) {
  KernelRecord record;
  record.key = key_of(i);
  record.environment = "gcc 12";
  record.device = fake_device();
  record.graph = cat("graph {\n  %0 = input \"x\" : f32[", i + 1, ",1024] normal(0,1)\n  %1 = exp %0 : f32[", i + 1,
                     ",1024]\n  output \"y\" %1\n}\n", "# ", std::string(1'500, 'g'), "\n");
  record.plan = cat("plan v2 number=", i, " rows=8 vector=8 unroll=4 prefetch=2");
  record.default_plan = "plan v2 number=0";
  record.problem.key = record.key;
  record.source.target = "cpu:avx2";
  record.source.compiler = "gcc";
  record.source.prelude = std::string(kPreludeBytes, 'p');
  record.source.text = cat("// ", i, "\n", std::string(kSourceBytes, 's'));
  record.source.entry = "k";
  for (int sample = 0; sample < 32; ++sample) {
    record.samples_ns.push_back(1'000'000 + i + sample);
    record.default_samples_ns.push_back(2'000'000 + i + sample);
  }
  record.check_seeds = {1, 2};
  record.strategy = "portfolio";
  record.digest = record_digest(record);
  return record;
}

void fill(const std::string& file, int64_t records) {
  StoreOptions options;
  options.file = file;
  const auto store = must(Store::open(options));
  JobRow job;
  job.request_id = "r";
  job.device = fake_device();
  const int64_t id = must(store->create_job(job)).id;
  const int64_t search = must(store->open_search(id, SearchRow{0, "k", "e", "random", 0, 1}, false)).id;
  job.id = id;
  job.state = JobState::kCancelled;
  must(store->finish_job(job, ""));
  for (int64_t i = 0; i < records; ++i) must(store->promote(record_of(i), search));
}

// Returns the serialised reply to a GetKernel call with manifest_only, which has no sources.
std::string manifest_of(const KernelRecord& record) {
  v1::KernelRecord message = to_proto(record);
  message.mutable_source()->clear_prelude();
  message.mutable_source()->clear_text();
  return message.SerializeAsString();
}

using Fetcher = std::function<void(uint64_t i)>;  // fetches the i-th record; each thread has its own Fetcher
using MakeFetcher = std::function<Fetcher()>;     // makes a Fetcher for the calling thread
struct Contender {
  std::string name;
  MakeFetcher make;
  std::map<int, std::vector<double>> rates = {};  // for each number of threads, the calls per second in each round
  double rate(int threads) {
    std::vector<double>& all = rates[threads];
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
};

// Returns the calls per second, timed from when every thread has made one call.
double rate_of(const MakeFetcher& make, int threads, double seconds) {
  std::atomic<bool> stop = false;
  std::atomic<int64_t> calls = 0;
  std::latch ready(threads + 1);
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const Fetcher fetch = make();
      uint64_t i = static_cast<uint64_t>(t) * 7919;
      fetch(i);
      ready.arrive_and_wait();
      for (; !stop; ++calls) fetch(++i);
    });
  }
  ready.arrive_and_wait();
  const Clock::time_point begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto count = static_cast<double>(calls);
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  stop = true;
  return count / took;
}

// Returns the sorted latencies in ms of calls that are due at fixed times, `rate` of them per second. The latency of a
// call is counted from the time when it was due, even if it begins later.
std::vector<double> latencies_at(const MakeFetcher& make, int threads, double rate, double seconds) {
  std::vector<std::vector<double>> each(static_cast<size_t>(threads));
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        const Fetcher fetch = make();
        fetch(0);
        const std::chrono::duration<double> step(threads / rate);
        const Clock::time_point begin = Clock::now();
        for (int64_t i = 0; static_cast<double>(i) * step.count() < seconds; ++i) {
          const auto due = begin + std::chrono::duration_cast<Clock::duration>(static_cast<double>(i) * step);
          std::this_thread::sleep_until(due);
          fetch(static_cast<uint64_t>(i * threads + t));
          each[t].push_back(std::chrono::duration<double, std::milli>(Clock::now() - due).count());
        }
      });
    }
  }
  std::vector<double> out;
  for (const auto& one : each) out.insert(out.end(), one.begin(), one.end());
  std::sort(out.begin(), out.end());
  return out;
}

// Simulated workers that report results of large jobs, at most kResultsPerSecond together.
class Reporting {
 public:
  explicit Reporting(Coordinator& coordinator) {
    const auto tuning = v1::TuningService::NewStub(coordinator.in_process_channel());
    for (int64_t i = 0; i < kJobs; ++i) {
      v1::CreateTuningJobRequest request;
      request.set_request_id(cat("job ", i));
      request.set_graph(cat("graph {\n  %0 = input \"x\" : f32[", i + 2, ",32] normal(0,1)\n  %1 = exp %0 : f32[",
                            i + 2, ",32]\n  output \"y\" %1\n}\n"));
      TuneOptions options;
      options.trials = kTrials;
      options.strategy = "random";
      options.device = fake_device();
      *request.mutable_options() = to_proto(options);
      grpc::ClientContext context;
      v1::Job job;
      must(from_grpc(tuning->CreateTuningJob(&context, request, &job)));
    }
    for (int i = 0; i < 8; ++i) workers_.emplace_back(coordinator.in_process_channel(), cat("w", i), hooks());
  }
  int64_t results() const { return results_; }
  // Waits until results arrive at 90 % of the allowed rate, or until half of all results have arrived.
  void wait_until_steady() const {
    int64_t before = 0;
    do {
      before = results_;
      std::this_thread::sleep_for(std::chrono::seconds(1));
    } while (static_cast<double>(results_ - before) < 0.9 * kResultsPerSecond && before < kJobs * kTrials / 2);
  }

 private:
  static constexpr int64_t kJobs = 64, kTrials = 1'000;
  // Returns hooks that limit the rate of results: every batch waits for its time slot. When batches come late, no later
  // slots come sooner to make up for that.
  Hooks hooks() {
    return {.before = [this](const Batch& batch) {
      const auto count = static_cast<int64_t>(batch.candidates.size());
      Clock::time_point turn;
      {
        const std::lock_guard lock(mutex_);
        turn = std::max(next_, Clock::now());
        next_ = turn + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(static_cast<double>(count) / kResultsPerSecond));
      }
      std::this_thread::sleep_until(turn);
      results_ += count;
    }};
  }
  std::mutex mutex_;
  Clock::time_point next_ = Clock::now();
  std::atomic<int64_t> results_ = 0;
  std::list<FakeWorker> workers_;
};

// A coordinator over a store. `reply_bytes`: size of the coordinator's cache of replies; 0: no cache.
struct Served {
  Served(const std::string& file, int64_t reply_bytes, const TlsFiles& tls = {}, const std::string& callers = "",
         const std::string& http = "") {
    CoordinatorOptions options;
    options.store = file;
    options.listen = "localhost:0";
    options.tls = tls;
    options.trust_domains = "bench";
    options.callers = callers;
    options.http = http;
    options.compiler = &compiler;
    options.reply_bytes = reply_bytes;
    must(coordinator.start(options));
  }
  FakeCompiler compiler;
  Coordinator coordinator;
};

template <typename... Whom>
MakeFetcher fetcher(int64_t records, bool manifest_only, const Whom&... whom) {
  return [=] {
    auto client = std::make_shared<Client>(whom...);
    return [=](uint64_t i) {
      v1::GetKernelRequest request;
      request.set_key(key_of(static_cast<int64_t>(i % static_cast<uint64_t>(records))));
      request.set_environment("gcc 12");
      request.set_manifest_only(manifest_only);
      client->get(request.SerializeAsString());
    };
  };
}

// Makes the certificate and key NAME.pem and NAME.key by openssl. The certificate of `other` becomes the CA that `name`
// trusts, so that coordinator and client trust each other's self-signed certificates.
TlsFiles make_certificate(const Scratch& scratch, const std::string& name, const std::string& other,
                          const char* names) {
  const std::string command = cat(
      "cd ", scratch.path(""), " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ",
      name, ".key -out ", name, ".pem -days 2 -subj /CN=", name, " -addext subjectAltName=", names, " 2> /dev/null");
  if (std::system(command.c_str()) != 0) must(absl::UnavailableError("the openssl command failed"));
  return {.cert = scratch.path(name + ".pem"), .key = scratch.path(name + ".key"), .ca = scratch.path(other + ".pem")};
}

MakeFetcher reader(const std::string& file, int64_t records) {
  return [=] {
    auto own = std::make_shared<BareReader>(file);
    return [=](uint64_t i) { own->get(key_of(static_cast<int64_t>(i % static_cast<uint64_t>(records)))); };
  };
}

void measure(std::vector<Contender>& contenders, double seconds) {
  for (int round = 0; round < kRounds; ++round)
    for (Contender& contender : contenders)
      for (int threads : {1, 4}) contender.rates[threads].push_back(rate_of(contender.make, threads, seconds));
  std::printf("%-34s %12s %12s\n", "a second", "1 thread", "4 threads");
  for (Contender& contender : contenders)
    std::printf("%-34s %12.0f %12.0f\n", contender.name.c_str(), contender.rate(1), contender.rate(4));
}

void run(int64_t records, double seconds) {
  Scratch scratch;
  fill(scratch.path("a.db"), records);
  std::filesystem::copy_file(scratch.path("a.db"), scratch.path("b.db"));
  BareReader::fill(scratch.path("bare.db"), records,
                   [](int64_t i) { return std::pair(key_of(i), manifest_of(record_of(i))); });
  const KernelRecord any = record_of(records / 2);
  const std::string manifest = manifest_of(any), whole = to_proto(any).SerializeAsString();
  std::printf("%lld records of %zu bytes, %zu without sources\n", static_cast<long long>(records), whole.size(),
              manifest.size());
  Echo echo_service(manifest), echo_whole_service(whole);
  BareStore bare_store_service(scratch.path("bare.db"));
  BareServer echo(&echo_service), echo_whole(&echo_whole_service), bare_store(&bare_store_service);
  Served memory(scratch.path("a.db"), 256 << 20), disk(scratch.path("b.db"), 0);
  std::filesystem::copy_file(scratch.path("b.db"), scratch.path("c.db"));
  std::filesystem::copy_file(scratch.path("c.db"), scratch.path("d.db"));
  Served counted(scratch.path("d.db"), 256 << 20, {}, "", "127.0.0.1:0");
  const TlsFiles own = make_certificate(scratch, "own", "peer", "DNS:localhost");
  const TlsFiles peer = make_certificate(scratch, "peer", "own", "URI:spiffe://bench/warploom/client");
  const auto token = make_token(scratch.path("callers"), "bench", kClient, 3600);
  must(token.status());
  Served tls(scratch.path("c.db"), 256 << 20, own, scratch.path("callers"));
  const std::string address = tls.coordinator.addresses().front();
  DialOptions by_certificate, by_token;
  by_certificate.tls = peer;
  by_token.tls.ca = peer.ca;
  by_token.token = *token;
  std::vector<Contender> all = {
      {"bare gRPC, bytes of a manifest", fetcher(records, true, echo.port)},
      {"manifest from memory", fetcher(records, true, memory.coordinator.port())},
      {"manifest from the store", fetcher(records, true, disk.coordinator.port())},
      {"bare gRPC, bytes of a record", fetcher(records, false, echo_whole.port)},
      {"record from memory", fetcher(records, false, memory.coordinator.port())},
      {"record from the store", fetcher(records, false, disk.coordinator.port())},
      {"bare SQLite, bytes of a manifest", reader(scratch.path("bare.db"), records)},
      {"manifest from memory, mutual TLS", fetcher(records, true, address, by_certificate)},
      {"the same with TLS and a token", fetcher(records, true, address, by_token)},
      {"bare SQLite behind bare gRPC", fetcher(records, true, bare_store.port)},
      {"manifest from memory, with metrics", fetcher(records, true, counted.coordinator.port())},
  };
  measure(all, seconds);
  for (int threads : {1, 4}) {
    const auto part = [&](int of, int what) { return all[of].rate(threads) / all[what].rate(threads); };
    std::printf("%d threads: memory / bare gRPC %.2f (manifest) %.2f (record)\n", threads, part(1, 0), part(4, 3));
    std::printf("           store / bare gRPC %.2f, / bare SQLite %.3f, / SQLite behind gRPC %.2f (manifest)\n",
                part(2, 0), part(2, 6), part(2, 9));
    std::printf("           memory by mutual TLS / in plain text %.2f, with a token %.2f\n", part(7, 1), part(8, 1));
    std::printf("           memory with metrics / without %.2f\n", part(10, 1));
  }
  Reporting reporting(memory.coordinator);
  reporting.wait_until_steady();
  for (const auto& [name, make, rate] : {std::tuple("memory", all[1].make, all[1].rate(4) / 2)}) {
    const int64_t before = reporting.results();
    const Clock::time_point begin = Clock::now();
    const std::vector<double> ms = latencies_at(make, 4, rate, 5 * seconds);
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    const auto at = [&](double part) { return ms[static_cast<size_t>(part * static_cast<double>(ms.size() - 1))]; };
    std::printf("manifest from %s at %.0f/s while %.0f results/s are stored: ms p50 %.2f p90 %.2f p99 %.2f most %.2f\n",
                name, static_cast<double>(ms.size()) / took, static_cast<double>(reporting.results() - before) / took,
                at(0.5), at(0.9), at(0.99), ms.back());
  }
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::warn);
  wl::run(argc > 1 ? std::atoll(argv[1]) : 1000, argc > 2 ? std::atof(argv[2]) : 1);
  return 0;
}
