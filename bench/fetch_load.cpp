// Load on a coordinator that serves records, in one process with its clients, over TCP on this machine. Beside it, in
// the same interleaved rounds: a bare gRPC service that answers with the same bytes, and bare reads of the same bytes
// from an SQLite file. Then the latency of fetches at half of their rate, while workers report results.
//
//   fetch_load [RECORDS [SECONDS]]
//
// Prints a table; rates are medians of five rounds.
#include <grpcpp/generic/generic_stub.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <latch>
#include <list>
#include <map>
#include <thread>

#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/store/store.h"
#include "tests/server/fakes.h"
#include "tests/server/scratch.h"
#include "warploom/v1/kernel_store.grpc.pb.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;
constexpr size_t kPreludeBytes = 56'000, kSourceBytes = 8'000;  // of a CPU record
constexpr double kResultsPerSecond = 2'000;
constexpr char kGet[] = "/warploom.v1.KernelStore/GetKernel";

void must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "fetch_load: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

template <typename T>
T must(absl::StatusOr<T> value) {
  must(value.status());
  return *std::move(value);
}

std::string key_of(int64_t i) {
  return sha256_hex(cat("key ", i));
}

KernelRecord record_of(int64_t i) {
  KernelRecord record;
  record.key = key_of(i);
  record.environment = "gcc 12";
  record.device = fake_device();
  record.graph = cat("graph {\n  %0 = input \"x\" : f32[", i + 1, ",1024] normal(0,1)\n  %1 = exp %0 : f32[", i + 1,
                     ",1024]\n  output \"y\" %1\n}\n");
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

// The reply to GetKernel, without sources.
std::string manifest_of(const KernelRecord& record) {
  v1::KernelRecord message = to_proto(record);
  message.mutable_source()->clear_prelude();
  message.mutable_source()->clear_text();
  return message.SerializeAsString();
}

// Answers GetKernel with the same bytes whatever is asked.
class Echo final : public v1::KernelStore::WithRawCallbackMethod_GetKernel<v1::KernelStore::Service> {
 public:
  explicit Echo(const std::string& bytes) : slice_(bytes) {}
  grpc::ServerUnaryReactor* GetKernel(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                      grpc::ByteBuffer* out) override {
    *out = grpc::ByteBuffer(&slice_, 1);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const grpc::Slice slice_;
};

struct EchoServer {
  explicit EchoServer(const std::string& bytes) : service(bytes) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
  }
  Echo service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

// A connection of its own, on which one call is made at a time, of bytes for bytes.
class Client {
 public:
  explicit Client(int port) : stub_(connect(port)) {}
  size_t get(const std::string& request) {
    const grpc::Slice slice(request);
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ClientContext context;
    const auto call = stub_.PrepareUnaryCall(&context, kGet, bytes, &queue_);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    must(from_grpc(status));
    return reply.Length();
  }

 private:
  static std::shared_ptr<grpc::Channel> connect(int port) {
    grpc::ChannelArguments arguments = channel_arguments();
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(cat("127.0.0.1:", port), grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
};

// Reads rows of a table of keys and bytes, on a connection of its own.
class Reader {
 public:
  explicit Reader(const std::string& file) {
    sqlite3_open_v2(file.c_str(), &connection_, SQLITE_OPEN_READONLY, nullptr);
    sqlite3_busy_timeout(connection_, 5'000);
    sqlite3_prepare_v2(connection_, "SELECT bytes FROM bare WHERE key = ?", -1, &statement_, nullptr);
  }
  ~Reader() {
    sqlite3_finalize(statement_);
    sqlite3_close(connection_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  size_t get(const std::string& key) {
    sqlite3_bind_text(statement_, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    if (sqlite3_step(statement_) != SQLITE_ROW) must(absl::InternalError("no row"));
    const std::string bytes(static_cast<const char*>(sqlite3_column_blob(statement_, 0)),
                            static_cast<size_t>(sqlite3_column_bytes(statement_, 0)));
    sqlite3_reset(statement_);
    return bytes.size();
  }
  static void fill(const std::string& file, int64_t records) {
    sqlite3* connection = nullptr;
    sqlite3_open(file.c_str(), &connection);
    sqlite3_exec(connection, "PRAGMA journal_mode=WAL; CREATE TABLE bare (key TEXT PRIMARY KEY, bytes BLOB); BEGIN",
                 nullptr, nullptr, nullptr);
    sqlite3_stmt* insert = nullptr;
    sqlite3_prepare_v2(connection, "INSERT INTO bare VALUES (?, ?)", -1, &insert, nullptr);
    for (int64_t i = 0; i < records; ++i) {
      const std::string key = key_of(i), bytes = manifest_of(record_of(i));
      sqlite3_bind_text(insert, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
      sqlite3_bind_blob(insert, 2, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
      sqlite3_step(insert);
      sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    sqlite3_exec(connection, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_close(connection);
  }

 private:
  sqlite3* connection_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

using Fetcher = std::function<void(uint64_t i)>;  // of one thread
using MakeFetcher = std::function<Fetcher()>;     // on that thread
struct Contender {
  std::string name;
  MakeFetcher make;
  std::map<int, std::vector<double>> rates = {};  // a second, by threads
  double rate(int threads) {
    std::vector<double>& all = rates[threads];
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
};

// Returns calls a second. Every thread is ready before the time begins.
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

// Returns the latencies in ms, sorted, of calls that are due at fixed times; a call that begins late counts from when
// it was due.
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

// Workers that report results of jobs without end, at a rate that is asked for.
class Reporting {
 public:
  explicit Reporting(Coordinator& coordinator) : begin_(Clock::now()) {
    const auto tuning = v1::TuningService::NewStub(coordinator.in_process_channel());
    for (int i = 0; i < kJobs; ++i) {
      v1::CreateTuningJobRequest request;
      request.set_request_id(cat("job ", i));
      request.set_graph(cat("graph {\n  %0 = input \"x\" : f32[", i + 2, ",32] normal(0,1)\n  %1 = exp %0 : f32[",
                            i + 2, ",32]\n  output \"y\" %1\n}\n"));
      TuneOptions options;
      options.trials = 1'000;
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

 private:
  static constexpr int kJobs = 64;
  Hooks hooks() {
    return {.before = [this](const Batch& batch) {
      results_ += static_cast<int64_t>(batch.candidates.size());
      std::this_thread::sleep_until(begin_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                                 static_cast<double>(results_) / kResultsPerSecond)));
    }};
  }
  const Clock::time_point begin_;
  std::atomic<int64_t> results_ = 0;
  std::list<FakeWorker> workers_;
};

// A coordinator over the store, with or without its cache of replies.
struct Served {
  Served(const std::string& file, int64_t reply_bytes) {
    CoordinatorOptions options;
    options.store = file;
    options.listen = "127.0.0.1:0";
    options.compiler = &compiler;
    options.reply_bytes = reply_bytes;
    must(coordinator.start(options));
  }
  FakeCompiler compiler;
  Coordinator coordinator;
};

MakeFetcher fetcher(int port, int64_t records, bool manifest_only) {
  return [=] {
    auto client = std::make_shared<Client>(port);
    return [=](uint64_t i) {
      v1::GetKernelRequest request;
      request.set_key(key_of(static_cast<int64_t>(i % static_cast<uint64_t>(records))));
      request.set_environment("gcc 12");
      request.set_manifest_only(manifest_only);
      client->get(request.SerializeAsString());
    };
  };
}

MakeFetcher reader(const std::string& file, int64_t records) {
  return [=] {
    auto own = std::make_shared<Reader>(file);
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
  Reader::fill(scratch.path("bare.db"), records);
  const KernelRecord any = record_of(records / 2);
  const std::string manifest = manifest_of(any), whole = to_proto(any).SerializeAsString();
  std::printf("%lld records of %zu bytes, %zu without sources\n", static_cast<long long>(records), whole.size(),
              manifest.size());
  EchoServer echo(manifest), echo_whole(whole);
  Served memory(scratch.path("a.db"), 256 << 20), disk(scratch.path("b.db"), 0);
  std::vector<Contender> all = {
      {"bare gRPC, bytes of a manifest", fetcher(echo.port, records, true)},
      {"manifest from memory", fetcher(memory.coordinator.port(), records, true)},
      {"manifest from the store", fetcher(disk.coordinator.port(), records, true)},
      {"bare gRPC, bytes of a record", fetcher(echo_whole.port, records, false)},
      {"record from memory", fetcher(memory.coordinator.port(), records, false)},
      {"record from the store", fetcher(disk.coordinator.port(), records, false)},
      {"bare SQLite, bytes of a manifest", reader(scratch.path("bare.db"), records)},
  };
  measure(all, seconds);
  for (int threads : {1, 4}) {
    std::printf(
        "%d threads: memory / bare gRPC %.2f (manifest) %.2f (record); store / bare gRPC %.2f; store / bare SQLite "
        "%.2f\n",
        threads, all[1].rate(threads) / all[0].rate(threads), all[4].rate(threads) / all[3].rate(threads),
        all[2].rate(threads) / all[0].rate(threads), all[2].rate(threads) / all[6].rate(threads));
  }
  Reporting reporting(memory.coordinator);
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
