// The store's only connection that writes, with a thread of its own for writes and checkpoints. It commits the queued
// writes in one transaction (fsync included) and only then answers. After a checkpoint the log keeps its file and is
// overwritten from the start. Syncing blocks that exist already changes no metadata of the file system, whereas a
// change of metadata may have to wait for other threads of the kernel on a busy machine.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/status.h"
#include "server/store/disk.h"
#include "server/store/sql/sql.h"

namespace wl {

class StoreWriter {
 public:
  struct Hooks {
    // Called with "begin", "commit", "committed", "checkpoint" and "checkpointed".
    std::function<void(const char*)> at_point = {};
    // Called when the store is declared broken (StoreOptions::on_broken).
    std::function<void(const absl::Status&)> on_broken = {};
  };
  StoreWriter(std::unique_ptr<Sql> sql, std::string file, Hooks hooks);
  ~StoreWriter();  // calls close()

  // Runs `work` in a transaction and blocks until that is committed. After an error, nothing of this work is stored.
  // `work` may run again if other work ended the transaction, so it must overwrite its results and not add to them.
  // Thread-safe.
  absl::Status write(const std::function<absl::Status(Sql&)>& work);
  // Runs the queued writes, checkpoints the log and closes the connection. Later writes return Unavailable.
  void close();
  // Declares the store broken, because it is unknown which of the last writes are on the disk. Thread-safe.
  void break_down(const absl::Status& status);
  // Returns DataLoss once the store is broken, when nothing may be read or written any more.
  absl::Status broken() const;

  struct Stats {
    int64_t queued = 0, writes = 0, transactions = 0, checkpoints = 0, unfinished_checkpoints = 0;
    int64_t wal_bytes = 0;  // bytes of the write-ahead log that no checkpoint has moved yet; its file may be larger
  };
  Stats stats() const;

 private:
  struct Work {
    const std::function<absl::Status(Sql&)>* run;
    absl::Status status;
    bool done = false;
  };
  using Clock = std::chrono::steady_clock;

  void serve();
  void commit(std::vector<Work*> batch);
  // The outcome of a transaction: its error, the work that was running when the error occurred (null: none), and
  // whether COMMIT was running.
  struct Attempt {
    absl::Status status;
    Work* culprit = nullptr;
    bool committing = false;
  };
  absl::Status run(const std::vector<Work*>& batch, Attempt* out);
  Attempt attempt(const std::vector<Work*>& batch);
  void checkpoint_when_due();
  bool checkpoint();
  // Declares the store broken if another program has removed, replaced or truncated its files. Called before and after
  // each transaction, and once a second.
  void look_at_files(bool changed);
  void point(const char* name);
  void note_pages(int pages);  // notes that the write-ahead log has this number of pages

  std::unique_ptr<Sql> sql_;
  const std::string file_;
  const Hooks hooks_;
  OwnFiles files_;  // finds out whether the store's files were changed; used by the writer's thread only
  mutable std::mutex mutex_;
  std::condition_variable queued_, finished_;
  std::deque<Work*> queue_;
  bool closing_ = false;
  absl::Status broken_;
  std::atomic<int64_t> writes_ = 0, transactions_ = 0, checkpoints_ = 0, unfinished_ = 0, wal_bytes_ = 0;
  int64_t page_bytes_ = 4096;  // bytes of a database page: SQLite's default, unless the file has another size
  int64_t retry_beyond_ = 0;   // size of the log, in bytes, beyond which an unfinished checkpoint is tried again
  Clock::time_point warned_ = {};
  std::thread thread_;
};

}  // namespace wl
