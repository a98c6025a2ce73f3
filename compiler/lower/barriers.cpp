#include "compiler/lower/barriers.h"

#include <algorithm>

#include "compiler/lower/verify.h"

namespace wl {
namespace {

constexpr int kDeepest = 8;  // every level doubles the work

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
    if (base.kind == 'l' || base.kind == 'u') threads *= 2;
  return threads == kernel.team;
}

bool hazard(const Kernel& kernel, const Instr& a, const Instr& b) {
  if (a.slice.buffer != b.slice.buffer || (a.op != InstrOp::kStore && b.op != InstrOp::kStore)) return false;
  if (a.op == InstrOp::kGather || b.op == InstrOp::kGather || !(a.slice == b.slice)) return true;
  const Layout &mine = kernel.tiles[accessed_tile(a)].layout, &theirs = kernel.tiles[accessed_tile(b)].layout;
  return !(mine == theirs) || !spread_over_team(kernel, mine);
}

// Walks a body in order of execution and stops at the first hazard; with `insert`, puts a barrier there and goes on.
struct Walk {
  const Kernel& kernel;
  bool insert = false;
  std::vector<Instr> pending = {};  // shared accesses since the last barrier
  absl::Status found = {};

  void meet(const Instr& instr, std::vector<Instr>& body, size_t& at) {
    const auto clash = std::find_if(pending.begin(), pending.end(),
                                    [&](const Instr& earlier) { return hazard(kernel, earlier, instr); });
    if (clash != pending.end()) {
      if (!insert) {
        if (found.ok())
          found = absl::InternalError(cat("kernel ", kernel.name, ": no barrier between ", print(kernel, *clash),
                                          " and ", print(kernel, instr)));
        return;
      }
      Instr barrier;
      barrier.op = InstrOp::kBarrier;
      body.insert(body.begin() + static_cast<int64_t>(at), std::move(barrier));
      ++at;
      pending.clear();
    }
    pending.push_back(body[at]);
  }

  void walk(std::vector<Instr>& body, int depth = 0) {
    if (depth > kDeepest) {
      found = absl::InternalError(cat("kernel ", kernel.name, ": loops with lanes nest deeper than ", kDeepest));
      return;
    }
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i].op == InstrOp::kLoop) {
        walk(body[i].body, depth + 1);
        walk(body[i].body, depth + 1);
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
  prune(kernel, kernel.body);
}

absl::Status check_barriers(const Kernel& kernel) {
  WL_RETURN_IF_ERROR(check_loops(kernel, kernel.body));
  return hazards(kernel, kernel.body);
}

}  // namespace wl
