// Connections that only read, so that reads run beside each other and beside the writer.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "compiler/base/status.h"
#include "server/store/sql.h"

namespace wl {

class StoreReaders {
 public:
  explicit StoreReaders(std::vector<std::unique_ptr<Sql>> connections);
  // Runs `work` on a connection that nobody else uses; waits for one. Any thread. Unavailable once closed.
  absl::Status read(const std::function<absl::Status(Sql&)>& work);
  // Waits for the reads that run, and closes.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable returned_;
  const size_t count_;
  std::vector<std::unique_ptr<Sql>> idle_;
  bool closed_ = false;
};

}  // namespace wl
