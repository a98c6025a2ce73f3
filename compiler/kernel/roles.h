// Blocks whose threads have roles: the teams compute, the copiers fill shared memory for them, and phases say how far
// one may be ahead of the other (kernel.h). What happens between the roles is checked by walking the kernel in its own
// order, which is the order that both roles together must not be able to change: every access to shared memory must
// have been told to whoever touches the same elements later. barriers.h walks; here is what is told.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/shared_access.h"
#include "compiler/kernel/verify.h"

namespace wl {

// What is wrong with an instruction about a phase; "" where nothing is.
std::string phase_problem(const Kernel& kernel, const Instr& instr);

// Internal error where copiers do something else than to copy, where somebody else waits for the copies of a thread of
// theirs, or where what arrives is not as many as a phase ends with.
absl::Status check_roles(const Kernel& kernel);

// What each role does not know yet of what was done to shared memory, along a walk of a kernel.
class Told {
 public:
  explicit Told(const Kernel& kernel) : kernel_(kernel) {}

  // Of an access that a role makes next: an earlier one that it must not come before, though nothing keeps it; null:
  // there is none. `unfinished`: a copy whose arrival nobody waited for, of elements that it may touch.
  const SharedAccess* clash(const SharedAccess& access) const;
  const SharedAccess* unfinished(const SharedAccess& access) const;
  void add(const SharedAccess& access);
  // All that the teams did is known to all of them.
  void barrier() { own_[index(Role::kTeams)].clear(); }
  // A copy that a phase will tell about.
  void start(const SharedAccess& copy) { started_.push_back(copy); }
  // Threads of a role arrive at a phase, or wait for one; "" or what is wrong.
  std::string arrive(const Instr& instr, int64_t element, Role role);
  std::string await(const Instr& instr, int64_t element, int64_t parity, Role role);
  // A copy that no phase told about, or whose phase nobody waited for; null: there is none.
  const SharedAccess* untold() const;
  // After a loop its iteration is unknown.
  void forget(VarId loop);
  int64_t next_number() { return number_++; }

 private:
  struct Phase {
    int64_t ended = 0, awaited = 0;    // how many, and of them those that the other role waited for
    int64_t last = -1;                 // of the accesses that the latest one tells about
    std::set<int64_t> unknown;         // to whoever arrived, of the accesses of the other role
    std::vector<SharedAccess> copies;  // that are there when it ends
  };
  static size_t index(Role role) { return static_cast<size_t>(role); }
  static Role other(Role role) { return role == Role::kTeams ? Role::kCopiers : Role::kTeams; }

  const Kernel& kernel_;
  std::vector<SharedAccess> own_[2];     // of a role's threads, that its other threads do not know of
  std::vector<SharedAccess> theirs_[2];  // of the other role's, that it does not know of
  std::vector<SharedAccess> started_;
  std::map<std::pair<BufferId, int64_t>, Phase> phases_;
  int64_t number_ = 0;
};

}  // namespace wl
