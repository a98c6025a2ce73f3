// The one connection that writes, in a thread of its own, which also does all checkpoints. It commits what is queued in
// one transaction (fsync included) and only then answers. The log keeps its file after a checkpoint and is written anew
// from the start: blocks that are there are synced without a change to the file system's own records, which on a busy
// machine waits for other threads of the kernel.
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
#include "server/store/sql.h"

namespace wl {

class StoreWriter {
 public:
  struct Hooks {
    std::function<void(const char*)> at_point = {};  // "begin", "commit", "committed", "checkpoint", "checkpointed"
    std::function<void(const absl::Status&)> on_broken = {};  // see StoreOptions
  };
  StoreWriter(std::unique_ptr<Sql> sql, std::string file, Hooks hooks);
  ~StoreWriter();  // close()

  // Runs `work` in a transaction and blocks until that is committed. An error is that of this work alone, and nothing
  // of it is stored. `work` may run again after a transaction that something else ended, so it sets what it hands out
  // and adds nothing up. Any thread.
  absl::Status write(const std::function<absl::Status(Sql&)>& work);
  // Does what is queued, checkpoints and closes. Later writes are Unavailable.
  void close();
  // It is not known what of the last writes is on the disk. Any thread.
  void break_down(const absl::Status& status);
  // Not OK once it is not known what of the last writes is on the disk: then nothing may be read or written any more.
  absl::Status broken() const;

  struct Stats {
    int64_t queued = 0, writes = 0, transactions = 0, checkpoints = 0, unfinished_checkpoints = 0;
    int64_t wal_bytes = 0;  // of the log, that no checkpoint has moved; its file may be larger
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
  // How far a transaction came: what failed, and the work that was running when it did.
  struct Attempt {
    absl::Status status;
    Work* culprit = nullptr;
    bool committing = false;
  };
  absl::Status run(const std::vector<Work*>& batch, Attempt* out);
  Attempt attempt(const std::vector<Work*>& batch);
  void checkpoint_when_due();
  bool checkpoint();
  // Breaks down if another program has taken the store's files away; at each transaction, and once a second.
  void look_at_files(bool changed);
  void point(const char* name);
  void note_pages(int pages);  // that the log has since its start

  std::unique_ptr<Sql> sql_;
  const std::string file_;
  const Hooks hooks_;
  OwnFiles files_;  // the writer's thread only
  mutable std::mutex mutex_;
  std::condition_variable queued_, finished_;
  std::deque<Work*> queue_;
  bool closing_ = false;
  absl::Status broken_;
  std::atomic<int64_t> writes_ = 0, transactions_ = 0, checkpoints_ = 0, unfinished_ = 0, wal_bytes_ = 0;
  int64_t page_bytes_ = 4096;  // SQLite's default, unless the file says otherwise
  int64_t retry_beyond_ = 0;   // a checkpoint that could not finish is tried again when the log is larger, in bytes
  Clock::time_point warned_ = {};
  std::thread thread_;
};

}  // namespace wl
