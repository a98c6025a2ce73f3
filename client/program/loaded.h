// A bundle of one or several sizes that is read and verified once and may serve any number of models.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/program/bucket.h"
#include "client/program/program.h"

namespace wl {

// Several threads may use a LoadedBundle at a time.
class LoadedBundle {
 public:
  // Loads and verifies the bundle of the first size; program() loads those of other sizes when they are needed. An
  // executor loads its kernels from the files when it is created, so the files must exist until then. `hold`: an object
  // that keeps the files in existence; it lives as long as the LoadedBundle. `metered`: called with the meter of each
  // program that is loaded, on the thread that loads it; empty: nothing is counted. Errors are those of load_bundle().
  using Metered = std::function<void(std::shared_ptr<UseMeter>)>;
  static absl::StatusOr<std::shared_ptr<const LoadedBundle>> load(const std::string& folder,
                                                                  std::shared_ptr<const void> hold = nullptr,
                                                                  Metered metered = {});

  const std::vector<Bucket>& buckets() const { return buckets_; }
  const Program& first() const { return *programs_[0]; }
  // Returns the program of a size, an index of buckets(), which is loaded and verified at the first call. It lives as
  // long as the LoadedBundle.
  absl::StatusOr<const Program*> program(size_t size) const;

 private:
  LoadedBundle() = default;
  std::vector<Bucket> buckets_;
  std::shared_ptr<const void> hold_;
  Metered metered_;
  mutable std::mutex mutex_;  // guards programs_
  // For each size of the bundle, its program; null: not loaded yet.
  mutable std::vector<std::unique_ptr<const Program>> programs_;
};

}  // namespace wl
