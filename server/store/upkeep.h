// Keeps a store within its bounds, and makes backups. Backups lie in one folder as STORE-TIME.db, each with its objects
// in STORE-TIME.db.objects, where TIME is like 20261124T093012.123Z. A backup is recognised by its name alone, so
// stores of the same name need a folder each.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/status.h"
#include "server/store/store.h"

namespace wl {

struct UpkeepOptions {
  std::string backups = {};  // folder of the backups, created if missing; empty: none can be made
  double backup_hours = 0;   // most hours between two backups; 0: they are made on request only
  int keep_backups = 7;      // how many backups are kept; 0: all
  StoreBounds bounds = {};   // enforced once a minute
};

struct BackupMade {
  std::string file;
  int64_t bytes = 0;  // of the file, without its objects
};

class Upkeep {
 public:
  // The store must outlive the object.
  Upkeep(Store* store, const UpkeepOptions& options);
  ~Upkeep();  // waits for a backup or an eviction that is running

  // InvalidArgument: backup_hours without a folder; PermissionDenied: the folder cannot be created.
  static absl::Status check(const UpkeepOptions& options);
  // Makes a backup now and removes the oldest beyond keep_backups. FailedPrecondition: there is no folder for them;
  // otherwise as Store::backup. Any thread; one backup at a time.
  absl::StatusOr<BackupMade> backup();

 private:
  bool has_duties() const;  // whether there is something to do again and again
  void serve();
  void sweep();
  void back_up_when_due();
  void keep_bounds();
  // An entry of the folder: a backup, or a file that belongs to one.
  struct Entry {
    std::string backup, rest;  // name of the backup's file, and what follows it in this name
    int64_t unix_s = 0;        // when it was made
    bool whole() const { return rest.empty(); }
  };
  std::optional<Entry> entry_of(const std::string& name) const;  // nullopt: it belongs to no backup of this store
  std::vector<Entry> entries() const;                            // oldest first
  void prune();

  Store* const store_;
  const UpkeepOptions options_;
  std::string prefix_;  // of the names of all backups of this store
  std::mutex making_;   // held while a backup is made
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::chrono::steady_clock::time_point next_try_ = {};  // of the thread: no backup is tried before this time
  bool full_ = false;                                    // of the thread: the bounds could not be kept
  std::thread thread_;
};

}  // namespace wl
