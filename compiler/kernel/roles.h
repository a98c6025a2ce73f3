// Checks of kernels whose threads have roles: the teams compute, the copiers fill shared memory for the teams, and
// phases say how far one role may be ahead of the other (kernel.h). The checks walk the kernel in its own order, whose
// results the two roles running together must not change: whoever touches an element of shared memory must first have
// been told, by a phase or a barrier, of the earlier accesses to it. barriers.h does the walk; this file keeps account
// of what each role has been told.
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

// What is wrong with the phase that an instruction names; "" where nothing is.
std::string phase_problem(const Kernel& kernel, const Instr& instr);

// An internal error where copiers do anything but copy and take part in phases, where a role does what only the other
// one may, where it is not so that one role arrives at a buffer's phases and the other waits for them, where the
// arrivals are not as many as end a phase, or where a block with copiers has several teams, a cluster or several
// sweeps.
absl::Status check_roles(const Kernel& kernel);

// The accesses to shared memory that each role has not been told of yet, at a point of a walk of a kernel.
class Told {
 public:
  explicit Told(const Kernel& kernel) : kernel_(kernel) {}

  // clash: an earlier access that `access`, which a role makes next, must not run before, although nothing keeps them
  // in order; null where there is none. unfinished: a copy that nobody has waited for, and whose elements `access` may
  // touch; null where there is none.
  const SharedAccess* clash(const SharedAccess& access) const;
  const SharedAccess* unfinished(const SharedAccess& access) const;
  void add(const SharedAccess& access);
  // At a barrier: all threads of the teams are told of everything that the teams did.
  void barrier() { own_[index(Role::kTeams)].clear(); }
  // Notes a copy that a later phase will tell about.
  void start(const SharedAccess& copy) { started_.push_back(copy); }
  // Threads of a role arrive at a phase, or wait for one. Returns what is wrong; "" where nothing is.
  std::string arrive(const Instr& instr, int64_t element, Role role);
  std::string await(const Instr& instr, int64_t element, int64_t parity, Role role);
  // A copy that no phase has told about, or for whose phase nobody has waited; null where there is none.
  const SharedAccess* untold() const;
  // After a loop: the accesses no longer say in which iteration of the loop they were.
  void forget(VarId loop);
  int64_t next_number() { return number_++; }

 private:
  struct Phase {
    int64_t ended = 0, awaited = 0;    // phases that ended, and those of them that the other role waited for
    int64_t last = -1;                 // number of the last access that the latest phase tells about
    std::set<int64_t> unknown;         // numbers of the other role's accesses that whoever arrived did not know of
    std::vector<SharedAccess> copies;  // those that have arrived when the latest phase ends
  };
  static size_t index(Role role) { return static_cast<size_t>(role); }
  static Role other(Role role) { return role == Role::kTeams ? Role::kCopiers : Role::kTeams; }

  const Kernel& kernel_;
  std::vector<SharedAccess> own_[2];     // by role: accesses of its threads that its other threads do not know of
  std::vector<SharedAccess> theirs_[2];  // by role: accesses of the other role that it does not know of
  std::vector<SharedAccess> started_;
  std::map<std::pair<BufferId, int64_t>, Phase> phases_;
  int64_t number_ = 0;
};

}  // namespace wl
