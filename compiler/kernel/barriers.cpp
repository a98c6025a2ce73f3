#include "compiler/kernel/barriers.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/kernel/roles.h"
#include "compiler/kernel/var_values.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

// The deepest nesting of loops that the analysis walks; each loop around an instruction at least doubles its work.
constexpr int kDeepest = 8;
constexpr int64_t kMostSlots = 16;  // times() ignores ring buffers with more slots than this

// Walks the instructions of a body in order of execution and stops at the first hazard on shared memory. With `insert`,
// a barrier is inserted before each hazard and the walk continues. An asynchronous copy counts as a store twice: where
// it starts, and at the wait that completes it. An access to the copy's destination between these two points is an
// error that no barrier can repair.
struct Walk {
  const Kernel& kernel;
  bool insert = false;
  Told told{kernel};  // the shared-memory accesses that no barrier or phase has ordered yet
  VarValues values{kernel};
  // The groups of asynchronous copies that have not arrived; the last group is not committed yet.
  std::vector<std::vector<SharedAccess>> copies{1};
  std::map<VarId, int64_t> iterations = {};
  Role role = Role::kTeams;
  absl::Status found = {};

  void complain(const std::string& what, const Instr& instr) {
    if (found.ok()) found = absl::InternalError(cat("kernel ", kernel.name, ": ", what, print(kernel, instr)));
  }

  void visit(const Instr& instr, std::vector<Instr>& body, size_t& at) {
    const SharedAccess access{instr, iterations, role, told.next_number()};
    const auto no = [&](const char* what, const Instr& earlier) {
      complain(cat("no ", what, " between ", print(kernel, earlier), " and "), instr);
    };
    for (const std::vector<SharedAccess>& group : copies)
      for (const SharedAccess& copy : group)
        if (uses_unfinished(kernel, copy, access)) no("wait", copy.instr);
    if (const SharedAccess* const copy = told.unfinished(access); copy != nullptr) no("phase", copy->instr);
    if (const SharedAccess* const clash = told.clash(access); clash != nullptr) {
      if (!insert || role != Role::kTeams || clash->role != role)
        return no(role == Role::kTeams && clash->role == role ? "barrier" : "phase", clash->instr);
      Instr barrier;
      barrier.op = InstrOp::kBarrier;
      body.insert(body.begin() + static_cast<int64_t>(at), std::move(barrier));
      ++at;
      told.barrier();
    }
    if (info(instr.op).is_async_copy()) {
      if (role == Role::kCopiers) {
        told.start(access);
      } else {
        copies.back().push_back(access);
      }
    }
    told.add(access);
  }

  void arrive(int left) {
    while (static_cast<int>(copies.size()) - 1 > left) {
      for (const SharedAccess& copy : copies.front()) told.add(copy);
      copies.erase(copies.begin());
    }
  }

  void phase(const Instr& instr) {
    const int64_t element = values.value(instr.slice.offset);
    const std::string problem = info(instr.op).order == Order::kPhase
                                    ? told.arrive(instr, element, role)
                                    : told.await(instr, element, values.value(instr.parity), role);
    if (!problem.empty()) complain(cat(problem, ": "), instr);
  }

  // Whether the variable of a loop is a term of the expression that a derived variable is computed from.
  bool advances(const Var& derived, VarId loop) const {
    const auto& terms = derived.of[0].terms;
    return std::any_of(terms.begin(), terms.end(), [&](const auto& term) { return term.first == loop; });
  }

  static bool has_known_trips(const Instr& loop) { return loop.trips.size() == 1 && loop.trips[0].terms.empty(); }

  // How many iterations of a loop the analysis walks: two, or as many as the slots of a ring buffer that advances with
  // the loop. In kernels with copier threads: three or, if the number of the loop's iterations is known, as many as
  // leave slots and phases in the state in which all iterations would leave them.
  int64_t times(const Instr& loop) const {
    int64_t most = 2, period = 1;
    for (const Var& v : kernel.vars) {
      if (v.kind != Var::Kind::kDerived || v.of.size() != 1 || !advances(v, loop.var)) continue;
      if (v.div == 1 && v.mod > most && v.mod <= kMostSlots) most = v.mod;
      if (v.mod > 1 && v.div * v.mod <= 2 * kMostSlots) period = std::lcm(period, v.div * v.mod);
    }
    if (kernel.copiers == 0) return most;
    if (!has_known_trips(loop)) return 3;
    const int64_t trips = loop.trips[0].base;
    return trips <= 3 * period ? trips : 2 * period + trips % period;
  }

  void walk_loop(Instr& loop, int depth) {
    const int64_t n = times(loop);
    const Role around = role;
    if (loop.role == Role::kCopiers) role = loop.role;
    for (int64_t i = 0; i < n; ++i) {
      iterations[loop.var] = i;
      values.set(loop.var, i);
      walk(loop.body, depth + 1);
    }
    role = around;
    // After the loop, it is unknown in which iteration an earlier access was made. In kernels with copier threads, the
    // walk ends in the same state as the loop (times()), so the iterations are kept.
    if (kernel.copiers > 0 && has_known_trips(loop)) return;
    iterations.erase(loop.var);
    told.forget(loop.var);
    for (std::vector<SharedAccess>& group : copies)
      for (SharedAccess& copy : group) copy.iterations.erase(loop.var);
  }

  void walk(std::vector<Instr>& body, int depth = 0) {
    if (depth > kDeepest) {
      found = absl::InternalError(cat("kernel ", kernel.name, ": loops with lanes nest deeper than ", kDeepest));
      return;
    }
    for (size_t i = 0; i < body.size(); ++i) {
      const InstrInfo& row = info(body[i].op);
      if (body[i].op == InstrOp::kLoop) {
        walk_loop(body[i], depth);
      } else if (row.is_barrier()) {
        told.barrier();
      } else if (row.order == Order::kGroup) {
        copies.emplace_back();
      } else if (row.order == Order::kArrival) {
        arrive(body[i].pending);
      } else if (row.has(Operand::phase)) {
        phase(body[i]);
      } else if (goes_through_memory(body[i])) {
        const auto [store, load] = through_memory(body[i]);
        visit(store, body, i);
        told.barrier();  // the barrier between the convert's store and its load
        visit(load, body, i);
      } else if (accesses_shared(kernel, body[i])) {
        const Instr instr = body[i];
        visit(instr, body, i);
      }
    }
  }
};

absl::Status hazards(const Kernel& kernel, std::vector<Instr> body, bool packed) {
  if (packed) {  // a block runs at most one section, so sections cannot conflict
    for (const Instr& section : body) WL_RETURN_IF_ERROR(hazards(kernel, section.body, false));
    return absl::OkStatus();
  }
  Walk walk{kernel};
  walk.walk(body);
  for (const std::vector<SharedAccess>& group : walk.copies)
    if (walk.found.ok() && !group.empty())
      return absl::InternalError(cat("kernel ", kernel.name, ": no wait for ", print(kernel, group[0].instr)));
  if (const SharedAccess* const copy = walk.told.untold(); copy != nullptr) walk.complain("no phase for ", copy->instr);
  return walk.found;
}

bool depends_on_team(const Kernel& kernel, const Affine& affine) {
  return std::any_of(affine.terms.begin(), affine.terms.end(), [&](const auto& term) {
    if (term.first == kTeamVar) return true;
    const Var& var = kernel.vars[term.first];
    return std::any_of(var.of.begin(), var.of.end(), [&](const Affine& a) { return depends_on_team(kernel, a); });
  });
}

bool has_barrier(const std::vector<Instr>& body) {
  return std::any_of(body.begin(), body.end(), [](const Instr& i) {
    return info(i.op).is_barrier() || goes_through_memory(i) || has_barrier(i.body);
  });
}

absl::Status check_loops(const Kernel& kernel, const std::vector<Instr>& body) {
  for (const Instr& instr : body) {
    if (instr.op != InstrOp::kLoop) continue;
    const bool uneven = std::any_of(instr.trips.begin(), instr.trips.end(),
                                    [&](const Affine& a) { return depends_on_team(kernel, a); });
    if (uneven && has_barrier(instr.body))
      return absl::InternalError(cat(
          "kernel ", kernel.name, ": a barrier in a loop that teams leave at different times: ", print(kernel, instr)));
    WL_RETURN_IF_ERROR(check_loops(kernel, instr.body));
  }
  return absl::OkStatus();
}

// Replaces the barriers in a loop, which run in every iteration, by one barrier before the loop where that is enough.
void hoist(Kernel& kernel, std::vector<Instr>& body) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i].op != InstrOp::kLoop) continue;
    hoist(kernel, body[i].body);
    std::vector<Instr>& inner = body[i].body;
    const auto barrier = [](const Instr& instr) { return instr.op == InstrOp::kBarrier; };
    if (std::none_of(inner.begin(), inner.end(), barrier)) continue;
    const std::vector<Instr> before = inner;
    inner.erase(std::remove_if(inner.begin(), inner.end(), barrier), inner.end());
    Instr one;
    one.op = InstrOp::kBarrier;
    body.insert(body.begin() + static_cast<int64_t>(i), std::move(one));
    if (!hazards(kernel, kernel.body, kernel.is_packed()).ok()) {
      body.erase(body.begin() + static_cast<int64_t>(i));
      body[i].body = before;
      continue;
    }
    ++i;  // `i` is the index of the loop again, which is now behind the inserted barrier
  }
}

// Removes every barrier without which there is still no hazard, from the last barrier of a body to the first.
void prune(Kernel& kernel, std::vector<Instr>& body) {
  for (size_t i = body.size(); i-- > 0;) {
    if (body[i].op == InstrOp::kLoop) prune(kernel, body[i].body);
    if (body[i].op != InstrOp::kBarrier) continue;
    Instr barrier = std::move(body[i]);
    body.erase(body.begin() + static_cast<int64_t>(i));
    if (!hazards(kernel, kernel.body, kernel.is_packed()).ok())
      body.insert(body.begin() + static_cast<int64_t>(i), std::move(barrier));
  }
}

}  // namespace

void insert_barriers(Kernel& kernel) {
  Walk walk{kernel, true};
  walk.walk(kernel.body);
  hoist(kernel, kernel.body);
  prune(kernel, kernel.body);
}

absl::Status check_barriers(const Kernel& kernel) {
  WL_RETURN_IF_ERROR(check_loops(kernel, kernel.body));
  return hazards(kernel, kernel.body, kernel.is_packed());
}

}  // namespace wl
