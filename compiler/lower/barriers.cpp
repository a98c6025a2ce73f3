#include "compiler/lower/barriers.h"

#include <algorithm>
#include <map>

#include "compiler/lower/verify.h"

namespace wl {
namespace {

constexpr int kDeepest = 8;         // every level doubles the work
constexpr int64_t kMostSlots = 16;  // of a ring

bool touches_shared(const Kernel& kernel, const Instr& instr) {
  if (instr.op != InstrOp::kLoad && instr.op != InstrOp::kStore && instr.op != InstrOp::kGather) return false;
  return kernel.buffers[instr.slice.buffer].level == Level::kShared;
}

TileId accessed_tile(const Instr& instr) {
  return instr.op == InstrOp::kStore ? instr.args[0] : instr.result;
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

// Both are in rings of one buffer that turn with the same loops, which are as far apart as the walk says, and their
// slots differ.
bool other_slots(const Kernel& kernel, const Met& a, const Met& b) {
  const Ring mine = ring_of(kernel, a.instr.slice), theirs = ring_of(kernel, b.instr.slice);
  if (mine.var == nullptr || theirs.var == nullptr || mine.slot != theirs.slot) return false;
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

bool hazard(const Kernel& kernel, const Met& earlier, const Met& later) {
  const Instr &a = earlier.instr, &b = later.instr;
  if (a.op != InstrOp::kStore && b.op != InstrOp::kStore) return false;
  if (kernel.overlap(a.slice.buffer, b.slice.buffer)) return true;
  if (a.slice.buffer != b.slice.buffer) return false;
  if (a.op == InstrOp::kGather || b.op == InstrOp::kGather) return true;
  if (other_slots(kernel, earlier, later)) return false;
  if (!(a.slice == b.slice)) return true;
  const Layout &mine = kernel.tiles[accessed_tile(a)].layout, &theirs = kernel.tiles[accessed_tile(b)].layout;
  return !(mine == theirs) || !spread_over_team(kernel, mine);
}

// Walks a body in order of execution and stops at the first hazard; with `insert`, puts a barrier there and goes on.
struct Walk {
  const Kernel& kernel;
  bool insert = false;
  std::vector<Met> pending = {};  // since the last barrier
  std::map<VarId, int64_t> turns = {};
  absl::Status found = {};

  void meet(const Instr& instr, std::vector<Instr>& body, size_t& at) {
    const Met access{instr, turns};
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
    if (!known(access)) pending.push_back(access);
  }

  // An access that pending has already says nothing new.
  bool known(const Met& access) const {
    return std::any_of(pending.begin(), pending.end(), [&](const Met& p) {
      return p.instr.op == access.instr.op && p.instr.slice == access.instr.slice && p.turns == access.turns &&
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
  }

  void walk(std::vector<Instr>& body, int depth = 0) {
    if (depth > kDeepest) {
      found = absl::InternalError(cat("kernel ", kernel.name, ": loops with lanes nest deeper than ", kDeepest));
      return;
    }
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i].op == InstrOp::kLoop) {
        walk_loop(body[i], depth);
      } else if (body[i].op == InstrOp::kBarrier) {
        pending.clear();
      } else if (touches_shared(kernel, body[i])) {
        const Instr instr = body[i];
        meet(instr, body, i);
      }
    }
  }
};

absl::Status hazards(const Kernel& kernel, std::vector<Instr> body) {
  Walk walk{kernel};
  walk.walk(body);
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
  return std::any_of(body.begin(), body.end(),
                     [](const Instr& i) { return i.op == InstrOp::kBarrier || has_barrier(i.body); });
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
    if (!hazards(kernel, kernel.body).ok()) {
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
    if (!hazards(kernel, kernel.body).ok()) body.insert(body.begin() + static_cast<int64_t>(i), std::move(barrier));
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
  return hazards(kernel, kernel.body);
}

}  // namespace wl
