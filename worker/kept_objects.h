// A cache of the objects of CPU kernels that a worker compiled one by one, as it does in promotions. Whole covers that
// are timed consist of such kernels, and promotions are repeated after disturbances; the cache saves compiling these
// kernels again.
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
  // `most_bytes`: limit for all objects together. Beyond it, the least recently used objects are dropped.
  explicit KeptObjects(size_t most_bytes = size_t{64} << 20) : most_bytes_(most_bytes) {}

  // Keeps the object of a kernel. The object's translation unit must hold no other kernel. `compile_s`: the seconds
  // that compiling took, if no trial has reported them yet.
  void keep(const Source& source, std::string object, double compile_s = 0);
  // Returns the object's bytes, or null. The pointer is valid until the next call of keep(). If `compile_s` is set, it
  // receives the seconds that were given to keep(), and they are told only once.
  const std::string* find(const Source& source, double* compile_s = nullptr);

  // Writes the kept objects into files in `folder`, with a compile time of 0 unless no trial has reported it yet, and
  // calls `compile` for the other candidates. Returns the results in the order of the candidates, as compile_cpu()
  // does. Unavailable: a file cannot be written.
  absl::StatusOr<std::vector<Compiled>> provide(
      const std::vector<Candidate>& candidates, const std::string& folder,
      const std::function<absl::StatusOr<std::vector<Compiled>>(const std::vector<Candidate>&)>& compile);

  size_t bytes() const { return bytes_; }

 private:
  struct Object {
    std::string key, bytes;
    double compile_s = 0;  // as in keep(); 0 once provide() has told it
  };
  size_t most_bytes_, bytes_ = 0;
  std::list<Object> objects_;  // the kept objects, the most recently used first
  std::map<std::string, std::list<Object>::iterator> by_key_;
};

}  // namespace wl
