#include "compiler/schedule/resident/resident.h"

#include <algorithm>
#include <optional>

#include "compiler/domain/reads.h"
#include "compiler/kernel/tile_places.h"

namespace wl {
namespace {

constexpr int64_t kMostFragments = 2;  // the most fragments along the rows that one wave has
// Registers per thread for addresses, for values with one element per row, and for loads in flight.
constexpr int64_t kBesideResident = 32;

// The strides, in elements, of a value that one stage hands on to later ones: along its rows and along its columns.
struct Strides {
  int64_t rows = 0, columns = 0;
  bool operator==(const Strides&) const = default;
};

// Returns the atoms (loops of the group) with more than one iteration.
std::vector<AtomId> loops_of(const Domain& domain) {
  std::vector<AtomId> out;
  for (AtomId atom = 0; atom < static_cast<AtomId>(domain.atoms.size()); ++atom)
    if (domain.atoms[atom].extent > 1) out.push_back(atom);
  return out;
}

// Finds the loops of the rows and of the columns in every stage. They follow from the strides of those values that the
// stage reads and that earlier stages have stored. If a contraction reads no such value, its rows are those of the
// operand that is the same in every turn (iteration along the reduced axis).
class Loops {
 public:
  explicit Loops(const Stitched& choice) : choice_(choice), known_(choice.kept.size()) {}

  absl::StatusOr<ResidentStages> run() {
    ResidentStages out;
    for (size_t k = choice_.turns.first; k < choice_.stages.size(); ++k) {
      const Stage& stage = choice_.stages[k];
      const absl::StatusOr<ResidentStage> loops = stage.domain.contract >= 0 ? contraction(stage) : nest(stage);
      if (!loops.ok()) return invalid("stage ", k, ": ", std::string(loops.status().message()));
      WL_RETURN_IF_ERROR(learn_stores(stage, *loops));
      out.push_back(*loops);
    }
    return out;
  }

 private:
  const Stage::Buffer& buffer_of(const Stage& stage, NodeId input) const {
    const std::vector<NodeId> inputs = stage.graph.inputs();
    return stage.buffers[static_cast<size_t>(std::find(inputs.begin(), inputs.end(), input) - inputs.begin())];
  }
  // Returns the strides of a value that an earlier stage has stored; nullopt if the access reads something else.
  std::optional<Strides> known(const Stage& stage, const Access& access) const {
    const int kept = access.input < 0 ? -1 : buffer_of(stage, access.input).kept;
    return kept < 0 ? std::nullopt : known_[static_cast<size_t>(kept)];
  }
  // Whether an access reads other elements in the next turn (iteration along the reduced axis), or reads a value that
  // each turn computes anew.
  bool moves_with_turns(const Stage& stage, const Access& access) const {
    if (access.input < 0) return false;
    const Stage::Buffer& buffer = buffer_of(stage, access.input);
    if (buffer.kept < 0) return !buffer.shift.empty() && buffer.shift.back() != 0;
    const StitchKept& kept = choice_.kept[static_cast<size_t>(buffer.kept)];
    return kept.counts_along == static_cast<int>(choice_.counts.size());
  }

  absl::StatusOr<ResidentStage> contraction(const Stage& stage) const {
    const Domain& domain = stage.domain;
    ResidentStage out;
    for (int position : {0, 1}) {
      const std::vector<Access> reads = reads_of(domain, domain.contract, position);
      const auto reads_known = [&](const Access& access) { return known(stage, access).has_value(); };
      const auto turns = [&](const Access& access) { return moves_with_turns(stage, access); };
      if (std::any_of(reads.begin(), reads.end(), reads_known)) {
        out.operand = position;
        break;
      }
      if (std::none_of(reads.begin(), reads.end(), turns) && out.operand < 0) out.operand = position;
    }
    if (out.operand < 0) return invalid("both operands of the product change from turn to turn; one must stay");
    const bool right = out.operand == domain.right_operand();
    const std::vector<AtomId>&with = right ? domain.n : domain.m, &without = right ? domain.m : domain.n;
    if (with.empty() || without.empty()) return invalid("the product has no rows or no columns");
    out.rows = with.back();
    out.columns = without.back();
    return out;
  }

  absl::StatusOr<ResidentStage> nest(const Stage& stage) const {
    const Domain& domain = stage.domain;
    if (domain.atoms.empty() || domain.cls == LoopClass::kStitched)
      return invalid("the stage has no loop nest of its own");
    const std::vector<AtomId> loops = loops_of(domain);
    ResidentStage out;
    for (NodeId id = 0; id < static_cast<NodeId>(domain.operands.size()); ++id)
      for (const Domain::Operand& operand : domain.operands[id]) {
        if (!operand.is_direct()) continue;
        const std::optional<Strides> strides = known(stage, operand.access);
        if (!strides) continue;
        for (const AtomId atom : loops)
          if (operand.access.strides[atom] == strides->rows && (out.rows < 0 || out.rows == atom)) out.rows = atom;
      }
    if (out.rows < 0 || loops.size() > 2) return invalid("the stage's loops are not rows and columns");
    for (const AtomId atom : loops)
      if (atom != out.rows) out.columns = atom;
    for (const AtomId atom : domain.reduced)
      if (domain.atoms[atom].extent > 1 && atom != out.columns)
        return invalid("the stage reduces rows; only columns can be reduced in registers");
    return out;
  }

  // Records the strides of the values that a stage stores. InvalidArgument if the stage stores a value without rows,
  // or if another stage has stored the value with other strides.
  absl::Status learn_stores(const Stage& stage, const ResidentStage& loops) {
    for (const Domain::Store& store : stage.domain.stores) {
      if (store.source < 0) return invalid("the stage stores an input, which is not in registers");
      const Stage::Buffer& buffer = stage.buffers[stage.graph.inputs().size() + static_cast<size_t>(store.output)];
      if (buffer.kept < 0) continue;
      const auto along = [&](AtomId atom) { return atom < 0 ? 0 : store.access.strides[atom]; };
      const Strides strides{along(loops.rows), along(loops.columns)};
      const StitchKept& kept = choice_.kept[static_cast<size_t>(buffer.kept)];
      for (const int number : {buffer.kept, kept.becomes}) {
        if (number < 0) continue;
        std::optional<Strides>& known = known_[static_cast<size_t>(number)];
        if (strides.rows == 0 || (known && !(*known == strides)))
          return invalid("the stage stores a value that does not move along the rows");
        known = strides;
      }
    }
    return absl::OkStatus();
  }

  const Stitched& choice_;
  std::vector<std::optional<Strides>> known_;  // for each kept value: its strides; nullopt: not known yet
};

// Whether a matrix instruction can multiply sums of `rows` rows in the registers that hold them: each thread must
// hold, among its sums, all elements of the words that the instruction takes from that thread.
bool multiplies_in_place(const GpuResident& resident, int64_t rows, int wave) {
  const absl::StatusOr<Layout> sums = resident_tile_layout(resident, rows, info(resident.matrix).k);
  if (!sums.ok()) return false;
  const Layout words = resident_words(resident, rows);
  const int team = resident.waves * wave;
  const std::vector<int64_t> at =
      packed_positions(TilePlaces(*sums, team, wave), TilePlaces(words, team, wave), 1 - resident.rows_axis, 0,
                       elements_of_word(info(resident.matrix).left));
  return std::all_of(at.begin(), at.end(), [](int64_t place) { return place >= 0; });
}

// The number of registers that a thread needs: for the sums of all contractions, for the words of the operands that
// have the rows, and for everything else (kBesideResident).
int64_t registers_for(const Stitched& choice, const ResidentStages& stages, const GpuResident& resident,
                      int64_t threads) {
  int64_t elements = 0;
  for (size_t k = 0; k < stages.size(); ++k) {
    const Domain& domain = choice.stages[choice.turns.first + k].domain;
    if (domain.contract < 0) continue;
    const auto extent = [&](AtomId atom) { return domain.atoms[atom].extent; };
    const int64_t depth = extent_of(domain, domain.reduced) / elements_of_word(info(resident.matrix).left);
    elements += extent(stages[k].rows) * (extent(stages[k].columns) + depth);
  }
  return elements / threads + kBesideResident;
}

// Whether all contractions can be lowered if their values stay in registers as `resident` says.
bool fits(const Stitched& choice, const ResidentStages& stages, const GpuResident& resident, const Machine& machine) {
  for (size_t k = 0; k < stages.size(); ++k) {
    const Stage& stage = choice.stages[choice.turns.first + k];
    if (stage.domain.contract >= 0 && !lower_resident(stage, stages[k], resident, stage_machine(machine, stage)).ok())
      return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<ResidentStages> resident_stages(const Stitched& choice) {
  return Loops(choice).run();
}

absl::StatusOr<GpuResident> resident_layout(const Stitched& choice, const ResidentStages& stages, int64_t threads,
                                            const Machine& machine) {
  const Gpu& gpu = machine.target->gpu;
  const int wave = gpu.wave;
  if (threads < wave) return invalid(threads, " threads do not fill one warp");
  const int64_t most = std::min<int64_t>(gpu.lane_registers, gpu.unit_registers / threads);
  for (size_t k = 0; k < stages.size(); ++k) {
    const Stage& stage = choice.stages[choice.turns.first + k];
    if (stage.domain.contract < 0) continue;
    const int64_t rows = stage.domain.atoms[stages[k].rows].extent;
    const Node& product = stage.graph.nodes[stage.domain.contract];
    const auto dtype = [&](size_t side) { return stage.graph.nodes[product.operands[side]].dtype; };
    for (const MatrixOp op : matrices_for(dtype(0), dtype(1), machine.target->features, /*resident=*/true))
      for (const int axis : {0, 1}) {
        const GpuResident resident{op, axis, 0, static_cast<int>(threads / wave)};
        const Layout& sums = fragments_of(op).c;
        const int64_t each = sums.shape[axis] * resident.waves / sums.count('u');
        if (each == 0 || elements_of_word(info(op).left) != 2 || (holds_left(op) && axis != 0)) continue;
        if (rows % each != 0 || rows / each > kMostFragments || !multiplies_in_place(resident, rows, wave)) continue;
        if (registers_for(choice, stages, resident, threads) <= most && fits(choice, stages, resident, machine))
          return resident;
      }
  }
  return invalid("no matrix instruction of ", machine.target->name, " keeps sums of ", choice.rows,
                 " rows in the registers of ", threads, " threads");
}

absl::StatusOr<Kernel> lower_resident(const Stage& stage, const ResidentStage& loops, GpuResident how,
                                      const Machine& machine) {
  if (stage.domain.contract < 0) return lower_resident_nest(stage.graph, stage.domain, loops, how, machine);
  how.operand = loops.operand;
  return lower_gpu_resident(stage.graph, stage.domain, machine, how);
}

}  // namespace wl
