// The parts of a store, for the files that define its functions.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <utility>

#include "server/store/disk.h"
#include "server/store/objects.h"
#include "server/store/readers.h"
#include "server/store/store.h"
#include "server/store/writer.h"

namespace wl {

// Records that were served and whose last use is not stored yet. Any thread.
class UsedRecords {
 public:
  void note(int64_t id) {
    const std::lock_guard lock(mutex_);
    if (ids_.size() < kMost) ids_.insert(id);
  }
  std::set<int64_t> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(ids_, {});
  }

 private:
  static constexpr size_t kMost = 1 << 16;
  std::mutex mutex_;
  std::set<int64_t> ids_;
};

struct Store::Impl {
  StoreOptions options;
  std::string file;  // the real path
  // In this order: the lock outlives the connections, and the readers close before the writer, which checkpoints.
  std::optional<StoreLock> lock;
  std::unique_ptr<StoreWriter> writer;
  std::unique_ptr<StoreReaders> readers;
  std::unique_ptr<ObjectFolder> objects;
  std::shared_mutex objects_mutex;  // shared: a file and its row are put; alone: rows and their files are removed
  UsedRecords used_records;
  bool checked = false;
  std::atomic<int64_t> damaged = 0;

  absl::Status open();
  absl::StatusOr<std::unique_ptr<Sql>> connect_writer();
  absl::Status move_blobs(Sql& sql);
  static absl::Status put_object_row(Sql& sql, const std::string& digest, int64_t size);
  std::optional<RecordRow> take_record(const Sql::Row& row);
  // Counts what was read and did not have its digest, and logs it now and then.
  void note_damage(const std::string& what);
  absl::Status evict_rows(int64_t bound, Evicted* out);
  absl::Status evict_objects(int64_t bound, Evicted* out);
  // Stores when the noted records were last used.
  absl::Status store_used();
};

}  // namespace wl
