// The parts of a store, for the files that define its functions.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "server/store/disk.h"
#include "server/store/readers.h"
#include "server/store/store.h"
#include "server/store/writer.h"

namespace wl {

struct Store::Impl {
  StoreOptions options;
  std::string file;  // the real path
  // In this order: the lock outlives the connections, and the readers close before the writer, which checkpoints.
  std::optional<StoreLock> lock;
  std::unique_ptr<StoreWriter> writer;
  std::unique_ptr<StoreReaders> readers;
  bool checked = false;
  std::atomic<int64_t> damaged = 0;

  absl::Status open();
  absl::StatusOr<std::unique_ptr<Sql>> connect_writer();
};

}  // namespace wl
