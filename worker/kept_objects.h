// The objects of CPU kernels that a worker compiled alone, which are those of its promotions. Covers that are timed
// whole consist of such kernels, and promotions are repeated where other load ran; they need not be compiled again.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {

class KeptObjects {
 public:
  // `most_bytes`: of all objects together. Those that were not asked for longest are forgotten first.
  explicit KeptObjects(size_t most_bytes = size_t{64} << 20) : most_bytes_(most_bytes) {}

  // Keeps the object of a kernel, of which its translation unit holds nothing else.
  void keep(const Source& source, std::string object);
  // Returns the object's bytes, or null. Valid until the next call of keep().
  const std::string* find(const Source& source);

  // Compiles what is not kept by `compile`, and writes what is into files in `folder`, which took no seconds.
  // Unavailable: a file cannot be written. Otherwise as compile_cpu(), also for the results.
  absl::StatusOr<std::vector<Compiled>> provide(
      const std::vector<Candidate>& candidates, const std::string& folder,
      const std::function<absl::StatusOr<std::vector<Compiled>>(const std::vector<Candidate>&)>& compile);

  size_t bytes() const { return bytes_; }

 private:
  struct Object {
    std::string key, bytes;
  };
  size_t most_bytes_, bytes_ = 0;
  std::list<Object> objects_;  // the one that was used last comes first
  std::map<std::string, std::list<Object>::iterator> by_key_;
};

}  // namespace wl
