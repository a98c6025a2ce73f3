// Pictures of the graphs of jobs with the reasons of their covers. Making one may take as long as planning the job, so
// it happens on a thread of its own that gives way to all others, and what was made is kept.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/jobs/compiler.h"
#include "server/services/work_pool.h"
#include "server/store/store.h"

namespace wl {

struct Drawing {
  struct Kernel {
    std::string key, name;                  // of the group
    std::string ops = {};                   // which ops it has
    std::vector<std::string> reasons = {};  // a line each
  };
  absl::Status status;       // why there is none
  std::string picture = {};  // SVG
  std::vector<std::string> summary = {};
  std::vector<Kernel> kernels = {};
};

class Drawings {
 public:
  // The compiler must outlive this.
  explicit Drawings(const Compiler* compiler);
  ~Drawings();  // What is being drawn is finished first.
  Drawings(const Drawings&) = delete;
  Drawings& operator=(const Drawings&) = delete;

  // The drawing of a job, if it was made; null: it is not there, or not yet. `of_result`: of what its result launches;
  // else of the cover that it begins with. Any thread.
  std::shared_ptr<const Drawing> find(int64_t job_id, bool of_result) const;
  // Has it made, of the job's result if it has one, unless it is being made. Waits some tenths of a second for it, and
  // returns it, or null. Any thread. Unavailable: several others wait already.
  absl::StatusOr<std::shared_ptr<const Drawing>> make(const JobRow& job);

 private:
  struct Entry {
    int64_t job_id;
    bool of_result;
    std::shared_ptr<const Drawing> drawing;  // null: it is being made
  };
  std::list<Entry>::const_iterator at(int64_t job_id, bool of_result) const;  // with the lock held
  void put(int64_t job_id, bool of_result, Drawing drawing);

  const Compiler* const compiler_;
  std::atomic<bool> leaving_ = false;
  mutable std::mutex mutex_;  // guards the entries
  std::condition_variable made_;
  std::list<Entry> entries_;  // newest first
  WorkPool pool_;             // Last: its thread uses the rest.
};

}  // namespace wl
