// A bundle, or one for several sizes, that is read and verified once for any number of models.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/program/bucket.h"
#include "client/program/program.h"

namespace wl {

// Thread-safe.
class LoadedBundle {
 public:
  // Verifies the bundle of the first size; the others when they are first needed. `hold` lives as long as this: kernels
  // are loaded from the files when an executor is made, so the files must stay. Errors are those of load_bundle().
  static absl::StatusOr<std::shared_ptr<const LoadedBundle>> load(const std::string& folder,
                                                                  std::shared_ptr<const void> hold = nullptr);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  const Program& first() const { return *programs_[0]; }
  // The program of a size, an index of buckets(). It lives as long as this.
  absl::StatusOr<const Program*> program(size_t size) const;

 private:
  LoadedBundle() = default;
  std::vector<Bucket> buckets_;
  std::shared_ptr<const void> hold_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<const Program>> programs_;  // one per bucket; null: not needed yet
};

}  // namespace wl
