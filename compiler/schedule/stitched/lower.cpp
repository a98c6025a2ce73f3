#include <algorithm>

#include "compiler/kernel/barriers.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/inliner.h"
#include "compiler/schedule/launch.h"
#include "compiler/schedule/resident/registers.h"
#include "compiler/schedule/resident/resident.h"
#include "compiler/schedule/single/single.h"
#include "compiler/schedule/stitched/scratch.h"
#include "compiler/schedule/stitched/stitched.h"

namespace wl {
namespace {

// How the stages of a block pass values on in registers; `stages` is empty if they do not.
struct Resident {
  ResidentStages stages;
  GpuResident how;
};

// Lowers one stage. `whole`: the schedule of the whole group.
absl::StatusOr<Kernel> lower_stage(const Stitched& choice, size_t number, const Schedule& whole,
                                   const Resident& resident, const Machine& machine) {
  const Stage& stage = choice.stages[number];
  if (choice.is_resident(number))
    return lower_resident(stage, resident.stages[number - choice.turns.first], resident.how,
                          stage_machine(machine, stage));
  const Machine own = stage_machine(machine, stage);
  const Schedule schedule = stage_schedule(stage_space(stage, machine), number, whole, own.target->is_gpu());
  return lower_single(stage.graph, stage.domain, schedule, own);
}

// Whether a stage has a buffer that matrix instructions read in shared memory; only those are swizzled.
bool has_swizzled_buffer(const Kernel& stage) {
  return std::any_of(stage.buffers.begin(), stage.buffers.end(),
                     [](const KernelBuffer& buffer) { return !(buffer.swizzle == Swizzle()); });
}

// Returns the block's number along each axis on which blocks divide the group. Sets the grid.
std::vector<Affine> places_of_block(const Stitched& choice, KernelBuilder& out) {
  std::vector<Affine> places;
  int64_t inside = 1;
  for (size_t axis = choice.counts.size(); axis-- > 0;) {
    const int64_t count = choice.counts[axis];
    Affine place = fixed(0);
    if (count > 1) place = affine(out.derived(cat("place", axis), {affine(kBlockVar)}, inside, axis == 0 ? 0 : count));
    places.insert(places.begin(), std::move(place));
    inside *= count;
  }
  out.kernel().grid = inside;
  return places;
}

// Adds a stage to the launch of the whole kernel. The launch has as many threads as every stage, and the largest unroll
// factor and the largest number of accumulators of all stages. InvalidArgument if the stages of a GPU kernel differ in
// their threads.
absl::Status join_launch(Kernel& whole, const Kernel& stage, size_t number) {
  if (number > 0 && whole.wave > 0 && (stage.team != whole.team || stage.teams != whole.teams))
    return invalid("all stages need the same threads; stage ", number, " has ", stage.teams, " teams of ", stage.team,
                   " threads, those before ", whole.teams, " of ", whole.team);
  whole.team = stage.team;
  whole.teams = stage.teams;
  if (whole.wave > 0) whole.threads = stage.threads;
  whole.unroll = std::max(whole.unroll, stage.unroll);
  whole.accumulators = std::max(whole.accumulators, stage.accumulators);
  return absl::OkStatus();
}

// The kept values: the buffer of each and, for those that are resident in registers, the layout and slice with which
// stages store and load the value.
struct KeptValues {
  std::vector<BufferId> buffers;
  std::vector<std::optional<std::pair<Layout, Slice>>> resident;
};

// Sets KeptValues::resident: the layout and slice with which resident stages access each value.
void find_resident(const Stitched& choice, const std::vector<Kernel>& stages, KeptValues& kept) {
  kept.resident.resize(choice.kept.size());
  for (size_t k = choice.turns.first; choice.turns.resident && k < stages.size(); ++k)
    each_instr(stages[k].body, [&](const Instr& instr) {
      if (instr.op != InstrOp::kLoad && instr.op != InstrOp::kStore) return;
      const auto number = static_cast<size_t>(instr.slice.buffer);
      if (number >= choice.stages[k].buffers.size() || choice.stages[k].buffers[number].kept < 0) return;
      const TileId tile = instr.op == InstrOp::kStore ? instr.args[0] : instr.result;
      auto& access = kept.resident[static_cast<size_t>(choice.stages[k].buffers[number].kept)];
      if (!access) access = {stages[k].tiles[tile].layout, instr.slice};
    });
}

// Makes a tile of all elements of a value in scratch, and sets `slice` to the value's place.
TileId whole_tile(const Stitched& choice, const KeptValues& kept, size_t number, Slice& slice, KernelBuilder& out,
                  int lanes) {
  const StitchKept& value = choice.kept[number];
  if (kept.resident[number]) slice = kept.resident[number]->second;
  slice.buffer = kept.buffers[number];
  if (kept.resident[number]) return out.tile({value.dtype, kept.resident[number]->first, {}});
  const int64_t count = elements(value.shape);
  slice.strides = {count, 1};
  return out.tile(value.dtype, {1, count}, 1, lanes);
}

// Stores the initial values of kept values that one turn (iteration along the reduced axis) hands on to the next.
void emit_starts(const Stitched& choice, const KeptValues& kept, int lanes, KernelBuilder& out) {
  for (size_t i = 0; i < choice.kept.size(); ++i) {
    const StitchKept& value = choice.kept[i];
    if (!value.start) continue;
    Slice slice;
    const TileId tile = whole_tile(choice, kept, i, slice, out, lanes);
    out.push(constant_instr(tile, value.dtype, *value.start));
    out.push(store_instr(tile, slice, false));
  }
}

// Selects the positions along an axis (StitchKept::counts_along) that emit_counted() computes. Without `of_turn`:
// those that follow from the block's number, computed before the first stage. With `of_turn`: those that change from
// turn to turn (iteration along the reduced axis), computed where a turn begins, for values whose first reader is a
// stage in [first, last).
struct Counting {
  bool of_turn = false;
  size_t first = 0, last = 0;
};
// Computes the positions that `which` describes and stores them to scratch.
void emit_counted(const Stitched& choice, const KeptValues& kept, const std::vector<Affine>& places, Counting which,
                  int lanes, KernelBuilder& out) {
  for (size_t i = 0; i < choice.kept.size(); ++i) {
    const StitchKept& value = choice.kept[i];
    if (value.counts_along < 0) continue;
    if ((value.counts_along == static_cast<int>(choice.counts.size())) != which.of_turn) continue;
    if (which.of_turn && (value.first < which.first || value.first >= which.last)) continue;
    Slice slice;
    Instr count;
    count.op = InstrOp::kIota;
    count.result = whole_tile(choice, kept, i, slice, out, lanes);
    count.axis = slice.strides[1] != 0 ? 1 : 0;  // the axis of the tile along which the elements lie
    count.slice.offset = sum(fixed(0), places[static_cast<size_t>(value.counts_along)], value.counts_step);
    const TileId tile = count.result;
    out.push(std::move(count));
    out.push(store_instr(tile, slice, false));
  }
}

// Returns the trip counts of a block's loop along the reduced axis; the least of them applies. The first is `most`.
// If a block does not need all elements (Turns::visited), the second is (index of the last needed element + `more`) /
// `length`, rounded down.
std::vector<Affine> visits(const Stitched& choice, const std::vector<Affine>& places, int64_t most, int64_t more,
                           int64_t length, const char* name, KernelBuilder& out) {
  const auto& visited = choice.turns.visited;
  std::vector<Affine> trips = {fixed(most)};
  if (visited.axis < 0) return trips;
  const Affine last = sum(fixed(visited.base + more), places[static_cast<size_t>(visited.axis)], visited.step);
  if (last.terms.empty())
    trips.push_back(fixed(last.base / length));
  else
    trips.push_back(affine(out.derived(name, {last}, length)));
  return trips;
}

// Returns the number of turns (iterations along the reduced axis) that a block takes, as trip counts: turns beyond the
// last needed element are left out.
std::vector<Affine> turns_of_block(const Stitched& choice, const std::vector<Affine>& places, KernelBuilder& out) {
  const Stitched::Turns& turns = choice.turns;
  return visits(choice, places, turns.count, turns.length, turns.length, "turns", out);
}

// Returns the trip counts of a loop over the elements that remain after whole turns; the least of them applies. It is
// 1 if the block needs such elements, otherwise 0.
std::vector<Affine> takes_rest(const Stitched& choice, const std::vector<Affine>& places, KernelBuilder& out) {
  const Stitched::Turns& turns = choice.turns;
  return visits(choice, places, 1, 0, turns.length * turns.count, "rest", out);
}

// Copies values that one turn (iteration along the reduced axis) hands on to those that the next turn reads
// (StitchKept::becomes).
void emit_copies(const Stitched& choice, const KeptValues& kept, int lanes, KernelBuilder& out) {
  for (size_t i = 0; i < choice.kept.size(); ++i) {
    const StitchKept& value = choice.kept[i];
    if (value.becomes < 0) continue;
    Slice from, to;
    const TileId tile = whole_tile(choice, kept, i, from, out, lanes);
    to = from;
    to.buffer = kept.buffers[static_cast<size_t>(value.becomes)];
    out.push(load_instr(tile, from));
    out.push(store_instr(tile, to, false));
  }
}

// Ends a turn: copies the values that it hands on to the next turn, and closes the loop over turns, if any (`is_loop`).
void close_turn(const Stitched& choice, const KeptValues& kept, int lanes, bool is_loop, std::vector<Affine>& places,
                KernelBuilder& out) {
  emit_copies(choice, kept, lanes, out);
  if (is_loop) out.close_loop();
  places.back() = fixed(0);
}

// Emits stage after stage, each in a loop over the blocks of its own kernel. `scratch`: for each stage, the offset in
// bytes of its own scratch. Returns the variable of the loop over turns; -1: there is none.
VarId emit_stages(std::vector<Kernel> stages, const Stitched& choice, std::vector<Affine> places, int lanes,
                  const KeptValues& kept, const std::vector<int64_t>& scratch, KernelBuilder& out) {
  const bool gpu = out.kernel().wave > 0;
  int widest = 1;
  for (const Kernel& stage : stages) widest = std::max(widest, stage.vector_lanes(stage.body));
  const Stitched::Turns& turns = choice.turns;
  const bool walks = turns.length > 0;
  if (walks) places.push_back(fixed(0));
  emit_starts(choice, kept, lanes, out);
  emit_counted(choice, kept, places, {}, lanes, out);
  const bool all_take_rest = turns.visited.axis < 0;
  VarId loop = -1;
  for (size_t k = 0; k < stages.size(); ++k) {
    if (walks && k == turns.last) close_turn(choice, kept, lanes, true, places, out);
    if (walks && turns.rest > 0 && k == turns.last + turns.rest)
      close_turn(choice, kept, lanes, !all_take_rest, places, out);
    if (walks && k == turns.first) {
      loop = out.loop_var("part");
      out.open_loop(loop, turns_of_block(choice, places, out));
      places.back() = affine(loop);
      emit_counted(choice, kept, places, {true, turns.first, turns.last}, lanes, out);
    }
    if (walks && turns.rest > 0 && k == turns.last) {
      if (!all_take_rest) out.open_loop(out.loop_var("rest"), takes_rest(choice, places, out));
      places.back() = fixed(turns.count);
      emit_counted(choice, kept, places, {true, turns.last, turns.last + turns.rest}, lanes, out);
    }
    const int64_t blocks = stages[k].grid;
    if (blocks == 0) continue;
    // A loop of a GPU kernel has one vector width, so a stage with narrower vectors than another is in a loop of its
    // own, even if that has one iteration.
    const int width = gpu ? stages[k].vector_lanes(stages[k].body) : 1;
    const bool alone = blocks > 1 || (width > 1 && width < widest && !choice.is_resident(k));
    const VarId turn = alone ? out.loop_var("turn") : -1;
    const KernelInliner inliner(std::move(stages[k]),
                                {choice.stages[k].buffers, turn >= 0 ? affine(turn) : fixed(0), places, kept.buffers,
                                 scratch[k], static_cast<int>(k) + 1},
                                out);
    if (turn >= 0) out.open_loop(turn, {fixed(blocks)});
    // without barriers, since insert_barriers() places those of the whole kernel later
    out.push_all(inliner.body(/*barriers=*/false));
    if (turn >= 0) out.close_loop();
  }
  return loop;
}

// Joins the stages of a block to one kernel. `needs`: the offsets of kept values in their memory, then those
// in scratch of stages. Sets
// kept.buffers, and `turns` to the variable of the loop over turns (-1: there is none).
Kernel emit_whole(const std::vector<Kernel>& stages, const Stitched& choice, const std::vector<Need>& needs,
                  KernelBuilder out, const Machine& machine, KeptValues& kept, VarId* turns) {
  const std::vector<Affine> places = places_of_block(choice, out);
  Kernel& kernel = out.kernel();
  kept.buffers.clear();
  for (size_t i = 0; i < choice.kept.size(); ++i) {
    const StitchKept& value = choice.kept[i];
    kept.buffers.push_back(static_cast<BufferId>(kernel.buffers.size()));
    kernel.buffers.push_back({value.name, value.dtype, value.shape, value.in_scratch ? Level::kShared : Level::kOwn,
                              false, false, needs[i].offset});
  }
  std::vector<int64_t> scratch;
  for (size_t k = 0; k < stages.size(); ++k) scratch.push_back(needs[choice.kept.size() + k].offset);
  const int lanes = kernel.wave > 0 ? kernel.team : machine.target->lanes;
  *turns = emit_stages(stages, choice, places, lanes, kept, scratch, out);
  return out.finish();
}

}  // namespace

absl::StatusOr<Kernel> lower_stitched(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine) {
  const Stitched* choice = named_choice(*domain.stitch, schedule);
  if (choice == nullptr)
    return invalid("this group cannot be divided into blocks of ", schedule[kBlockRows], " rows with turns of ",
                   schedule[kTurnLength], " elements with values in ", value_text(kTurnValues, schedule[kTurnValues]),
                   ", or not with these levels of values");
  KernelBuilder out(group, machine);
  set_launch(out.kernel(), "stitched", schedule, machine);
  const bool gpu = out.kernel().wave > 0;
  Resident resident;
  if (choice->turns.resident) {
    WL_ASSIGN_OR_RETURN(resident.stages, resident_stages(*choice));
    WL_ASSIGN_OR_RETURN(resident.how, resident_layout(*choice, resident.stages, schedule[kTeam], machine));
  }
  std::vector<Kernel> stages;
  std::vector<Need> needs, device;  // of scratch and of device memory; a value's other need is 0 bytes
  for (const StitchKept& value : choice->kept) {
    needs.push_back({value.in_scratch ? value.bytes() : 0, value.first, value.last});
    device.push_back({value.in_scratch ? 0 : value.bytes(), value.first, value.last});
  }
  for (size_t k = 0; k < choice->stages.size(); ++k) {
    WL_ASSIGN_OR_RETURN(Kernel stage, lower_stage(*choice, k, schedule, resident, machine));
    WL_RETURN_IF_ERROR(join_launch(out.kernel(), stage, k));
    needs.push_back({stage.scratch_bytes(), k, k});
    stages.push_back(std::move(stage));
  }
  keep_through_turns(*choice, gpu, needs);
  const bool in_memory = choice->turns.resident || std::any_of(stages.begin(), stages.end(), has_swizzled_buffer);
  place(needs, gpu, in_memory, machine.target->gpu.block_shared);
  place(device, gpu, false, INT64_MAX);
  for (size_t i = 0; i < device.size(); ++i)
    if (!choice->kept[i].in_scratch) needs[i].offset = device[i].offset;
  KeptValues kept;
  find_resident(*choice, stages, kept);
  VarId turns = -1;
  Kernel whole = emit_whole(stages, *choice, needs, out, machine, kept, &turns);
  if (choice->turns.resident) {
    for (const BufferId buffer : kept_in_registers(whole, kept.buffers))
      needs[static_cast<size_t>(buffer - kept.buffers[0])].bytes = 0;
    place(needs, gpu, in_memory, machine.target->gpu.block_shared);
    whole = emit_whole(stages, *choice, needs, std::move(out), machine, kept, &turns);
    whole.copiers = static_cast<int>(schedule[kCopyingWaves]) * whole.wave;
    whole.threads += whole.copiers;
    WL_RETURN_IF_ERROR(finish_resident(whole, kept.buffers, turns, schedule[kTma] != 0, machine));
  }
  if (gpu) {
    insert_barriers(whole);
    const Gpu& limits = machine.target->gpu;
    if (whole.scratch_bytes() > limits.block_shared)
      return invalid("a block takes ", whole.scratch_bytes(), " bytes of shared memory; ", machine.target->name,
                     " has ", limits.block_shared);
  }
  return whole;
}

absl::StatusOr<Kernel> lower_connected(const Graph& group, const Domain& domain, const Schedule& schedule,
                                       const Machine& machine) {
  if (domain.cls != LoopClass::kStitched) return lower_single(group, domain, schedule, machine);
  WL_ASSIGN_OR_RETURN(Kernel kernel, lower_stitched(group, domain, schedule, machine));
  WL_RETURN_IF_ERROR(verify(kernel));
  return kernel;
}

}  // namespace wl
