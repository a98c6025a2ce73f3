#include "compiler/kernel/barriers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/kernel/verify.h"

namespace wl {
namespace {

constexpr int kDeepest = 8;         // every level doubles the work
constexpr int64_t kMostSlots = 16;  // of a ring

// Where an instruction accesses memory that may be shared: the destination of an asynchronous copy.
const Slice& slice_of(const Instr& instr) {
  return info(instr.op).is_async_copy() ? instr.into : instr.slice;
}
bool writes(const Instr& instr) {
  return info(instr.op).stores() || info(instr.op).is_async_copy();
}

bool accesses_shared(const Kernel& kernel, const Instr& instr) {
  return info(instr.op).accesses_memory() && kernel.buffers[slice_of(instr).buffer].level == Level::kShared;
}

// Every thread of the team holds elements of its own.
bool spread_over_team(const Kernel& kernel, const Layout& layout) {
  int64_t threads = 1;
  for (const Layout::Base& base : layout.bases)
    if ((base.kind == 'l' || base.kind == 'u') && base.vector != 0) threads *= 2;
  return threads == kernel.team;
}

// The ring buffer that an access goes through: its derived variable, and the size of a slot, out of which no swizzle
// leads.
struct Ring {
  const Var* var = nullptr;
  int64_t slot = 0;
};
Ring ring_of(const Kernel& kernel, const Slice& slice) {
  const int64_t size = elements(kernel.buffers[slice.buffer].shape);
  const int64_t reach = kernel.buffers[slice.buffer].swizzle.reach();
  for (const auto& [id, coefficient] : slice.offset.terms) {
    const Var& var = kernel.vars[id];
    if (var.kind == Var::Kind::kDerived && var.div == 1 && var.of.size() == 1 && var.mod > 1 &&
        coefficient * var.mod == size && coefficient % reach == 0)
      return {&var, coefficient};
  }
  return {};
}

// An access to shared memory, and the iteration that each loop around it is in.
struct SharedAccess {
  Instr instr;
  std::map<VarId, int64_t> iterations;
};

int64_t find_slots(const Kernel& kernel, const std::vector<Instr>& body, BufferId buffer) {
  for (const Instr& instr : body) {
    if (const int64_t size = find_slots(kernel, instr.body, buffer); size != 0) return size;
    if (!accesses_shared(kernel, instr) || slice_of(instr).buffer != buffer) continue;
    if (const Ring ring = ring_of(kernel, slice_of(instr)); ring.var != nullptr) return ring.slot;
  }
  return 0;
}

// The size of a buffer's slots, where it is a ring; 0 where it is none.
int64_t slot_size(const Kernel& kernel, BufferId buffer) {
  const int64_t size = elements(kernel.buffers[buffer].shape);
  const bool may = std::any_of(kernel.vars.begin(), kernel.vars.end(), [size](const Var& var) {
    return var.kind == Var::Kind::kDerived && var.div == 1 && var.of.size() == 1 && var.mod > 1 && size % var.mod == 0;
  });
  return may ? find_slots(kernel, kernel.body, buffer) : 0;
}

// The slot of an access, where it is fixed or the walk knows the iterations of all loops that it depends on.
std::optional<int64_t> slot_number(const Kernel& kernel, const SharedAccess& met, int64_t size) {
  const Ring ring = ring_of(kernel, slice_of(met.instr));
  if (ring.var == nullptr) return slice_of(met.instr).offset.base / size;
  int64_t at = ring.var->of[0].base;
  for (const auto& [var, coefficient] : ring.var->of[0].terms) {
    const auto iteration = met.iterations.find(var);
    if (iteration == met.iterations.end()) return std::nullopt;
    at += coefficient * iteration->second;
  }
  return at % ring.var->mod;
}

// Two accesses to one ring are certainly in different slots: both slots are known, or both depend on the same loops and
// the known distance between their iterations is no multiple of the ring's length.
bool other_slots(const Kernel& kernel, const SharedAccess& a, const SharedAccess& b) {
  const Slice &first = slice_of(a.instr), &second = slice_of(b.instr);
  const Ring mine = ring_of(kernel, first), theirs = ring_of(kernel, second);
  if (mine.var == nullptr || theirs.var == nullptr) {
    const int64_t size = slot_size(kernel, first.buffer);
    if (size == 0) return false;
    const auto one = slot_number(kernel, a, size), other = slot_number(kernel, b, size);
    return one && other && *one != *other;
  }
  if (mine.slot != theirs.slot) return false;
  const Affine &from = mine.var->of[0], &to = theirs.var->of[0];
  if (from.terms != to.terms) return false;
  int64_t apart = to.base - from.base;
  for (const auto& [var, coefficient] : from.terms) {
    const auto before = a.iterations.find(var), now = b.iterations.find(var);
    if (before == a.iterations.end() || now == b.iterations.end()) return false;
    apart += coefficient * (now->second - before->second);
  }
  return apart % mine.var->mod != 0;
}

// A slice as it lies in its slot.
Slice within_slot(const Kernel& kernel, Slice slice, int64_t size) {
  const Ring ring = ring_of(kernel, slice);
  if (ring.var == nullptr) {
    if (size > 0) slice.offset.base %= size;
    return slice;
  }
  std::erase_if(slice.offset.terms, [&](const auto& term) { return &kernel.vars[term.first] == ring.var; });
  return slice;
}

}  // namespace

bool accesses_own(const Kernel& kernel, const Instr& a, const Instr& b) {
  const Layout &mine = kernel.tiles[space_tile(a)].layout, &theirs = kernel.tiles[space_tile(b)].layout;
  if (!(mine == theirs) || !spread_over_team(kernel, mine)) return false;
  if (slice_of(a) == slice_of(b)) return true;
  const int64_t size = slot_size(kernel, slice_of(a).buffer);
  return within_slot(kernel, slice_of(a), size) == within_slot(kernel, slice_of(b), size);
}

namespace {

bool hazard(const Kernel& kernel, const SharedAccess& earlier, const SharedAccess& later) {
  const Instr &a = earlier.instr, &b = later.instr;
  const BufferId first = slice_of(a).buffer, second = slice_of(b).buffer;
  if (!writes(a) && !writes(b)) return false;
  if (kernel.overlap(first, second)) return true;
  if (first != second) return false;
  if (info(a.op).is_indexed() || info(b.op).is_indexed()) return true;
  return !other_slots(kernel, earlier, later) && !accesses_own(kernel, a, b);
}

// The access may touch elements of an asynchronous copy that has not arrived.
bool uses_unfinished(const Kernel& kernel, const SharedAccess& copy, const SharedAccess& access) {
  const BufferId to = slice_of(copy.instr).buffer, touched = slice_of(access.instr).buffer;
  return kernel.overlap(to, touched) || (to == touched && !other_slots(kernel, copy, access));
}

// Walks a body in order of execution and stops at the first hazard; with `insert`, puts a barrier there and continues.
// An asynchronous copy counts as a store where it starts and at the wait after which it has arrived; an access between
// the two is an error that no barrier mends.
struct Walk {
  const Kernel& kernel;
  bool insert = false;
  std::vector<SharedAccess> pending = {};            // since the last barrier
  std::vector<std::vector<SharedAccess>> copies{1};  // groups that have not arrived; the last is still open
  std::map<VarId, int64_t> iterations = {};
  absl::Status found = {};

  void visit(const Instr& instr, std::vector<Instr>& body, size_t& at) {
    const SharedAccess access{instr, iterations};
    for (const std::vector<SharedAccess>& group : copies)
      for (const SharedAccess& copy : group)
        if (found.ok() && uses_unfinished(kernel, copy, access))
          found = absl::InternalError(cat("kernel ", kernel.name, ": no wait between ", print(kernel, copy.instr),
                                          " and ", print(kernel, instr)));
    const auto clash = std::find_if(pending.begin(), pending.end(),
                                    [&](const SharedAccess& earlier) { return hazard(kernel, earlier, access); });
    if (clash != pending.end()) {
      if (!insert) {
        if (found.ok())
          found = absl::InternalError(cat("kernel ", kernel.name, ": no barrier between ", print(kernel, clash->instr),
                                          " and ", print(kernel, instr)));
        return;
      }
      Instr barrier;
      barrier.op = InstrOp::kBarrier;
      body.insert(body.begin() + static_cast<int64_t>(at), std::move(barrier));
      ++at;
      pending.clear();
    }
    if (info(instr.op).is_async_copy()) copies.back().push_back(access);
    if (!known(access)) pending.push_back(access);
  }

  void arrive(int left) {
    while (static_cast<int>(copies.size()) - 1 > left) {
      for (SharedAccess& copy : copies.front())
        if (!known(copy)) pending.push_back(std::move(copy));
      copies.erase(copies.begin());
    }
  }

  // `pending` already holds an equal access.
  bool known(const SharedAccess& access) const {
    return std::any_of(pending.begin(), pending.end(), [&](const SharedAccess& p) {
      return p.instr.op == access.instr.op && slice_of(p.instr) == slice_of(access.instr) &&
             p.iterations == access.iterations && space_tile(p.instr) == space_tile(access.instr);
    });
  }

  // How many iterations of a loop are walked: as many as reach every slot of a ring that advances with it again.
  int64_t times(VarId var) const {
    int64_t most = 2;
    for (const Var& v : kernel.vars) {
      if (v.kind != Var::Kind::kDerived || v.mod <= most || v.mod > kMostSlots || v.of.size() != 1 || v.div != 1)
        continue;
      const auto& terms = v.of[0].terms;
      if (std::any_of(terms.begin(), terms.end(), [&](const auto& term) { return term.first == var; })) most = v.mod;
    }
    return most;
  }

  void walk_loop(Instr& loop, int depth) {
    const int64_t n = times(loop.var);
    for (int64_t i = 0; i < n; ++i) {
      iterations[loop.var] = i;
      walk(loop.body, depth + 1);
    }
    iterations.erase(loop.var);
    // After the loop its iteration is unknown.
    for (SharedAccess& access : pending) access.iterations.erase(loop.var);
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
        pending.clear();
      } else if (row.order == Order::kGroup) {
        copies.emplace_back();
      } else if (row.order == Order::kArrival) {
        arrive(body[i].pending);
      } else if (goes_through_memory(body[i])) {
        const auto [store, load] = through_memory(body[i]);
        visit(store, body, i);
        pending.clear();  // its own barrier
        visit(load, body, i);
      } else if (accesses_shared(kernel, body[i])) {
        const Instr instr = body[i];
        visit(instr, body, i);
      }
    }
  }
};

absl::Status hazards(const Kernel& kernel, std::vector<Instr> body, bool packed) {
  if (packed) {  // no block runs two sections
    for (const Instr& section : body) WL_RETURN_IF_ERROR(hazards(kernel, section.body, false));
    return absl::OkStatus();
  }
  Walk walk{kernel};
  walk.walk(body);
  for (const std::vector<SharedAccess>& group : walk.copies)
    if (walk.found.ok() && !group.empty())
      return absl::InternalError(cat("kernel ", kernel.name, ": no wait for ", print(kernel, group[0].instr)));
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

// A barrier in a loop runs in every iteration; one before the loop may be enough.
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
    ++i;  // the loop
  }
}

// Tries every barrier of a body, last first.
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
