// Checks of kernels whose threads have roles: the teams compute, the copier threads fill shared memory for the teams,
// and phases limit how far one role may run ahead of the other (kernel.h). Both roles run concurrently and must have
// the results of the kernel's sequential order. The checks therefore walk the kernel in that order: a thread that
// touches an element of shared memory must have learned, by a phase or a barrier, of all earlier accesses to the
// element. barriers.h does the walk; this file tracks what each role has learned.
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

// Returns what is wrong with the phase that an instruction names; "" if nothing is.
std::string phase_problem(const Kernel& kernel, const Instr& instr);

// Returns an internal error unless the kernel keeps these rules: copier threads only copy, and arrive at and wait for
// phases; no other threads copy boxes; of each buffer of phases, one role arrives and the other role waits; the
// arrivals at a phase are as many as the buffer states; and a block with copiers has one team, no cluster and one
// sweep over the grid.
absl::Status check_roles(const Kernel& kernel);

// The accesses to shared memory that a role may not yet rely on, at one point of a walk over a kernel: neither a phase
// nor a barrier has told the role that they are done.
class Told {
 public:
  explicit Told(const Kernel& kernel) : kernel_(kernel) {}

  // Both functions are called before `access`, the next access of its role, and return null if they find nothing
  // wrong. clash() returns an earlier access that must be done before `access`, although neither a phase nor a barrier
  // orders the two. unfinished() returns a copy that nobody has waited for and whose destination `access` may touch.
  const SharedAccess* clash(const SharedAccess& access) const;
  const SharedAccess* unfinished(const SharedAccess& access) const;
  void add(const SharedAccess& access);
  // Handles a barrier: all threads of the teams learn of everything that the teams did.
  void barrier() { own_[index(Role::kTeams)].clear(); }
  // Records the start of a copy whose end a later phase will signal.
  void start(const SharedAccess& copy) { started_.push_back(copy); }
  // Handles the arrival of a role's threads at a phase, or their wait for one. Returns what is wrong; "" if nothing is.
  std::string arrive(const Instr& instr, int64_t element, Role role);
  std::string await(const Instr& instr, int64_t element, int64_t parity, Role role);
  // Returns a copy whose end no phase has signalled, or whose phase nobody has waited for; null if there is none.
  const SharedAccess* untold() const;
  // Handles the end of a loop: forgets in which iteration of the loop the recorded accesses were made.
  void forget(VarId loop);
  int64_t next_number() { return number_++; }

 private:
  struct Phase {
    int64_t ended = 0, awaited = 0;  // how many phases have ended; how many of them the other role has waited for
    int64_t last = -1;               // number of the last access made before the latest phase ended
    std::set<int64_t> unknown;       // the other role's accesses, by number, that the arriving role had not learned of
    std::vector<SharedAccess> copies;  // the copies whose end the latest phase signals
  };
  static size_t index(Role role) { return static_cast<size_t>(role); }
  static Role other(Role role) { return role == Role::kTeams ? Role::kCopiers : Role::kTeams; }

  const Kernel& kernel_;
  std::vector<SharedAccess> own_[2];     // for each role: its own accesses that not all of its threads have learned of
  std::vector<SharedAccess> theirs_[2];  // for each role: accesses of the other role that it has not learned of
  std::vector<SharedAccess> started_;
  std::map<std::pair<BufferId, int64_t>, Phase> phases_;
  int64_t number_ = 0;
};

}  // namespace wl
