// Pictures of jobs' graphs, with the reasons for their covers. Making a picture may take as long as planning the job,
// so a thread of the lowest priority makes the pictures, and those made last are kept.
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
    std::string key, name;                  // key and name of the group that the kernel computes
    std::string ops = {};                   // the ops that the kernel computes
    std::vector<std::string> reasons = {};  // lines of the cover's explanation that are about the group
  };
  absl::Status status;       // not OK: there is no drawing, for this reason
  std::string picture = {};  // the picture as SVG
  std::vector<std::string> summary = {};
  std::vector<Kernel> kernels = {};
};

class Drawings {
 public:
  // The compiler must outlive the object.
  explicit Drawings(const Compiler* compiler);
  ~Drawings();  // Waits until the drawing that is being made is finished.
  Drawings(const Drawings&) = delete;
  Drawings& operator=(const Drawings&) = delete;

  // Returns the drawing of a job; null if it was not made, or is not finished. `of_result`: asks for the drawing of
  // what the job's result launches, and otherwise of the cover that the job begins with. Thread-safe.
  std::shared_ptr<const Drawing> find(int64_t job_id, bool of_result) const;
  // Begins the drawing of a job (of its result if the job has one), unless it was begun before. Waits 0.3 s for the
  // drawing and returns it; null if it takes longer. Thread-safe. Unavailable: too many other drawings wait already.
  absl::StatusOr<std::shared_ptr<const Drawing>> make(const JobRow& job);

 private:
  struct Entry {
    int64_t job_id;
    bool of_result;
    std::shared_ptr<const Drawing> drawing;  // the drawing; null: it is being made
  };
  // Returns the entry of a drawing; entries_.end(): there is none. The caller must hold mutex_.
  std::list<Entry>::const_iterator at(int64_t job_id, bool of_result) const;
  void put(int64_t job_id, bool of_result, Drawing drawing);

  const Compiler* const compiler_;
  std::atomic<bool> leaving_ = false;
  mutable std::mutex mutex_;  // guards the entries
  std::condition_variable made_;
  std::list<Entry> entries_;  // the drawings, newest first
  WorkPool pool_;             // declared last, so destroyed first: its thread uses the other members
};

}  // namespace wl
