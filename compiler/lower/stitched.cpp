#include "compiler/lower/stitched.h"

#include <algorithm>

#include "compiler/lower/barriers.h"
#include "compiler/lower/builder.h"
#include "compiler/lower/lower.h"
#include "compiler/plan/stitch.h"

namespace wl {
namespace {

// Moves one stage's kernel into the whole one.
class Graft {
 public:
  // `places`: the block's number along each axis; `scratch`: where the stage's own begins.
  Graft(Kernel stage, const Stage& plan, const std::vector<Affine>& places, const std::vector<BufferId>& kept,
        int64_t scratch, KernelBuilder& out)
      : stage_(std::move(stage)), plan_(plan), places_(places), out_(out) {
    Kernel& whole = out.kernel();
    for (size_t b = 0; b < stage_.buffers.size(); ++b) {
      const KernelBuffer& buffer = stage_.buffers[b];
      if (b >= plan.buffers.size()) {
        buffers_.push_back(static_cast<BufferId>(whole.buffers.size()));
        whole.buffers.push_back(buffer);
        whole.buffers.back().byte_offset += scratch;
      } else if (plan.buffers[b].kept >= 0) {
        buffers_.push_back(kept[plan.buffers[b].kept]);
      } else {
        buffers_.push_back(plan.buffers[b].global);
        if (buffer.output) whole.buffers[plan.buffers[b].global].once = buffer.once;
      }
    }
    place_vars();
    first_tile_ = static_cast<TileId>(whole.tiles.size());
    for (Tile tile : stage_.tiles) {
      for (std::vector<Affine>& axis : tile.bound)
        for (Affine& bound : axis) bound = moved(bound);
      whole.tiles.push_back(std::move(tile));
    }
  }

  void run() {
    if (turn_ >= 0) out_.open_loop(turn_, {fixed(stage_.grid)});
    out_.push_all(body(stage_.body));
    if (turn_ >= 0) out_.close_loop();
  }

 private:
  void place_vars() {
    vars_.resize(stage_.vars.size());
    for (size_t v = 0; v < stage_.vars.size(); ++v) {
      const Var& var = stage_.vars[v];
      if (var.kind == Var::Kind::kBlock) {
        if (stage_.grid > 1) turn_ = out_.loop_var("turn");
        vars_[v] = turn_ >= 0 ? affine(turn_) : fixed(0);
      } else if (var.kind == Var::Kind::kTeam) {
        vars_[v] = affine(kTeamVar);
      } else if (var.kind == Var::Kind::kLoop) {
        vars_[v] = affine(out_.loop_var(var.name));
      } else {
        std::vector<Affine> of;
        for (const Affine& source : var.of) of.push_back(moved(source));
        const bool known = std::all_of(of.begin(), of.end(), [](const Affine& a) { return a.terms.empty(); });
        if (!known) {
          vars_[v] = affine(out_.derived(var.name, std::move(of), var.div, var.mod));
          continue;
        }
        int64_t value = of[0].base;
        for (const Affine& source : of) value = std::min(value, source.base);
        value /= var.div;
        vars_[v] = fixed(var.mod == 0 ? value : value % var.mod);
      }
    }
  }

  Affine moved(const Affine& from) const {
    Affine to = fixed(from.base);
    for (const auto& [var, coefficient] : from.terms) to = sum(std::move(to), vars_[var], coefficient);
    return to;
  }

  Slice moved(Slice slice) const {
    if (slice.buffer < 0) return slice;
    slice.offset = moved(slice.offset);
    const auto number = static_cast<size_t>(slice.buffer);
    if (number < plan_.buffers.size())
      for (size_t axis = 0; axis < plan_.buffers[number].shift.size(); ++axis)
        slice.offset = sum(std::move(slice.offset), places_[axis], plan_.buffers[number].shift[axis]);
    slice.buffer = buffers_[number];
    return slice;
  }

  std::vector<Instr> body(const std::vector<Instr>& from) const {
    std::vector<Instr> to;
    for (Instr instr : from) {
      if (instr.op == InstrOp::kBarrier) continue;  // those of the whole follow from its own hazards
      if (instr.result >= 0) instr.result += first_tile_;
      for (TileId& arg : instr.args) arg += first_tile_;
      if (instr.op == InstrOp::kIota)
        instr.slice.offset = moved(instr.slice.offset);
      else
        instr.slice = moved(std::move(instr.slice));
      for (SliceGuard& guard : instr.guards) guard.at = moved(guard.at);
      if (instr.slice.buffer >= 0 && out_.kernel().buffers[instr.slice.buffer].level == Level::kShared) {
        if (instr.op == InstrOp::kPrefetch) continue;
        instr.streaming = false;
      }
      if (instr.op == InstrOp::kLoop) {
        instr.var = vars_[instr.var].terms[0].first;
        for (Affine& trips : instr.trips) trips = moved(trips);
        instr.body = body(instr.body);
      }
      to.push_back(std::move(instr));
    }
    return to;
  }

  const Kernel stage_;
  const Stage& plan_;
  const std::vector<Affine>& places_;
  KernelBuilder& out_;
  std::vector<BufferId> buffers_;
  std::vector<Affine> vars_;  // by the stage's variable
  VarId turn_ = -1;
  TileId first_tile_ = 0;
};

absl::StatusOr<Kernel> lower_stage(const Stage& stage, size_t number, const Schedule& whole, const Machine& machine) {
  const Machine own = stage_machine(machine, stage);
  WL_ASSIGN_OR_RETURN(const Space space, space_of(stage.graph, stage.domain, own));
  return lower(stage.graph, stage.domain, stage_schedule(space, number, whole, own.target->is_gpu()), own);
}

// Memory that is needed from one stage to another.
struct Need {
  int64_t bytes = 0;
  size_t first = 0, last = 0;
  int64_t offset = 0;
};

// First fit: what is not needed at the same time may share memory. Whole pages on CPUs, so that what is shifted against
// rows that share cache sets stays so.
void place(std::vector<Need>& needs, int64_t unit) {
  for (size_t i = 0; i < needs.size(); ++i) {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t j = 0; j < i; ++j) {
        const bool together = needs[i].first <= needs[j].last && needs[j].first <= needs[i].last;
        const bool overlap =
            needs[i].offset < needs[j].offset + needs[j].bytes && needs[j].offset < needs[i].offset + needs[i].bytes;
        if (!together || !overlap) continue;
        needs[i].offset = (needs[j].offset + needs[j].bytes + unit - 1) / unit * unit;
        moved = true;
      }
    }
  }
}

}  // namespace

absl::StatusOr<Kernel> lower_stitched(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine) {
  const std::vector<Stitched>& choices = domain.stitch->choices;
  const auto choice = std::find_if(choices.begin(), choices.end(),
                                   [&](const Stitched& stitched) { return stitched.rows == schedule["rows"]; });
  if (choice == choices.end()) return invalid("a block cannot have ", schedule["rows"], " rows of this group");
  KernelBuilder out(group, machine);
  out.set_launch("stitched", schedule, machine);
  std::vector<Affine> places;
  int64_t inside = 1;
  for (size_t axis = choice->counts.size(); axis-- > 0;) {
    places.insert(places.begin(), choice->counts[axis] == 1
                                      ? fixed(0)
                                      : affine(out.derived(cat("place", axis), {affine(kBlockVar)}, inside,
                                                           axis == 0 ? 0 : choice->counts[axis])));
    inside *= choice->counts[axis];
  }
  Kernel& kernel = out.kernel();
  kernel.grid = inside;
  std::vector<Kernel> stages;
  std::vector<Need> needs;
  for (const StitchKept& value : choice->kept) needs.push_back({value.bytes(), value.first, value.last});
  for (size_t k = 0; k < choice->stages.size(); ++k) {
    WL_ASSIGN_OR_RETURN(Kernel stage, lower_stage(choice->stages[k], k, schedule, machine));
    if (k > 0 && kernel.wave > 0 && (stage.team != kernel.team || stage.teams != kernel.teams))
      return invalid("stage ", k, " has ", stage.teams, " teams of ", stage.team, " threads, those before ",
                     kernel.teams, " of ", kernel.team);
    kernel.team = stage.team;
    kernel.teams = stage.teams;
    if (kernel.wave > 0) kernel.threads = stage.threads;
    kernel.unroll = std::max(kernel.unroll, stage.unroll);
    kernel.accumulators = std::max(kernel.accumulators, stage.accumulators);
    needs.push_back({stage.scratch_bytes(), k, k});
    stages.push_back(std::move(stage));
  }
  place(needs, kernel.wave > 0 ? 128 : 4096);
  std::vector<BufferId> kept;
  for (size_t i = 0; i < choice->kept.size(); ++i) {
    const StitchKept& value = choice->kept[i];
    kept.push_back(static_cast<BufferId>(kernel.buffers.size()));
    kernel.buffers.push_back({value.name, value.dtype, value.shape, Level::kShared, false, false, needs[i].offset});
  }
  for (size_t k = 0; k < stages.size(); ++k)
    if (stages[k].grid > 0)
      Graft(std::move(stages[k]), choice->stages[k], places, kept, needs[choice->kept.size() + k].offset, out).run();
  Kernel whole = out.finish();
  if (whole.wave > 0) {
    insert_barriers(whole);
    const Gpu& gpu = machine.target->gpu;
    if (whole.scratch_bytes() > gpu.block_shared)
      return invalid("a block takes ", whole.scratch_bytes(), " bytes of shared memory; ", machine.target->name,
                     " has ", gpu.block_shared);
  }
  return whole;
}

}  // namespace wl
