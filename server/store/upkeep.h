// Keeps a store within its limits, and makes backups. Backups are in one folder as STORE-TIME.db, each with its
// objects in STORE-TIME.db.objects, where TIME is like 20261124T093012.123Z. A backup is recognised by its name
// alone, so stores with the same file name must not share a folder of backups.
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
  std::string backups = {};  // folder of the backups, created if missing; empty: no backups can be made
  double backup_hours = 0;   // most hours between two backups; 0: backups are made on request only
  int keep_backups = 7;      // number of backups that are kept; 0: all
  StoreBounds bounds = {};   // size limits of the store, enforced once a minute
};

struct BackupMade {
  std::string file;
  int64_t bytes = 0;  // bytes of the file, without those of its objects
};

class Upkeep {
 public:
  // The store must outlive the object.
  Upkeep(Store* store, const UpkeepOptions& options);
  ~Upkeep();  // waits until a running backup or eviction has ended

  // Checks the options. InvalidArgument: backup_hours without a folder; PermissionDenied: the folder cannot be created.
  static absl::Status check(const UpkeepOptions& options);
  // Makes a backup now and removes the oldest ones beyond keep_backups. FailedPrecondition: there is no folder for
  // backups; other errors as for Store::backup. Thread-safe; one backup is made at a time.
  absl::StatusOr<BackupMade> backup();

 private:
  bool has_duties() const;  // whether the options ask for regular backups or have size limits
  void serve();
  void sweep();
  void back_up_when_due();
  void keep_bounds();
  // An entry of the folder of backups: a backup, or a file that belongs to a backup.
  struct Entry {
    // File name of the backup, and the part of the entry's name that follows it; empty for the backup itself.
    std::string backup, rest;
    int64_t unix_s = 0;  // when the backup was made, in seconds since 1970
    bool whole() const { return rest.empty(); }
  };
  // Returns the entry of this name in the folder of backups; nullopt: it belongs to no backup of this store.
  std::optional<Entry> entry_of(const std::string& name) const;
  std::vector<Entry> entries() const;  // the entries of the folder of backups, oldest first
  void prune();

  Store* const store_;
  const UpkeepOptions options_;
  std::string prefix_;  // what the names of all backups of this store begin with
  std::mutex making_;   // held while a backup is made
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  // No backup is tried before this time. Used by this object's thread alone.
  std::chrono::steady_clock::time_point next_try_ = {};
  // Whether the store could not be kept within its limits. Used by this object's thread alone.
  bool full_ = false;
  std::thread thread_;
};

}  // namespace wl
