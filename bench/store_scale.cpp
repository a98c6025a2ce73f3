// The time that a store of many records takes to open, and its rate of reads, compared with bare SQLite reads of the
// same bytes and with a store of a hundred records.
//
//   store_scale FOLDER [RECORDS]    makes FOLDER/many.db with RECORDS records (1,000,000) if it does not exist
//
// Prints one line of JSON for each measurement.
#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <thread>

#include "compiler/base/sha256.h"
#include "server/store/sql/functions.h"
#include "server/store/store.h"

namespace wl {
namespace {

constexpr int64_t kFew = 100;
// Sizes in bytes of a record's prelude, source and graph, as in records of CPU kernels.
constexpr size_t kPreludeBytes = 56'000, kSourceBytes = 3'500, kGraphBytes = 900;
constexpr int kPreludes = 4, kWriters = 32;
constexpr double kSeconds = 3;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string text_of(uint64_t seed, size_t size) {
  std::mt19937_64 random(seed);
  std::string text;
  while (text.size() < size) text += cat("v", random() % 100'000, " = fma(a, b); ");
  text.resize(size);
  return text;
}

std::string key_of(int64_t number) {
  return sha256_hex(cat("key ", number));
}

KernelRecord record_of(int64_t number) {
  static const std::vector<std::string> preludes = [] {
    std::vector<std::string> made;
    for (int i = 0; i < kPreludes; ++i) made.push_back(text_of(static_cast<uint64_t>(i), kPreludeBytes));
    return made;
  }();
  KernelRecord record;
  record.key = key_of(number);
  record.environment = "gcc=g++ (Debian 12.2.0-14+deb12u1) 12.2.0; clang=Debian clang version 14.0.6";
  record.device.target = "cpu:avx512";
  record.device.name = "a processor of the bench";
  record.graph = text_of(static_cast<uint64_t>(number) + 1000, kGraphBytes);
  record.plan = record.default_plan = text_of(static_cast<uint64_t>(number) + 2000, 150);
  record.source.prelude = preludes[static_cast<size_t>(number) % kPreludes];
  record.source.text = text_of(static_cast<uint64_t>(number) + 3000, kSourceBytes);
  record.source.entry = "wl_k";
  record.samples_ns.assign(20, 12'345 + number);
  record.default_samples_ns.assign(20, 23'456 + number);
  record.digest = record_digest(record);
  return record;
}

absl::Status fill(const std::string& file, int64_t records) {
  WL_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open({.file = file}));
  JobRow job;
  job.request_id = "bench";
  WL_ASSIGN_OR_RETURN(job, store->create_job(job));
  WL_ASSIGN_OR_RETURN(const SearchRow search, store->open_search(job.id, {0, "k", "e", "s", 0, 0}, false));
  std::atomic<int64_t> next = 0;
  std::vector<absl::Status> ended(kWriters);
  std::vector<std::thread> writers;
  const double begin = now_s();
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      for (int64_t n = next++; n < records && ended[static_cast<size_t>(i)].ok(); n = next++)
        ended[static_cast<size_t>(i)] = store->promote(record_of(n), search.id);
    });
  }
  for (std::thread& each : writers) each.join();
  for (const absl::Status& each : ended) WL_RETURN_IF_ERROR(each);
  const StoreStats stats = store->stats();
  std::printf("{\"what\": \"promoted\", \"records\": %lld, \"seconds\": %.1f, \"transactions\": %lld}\n",
              static_cast<long long>(records), now_s() - begin, static_cast<long long>(stats.transactions));
  return absl::OkStatus();
}

// Calls `read` with random record numbers below `records` from `threads` threads for kSeconds. Returns calls per
// second.
double rate(int threads, int64_t records, const std::function<void(int thread, int64_t number)>& read) {
  std::atomic<int64_t> calls = 0;
  std::vector<std::thread> running;
  const double end = now_s() + kSeconds;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      std::mt19937_64 random(static_cast<uint64_t>(i));
      while (now_s() < end) {
        read(i, static_cast<int64_t>(random() % static_cast<uint64_t>(records)));
        ++calls;
      }
    });
  }
  for (std::thread& each : running) each.join();
  return static_cast<double>(calls) / kSeconds;
}

// Reads the stored bytes of a record by its key in plain SQL, without decoding them or checking the digest. `texts`:
// reads the prelude and the source as well.
class Bare {
 public:
  Bare(const std::string& file, bool texts) {
    sqlite3_open_v2(file.c_str(), &database_, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    const std::string query =
        cat("SELECT p.bytes", texts ? ", t.bytes, s.bytes" : "", " FROM records r JOIN payloads p ON p.record = r.id ",
            texts ? "JOIN texts t ON t.id = p.prelude JOIN texts s ON s.id = p.source " : "",
            "WHERE r.key = ? AND r.namespace = 0 AND r.blessed = 1");
    sqlite3_prepare_v2(database_, query.c_str(), -1, &statement_, nullptr);
  }
  ~Bare() {
    sqlite3_finalize(statement_);
    sqlite3_close(database_);
  }
  bool read(const std::string& key) {
    const std::string name = key_bytes(key);
    sqlite3_bind_blob64(statement_, 1, name.data(), name.size(), SQLITE_STATIC);
    std::string bytes;
    if (sqlite3_step(statement_) == SQLITE_ROW) {
      for (int i = 0; i < sqlite3_column_count(statement_); ++i)
        bytes.append(static_cast<const char*>(sqlite3_column_blob(statement_, i)),
                     static_cast<size_t>(sqlite3_column_bytes(statement_, i)));
    }
    sqlite3_reset(statement_);
    return !bytes.empty();
  }

 private:
  sqlite3* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

// Measures the reads per second of the store and of Bare, for whole records and for records without their texts.
void measure_reads(Store& store, const std::string& file, int64_t records, int threads) {
  std::atomic<int64_t> missed = 0;
  std::vector<std::unique_ptr<Bare>> whole, manifest;
  for (int i = 0; i < threads; ++i) {
    whole.push_back(std::make_unique<Bare>(file, true));
    manifest.push_back(std::make_unique<Bare>(file, false));
  }
  struct Way {
    const char* name;
    std::function<bool(int thread, const std::string& key)> read;
  };
  const auto message = [&](const std::string& key, bool texts) {
    const auto found = store.record_message({key, "", ""}, texts);
    return found.ok() && found->has_value();
  };
  const Way ways[] = {
      {"record",
       [&](int, const std::string& key) {
         const auto found = store.record_by_key(key, "");
         return found.ok() && found->has_value();
       }},
      {"message", [&](int, const std::string& key) { return message(key, true); }},
      {"bare_message", [&](int i, const std::string& key) { return whole[static_cast<size_t>(i)]->read(key); }},
      {"manifest", [&](int, const std::string& key) { return message(key, false); }},
      {"bare_manifest", [&](int i, const std::string& key) { return manifest[static_cast<size_t>(i)]->read(key); }}};
  std::printf("{\"what\": \"reads per second\", \"records\": %lld, \"threads\": %d", static_cast<long long>(records),
              threads);
  for (const Way& way : ways) {
    const double found = rate(threads, records, [&](int thread, int64_t number) {
      if (!way.read(thread, key_of(number))) ++missed;
    });
    std::printf(", \"%s\": %.0f", way.name, found);
  }
  std::printf(", \"missed\": %lld}\n", static_cast<long long>(missed));
  std::fflush(stdout);
}

absl::Status measure(const std::string& file, int64_t records) {
  const double begin = now_s();
  WL_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open({.file = file, .quick_check = true}));
  const double opened = now_s();
  WL_ASSIGN_OR_RETURN(const std::vector<RecordRow> page, store->list_records(std::nullopt, 100));
  const double listed = now_s();
  WL_ASSIGN_OR_RETURN(const std::vector<RecordRow> second,
                      store->list_records(RecordCursor{page.back().created_ms, page.back().record.digest}, 100));
  std::printf(
      "{\"what\": \"opened\", \"records\": %lld, \"bytes\": %lld, \"open_s\": %.3f, \"page_s\": %.4f, \"next_page_s\": "
      "%.4f}\n",
      static_cast<long long>(records), static_cast<long long>(std::filesystem::file_size(file)), opened - begin,
      listed - opened, now_s() - listed);
  for (const int threads : {1, 4}) measure_reads(*store, file, records, threads);
  return absl::OkStatus();
}

absl::Status run(const std::string& folder, int64_t records) {
  for (const auto& [name, count] : {std::pair("few.db", kFew), std::pair("many.db", records)}) {
    const std::string file = cat(folder, "/", name);
    if (!std::filesystem::exists(file)) WL_RETURN_IF_ERROR(fill(file, count));
    WL_RETURN_IF_ERROR(measure(file, count));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: store_scale FOLDER [RECORDS]\n");
    return 1;
  }
  const absl::Status done = wl::run(argv[1], argc > 2 ? std::stoll(argv[2]) : 1'000'000);
  if (!done.ok()) std::fprintf(stderr, "store_scale: %s\n", std::string(done.message()).c_str());
  return done.ok() ? 0 : 1;
}
