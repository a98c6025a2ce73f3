#include "compiler/kernel/barriers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/kernel/verify.h"

namespace wl {
namespace {

constexpr int kDeepest = 8;         // every level doubles the work
constexpr int64_t kMostSlots = 16;  // of a ring

// Where an instruction touches memory that may be shared: for a copy on its way, where it goes.
const Slice& slice_of(const Instr& instr) {
  return instr.op == InstrOp::kAsyncLoad ? instr.into : instr.slice;
}
bool writes(const Instr& instr) {
  return instr.op == InstrOp::kStore || instr.op == InstrOp::kAsyncLoad;
}

bool touches_shared(const Kernel& kernel, const Instr& instr) {
  if (instr.op == InstrOp::kAsyncLoad) return true;
  if (instr.op != InstrOp::kLoad && instr.op != InstrOp::kStore && instr.op != InstrOp::kGather) return false;
  return kernel.buffers[instr.slice.buffer].level == Level::kShared;
}

TileId accessed_tile(const Instr& instr) {
  return writes(instr) ? instr.args[0] : instr.result;
}

// Every thread of the team holds elements of its own.
bool spread_over_team(const Kernel& kernel, const Layout& layout) {
  int64_t threads = 1;
  for (const Layout::Base& base : layout.bases)
    if ((base.kind == 'l' || base.kind == 'u') && base.vector != 0) threads *= 2;
  return threads == kernel.team;
}

// The ring that an access turns through: its derived variable, and how far a step moves.
struct Ring {
  const Var* var = nullptr;
  int64_t slot = 0;
};
Ring ring_of(const Kernel& kernel, const Slice& slice) {
  const int64_t size = elements(kernel.buffers[slice.buffer].shape);
  for (const auto& [id, coefficient] : slice.offset.terms) {
    const Var& var = kernel.vars[id];
    if (var.kind == Var::Kind::kDerived && var.div == 1 && var.of.size() == 1 && var.mod > 1 &&
        coefficient * var.mod == size)
      return {&var, coefficient};
  }
  return {};
}

// A shared access, and how often the loops around it have turned since the walk met them.
struct Met {
  Instr instr;
  std::map<VarId, int64_t> turns;
};

int64_t find_slots(const Kernel& kernel, const std::vector<Instr>& body, BufferId buffer) {
  for (const Instr& instr : body) {
    if (const int64_t size = find_slots(kernel, instr.body, buffer); size != 0) return size;
    if (instr.op == InstrOp::kLoop || !touches_shared(kernel, instr) || slice_of(instr).buffer != buffer) continue;
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

// The slot that an access is in, where it is always the same or the walk knows the turns of all loops that it turns
// with. They begin at zero.
std::optional<int64_t> slot_number(const Kernel& kernel, const Met& met, int64_t size) {
  const Ring ring = ring_of(kernel, slice_of(met.instr));
  if (ring.var == nullptr) return slice_of(met.instr).offset.base / size;
  int64_t at = ring.var->of[0].base;
  for (const auto& [var, coefficient] : ring.var->of[0].terms) {
    const auto turn = met.turns.find(var);
    if (turn == met.turns.end()) return std::nullopt;
    at += coefficient * turn->second;
  }
  return at % ring.var->mod;
}

// Both are in rings of one buffer that turn with the same loops, which are as far apart as the walk says, and their
// slots differ; or their slots are known.
bool other_slots(const Kernel& kernel, const Met& a, const Met& b) {
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
    const auto before = a.turns.find(var), now = b.turns.find(var);
    if (before == a.turns.end() || now == b.turns.end()) return false;
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

// Every thread meets what it put there itself: the same place, of whatever slot, under the same layout.
bool meets_own(const Kernel& kernel, const Instr& a, const Instr& b) {
  const Layout &mine = kernel.tiles[accessed_tile(a)].layout, &theirs = kernel.tiles[accessed_tile(b)].layout;
  if (!(mine == theirs) || !spread_over_team(kernel, mine)) return false;
  if (slice_of(a) == slice_of(b)) return true;
  const int64_t size = slot_size(kernel, slice_of(a).buffer);
  return within_slot(kernel, slice_of(a), size) == within_slot(kernel, slice_of(b), size);
}

bool hazard(const Kernel& kernel, const Met& earlier, const Met& later) {
  const Instr &a = earlier.instr, &b = later.instr;
  const BufferId first = slice_of(a).buffer, second = slice_of(b).buffer;
  if (!writes(a) && !writes(b)) return false;
  if (kernel.overlap(first, second)) return true;
  if (first != second) return false;
  if (a.op == InstrOp::kGather || b.op == InstrOp::kGather) return true;
  return !other_slots(kernel, earlier, later) && !meets_own(kernel, a, b);
}

// A copy is on its way to what an access touches.
bool too_early(const Kernel& kernel, const Met& copy, const Met& access) {
  const BufferId to = slice_of(copy.instr).buffer, touched = slice_of(access.instr).buffer;
  return kernel.overlap(to, touched) || (to == touched && !other_slots(kernel, copy, access));
}

// Walks a body in order of execution and stops at the first hazard; with `insert`, puts a barrier there and goes on. A
// copy on its way writes when it is sent, and at the wait that covers it; no barrier helps who touches it between.
struct Walk {
  const Kernel& kernel;
  bool insert = false;
  std::vector<Met> pending = {};            // since the last barrier
  std::vector<std::vector<Met>> flying{1};  // groups of copies that no wait has covered; the last is still open
  std::map<VarId, int64_t> turns = {};
  absl::Status found = {};

  void meet(const Instr& instr, std::vector<Instr>& body, size_t& at) {
    const Met access{instr, turns};
    for (const std::vector<Met>& group : flying)
      for (const Met& copy : group)
        if (found.ok() && too_early(kernel, copy, access))
          found = absl::InternalError(cat("kernel ", kernel.name, ": no wait between ", print(kernel, copy.instr),
                                          " and ", print(kernel, instr)));
    const auto clash = std::find_if(pending.begin(), pending.end(),
                                    [&](const Met& earlier) { return hazard(kernel, earlier, access); });
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
    if (instr.op == InstrOp::kAsyncLoad) flying.back().push_back(access);
    if (!known(access)) pending.push_back(access);
  }

  void land(int under_way) {
    while (static_cast<int>(flying.size()) - 1 > under_way) {
      for (Met& copy : flying.front())
        if (!known(copy)) pending.push_back(std::move(copy));
      flying.erase(flying.begin());
    }
  }

  // An access that pending has already says nothing new.
  bool known(const Met& access) const {
    return std::any_of(pending.begin(), pending.end(), [&](const Met& p) {
      return p.instr.op == access.instr.op && slice_of(p.instr) == slice_of(access.instr) && p.turns == access.turns &&
             accessed_tile(p.instr) == accessed_tile(access.instr);
    });
  }

  // How often a loop is walked: every slot of a ring that turns with it is met again.
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
      turns[loop.var] = i;
      walk(loop.body, depth + 1);
    }
    turns.erase(loop.var);
    // From here on nothing is known of how far the loop has turned.
    for (Met& access : pending) access.turns.erase(loop.var);
    for (std::vector<Met>& group : flying)
      for (Met& copy : group) copy.turns.erase(loop.var);
  }

  void walk(std::vector<Instr>& body, int depth = 0) {
    if (depth > kDeepest) {
      found = absl::InternalError(cat("kernel ", kernel.name, ": loops with lanes nest deeper than ", kDeepest));
      return;
    }
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i].op == InstrOp::kLoop) {
        walk_loop(body[i], depth);
      } else if (body[i].op == InstrOp::kBarrier || body[i].op == InstrOp::kPass || body[i].op == InstrOp::kMeet) {
        pending.clear();
      } else if (body[i].op == InstrOp::kCommit) {
        flying.emplace_back();
      } else if (body[i].op == InstrOp::kWait) {
        land(body[i].pending);
      } else if (touches_shared(kernel, body[i])) {
        const Instr instr = body[i];
        meet(instr, body, i);
      }
    }
  }
};

absl::Status hazards(const Kernel& kernel, std::vector<Instr> body, bool packed) {
  if (packed) {  // no block meets what another section does
    for (const Instr& section : body) WL_RETURN_IF_ERROR(hazards(kernel, section.body, false));
    return absl::OkStatus();
  }
  Walk walk{kernel};
  walk.walk(body);
  for (const std::vector<Met>& group : walk.flying)
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
    return i.op == InstrOp::kBarrier || i.op == InstrOp::kMeet || has_barrier(i.body);
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

// A barrier in a loop is met every time; one before it may do.
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
