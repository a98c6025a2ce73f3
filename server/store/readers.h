// Read-only connections, so that reads run at the same time as each other and as the writer.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "compiler/base/status.h"
#include "server/store/sql/sql.h"

namespace wl {

class StoreReaders {
 public:
  explicit StoreReaders(std::vector<std::unique_ptr<Sql>> connections);
  // Waits for a connection that no other thread uses, and runs `work` on it. Thread-safe. Unavailable: the
  // connections were closed.
  absl::Status read(const std::function<absl::Status(Sql&)>& work);
  // Waits until running reads have ended, and closes the connections.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable returned_;
  const size_t count_;
  std::vector<std::unique_ptr<Sql>> idle_;
  bool closed_ = false;
};

}  // namespace wl
