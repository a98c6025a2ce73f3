// One contraction with elementwise work on its operands and its result, for machines with lanes. A block owns a tile of
// rows (along the last m atom) and columns (along the last n atom) of one batch element; its threads are a grid, each
// with a register tile of accumulators. K is walked in steps: both operands' parts of a step are put into shared
// memory, k outermost, their elementwise work applied; with two stages the next step is fetched into registers while
// this one is computed. What follows the contraction is computed on the accumulators.
#include <algorithm>
#include <bit>

#include "compiler/kernel/barriers.h"
#include "compiler/plan/reads.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/launch.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {
namespace {

int log2_of(int64_t power) {
  return std::countr_zero(static_cast<uint64_t>(power));
}

// n place bits from `first` on.
void take_bits(std::vector<int>& bits, int& first, int n) {
  for (; n > 0; --n) bits.push_back(first++);
}

class TeamContract {
 public:
  TeamContract(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
      : group_(group), domain_(domain), schedule_(schedule), machine_(machine), out_(group, machine) {}

  absl::StatusOr<Kernel> run() {
    if (elements(group_.nodes[domain_.contract].shape) == 0) return unimplemented("a contraction without results");
    WL_RETURN_IF_ERROR(prepare());
    place_block();
    accumulator_ = out_.tile({dtype_, grid_layout(true, true), {}});
    out_.push(fill_instr(accumulator_, 0));
    emit_whole_steps();
    emit_tail();
    emit_epilogue();
    if (!status_.ok()) return status_;
    Kernel kernel = out_.finish();
    insert_barriers(kernel);
    const Gpu& gpu = machine_.target->gpu;
    if (kernel.threads > gpu.block_threads || kernel.scratch_bytes() > gpu.block_shared)
      return invalid(kernel.threads, " threads with ", kernel.scratch_bytes(), " bytes of shared memory; ",
                     machine_.target->name, " has ", gpu.block_threads, " and ", gpu.block_shared);
    return kernel;
  }

 private:
  struct Side {  // one operand
    int position = 0;
    AtomId atom = -1;              // rows or columns; -1: there is one
    int64_t extent = 1, tile = 1;  // along it
    Affine first;                  // of the block
    bool along_k = false;          // read along k, else along the atom
    bool aligned = false;          // whole vectors of what it is read along are
    bool async = false;            // copied without registers
    BufferId buffer = -1;
    int64_t pitch = 1;  // from one k to the next
  };

  absl::Status prepare() {
    set_launch(out_.kernel(), "contract", schedule_, machine_);
    dtype_ = group_.nodes[domain_.contract].dtype;
    if (is_float(dtype_) && size_of(dtype_) < 4) dtype_ = DType::f32;
    const int right = domain_.swapped ? 0 : 1;
    rows_.position = 1 - right;
    columns_.position = right;
    if (!domain_.m.empty()) rows_.atom = domain_.m.back();
    if (!domain_.n.empty()) columns_.atom = domain_.n.back();
    rows_.tile = schedule_[kTileRows];
    columns_.tile = schedule_[kTileColumns];
    step_ = schedule_[kStepK];
    vector_ = schedule_[kVector];
    rows_each_ = schedule_[kThreadRows];
    columns_each_ = schedule_[kThreadColumns];
    stages_ = schedule_[kStages];
    const bool async = schedule_[kAsyncCopies] != 0;
    unroll_ = schedule_[kUnrollK];
    const int64_t down = rows_.tile / rows_each_, across = columns_.tile / columns_each_, threads = down * across;
    if (down == 0 || across == 0 || columns_each_ % vector_ != 0 || threads > machine_.target->gpu.block_threads)
      return invalid("a tile of ", rows_.tile, " x ", columns_.tile, " in pieces of ", rows_each_, " x ", columns_each_,
                     " and vectors of ", vector_);
    Kernel& kernel = out_.kernel();
    kernel.team = kernel.threads = static_cast<int>(threads);
    kernel.teams = 1;
    // A wave is about as wide as it is tall, so that it reads little of either operand.
    const int lanes = log2_of(std::min<int64_t>(kernel.wave, threads)), rows = log2_of(down), columns = log2_of(across);
    const int wide = std::min(columns, std::max(lanes - rows, 3));
    int bit = 0;
    take_bits(column_bits_, bit, std::min(wide, lanes));
    take_bits(row_bits_, bit, lanes - bit);
    take_bits(column_bits_, bit, columns - static_cast<int>(column_bits_.size()));
    take_bits(row_bits_, bit, rows - static_cast<int>(row_bits_.size()));

    choose_k();
    // More slots than steps would never be filled.
    if (async) stages_ = std::max<int64_t>(1, std::min(stages_, outer_ * whole_));
    for (Side* side : {&rows_, &columns_}) {
      if (side->atom >= 0) side->extent = domain_.atoms[side->atom].extent;
      side->along_k = reads_along_k(*side);
      side->aligned = aligned_along(domain_, reads_of(domain_, domain_.contract, side->position),
                                    side->along_k ? k_atom_ : side->atom, vector_);
      side->async = async && stages_ > 1 && copies_operand(group_, domain_, side->position);
      // Elements of one k go to neighbouring banks; what is read along k is put there across them.
      side->pitch = side->tile + (side->along_k ? vector_ : 0);
      side->buffer = out_.shared(side == &rows_ ? "a" : "b", dtype_, {stages_, step_, side->pitch});
    }
    return absl::OkStatus();
  }

  // K is stepped through along the atom that loads are contiguous along, or the longest; the others are loops around
  // it.
  void choose_k() {
    int64_t best = -1;
    for (AtomId atom : domain_.reduced) {
      int64_t score = domain_.atoms[atom].extent;
      for (const Side* side : {&rows_, &columns_})
        for (const Access& access : reads_of(domain_, domain_.contract, side->position))
          if (access.strides[atom] == 1 && score >= vector_) score += int64_t{1} << 40;
      if (score > best) {
        best = score;
        k_atom_ = atom;
      }
    }
    for (AtomId atom : domain_.reduced)
      if (atom != k_atom_) k_outer_.push_back(atom);
    k_extent_ = k_atom_ < 0 ? 1 : domain_.atoms[k_atom_].extent;
    whole_ = k_extent_ / step_;
    outer_ = extent_of(domain_, k_outer_);
  }

  bool reads_along_k(const Side& side) const {
    int along = 0;
    for (const Access& access : reads_of(domain_, domain_.contract, side.position)) {
      if (k_atom_ >= 0 && access.strides[k_atom_] == 1 && k_extent_ > 1) ++along;
      if (side.extent > 1 && access.strides[side.atom] == 1) --along;
    }
    return along > 0;
  }

  void place_block() {
    block_.assign(domain_.atoms.size(), fixed(0));
    int64_t inside = 1;
    const auto digit = [&](const std::string& name, int64_t extent) {
      const Affine out = extent == 1 ? fixed(0) : affine(out_.derived(name, {affine(kBlockVar)}, inside, extent));
      inside *= extent;
      return out;
    };
    const auto tiles = [&](Side& side, const std::string& name) {
      side.first = sum(fixed(0), digit(name, (side.extent + side.tile - 1) / side.tile), side.tile);
      if (side.atom >= 0) block_[side.atom] = side.first;
    };
    tiles(columns_, "tile_column");
    tiles(rows_, "tile_row");
    for (const std::vector<AtomId>* list : {&domain_.m, &domain_.n, &domain_.batch})
      for (size_t i = list->size(); i-- > 0;)
        if (const AtomId a = (*list)[i]; a != rows_.atom && a != columns_.atom)
          block_[a] = digit(domain_.atoms[a].name, domain_.atoms[a].extent);
    out_.kernel().grid = inside;
  }

  // Of the tile that the accumulators are: each thread has `vector_` neighbouring columns and as many rows, repeated.
  Layout grid_layout(bool rows, bool columns, char row_kind = 'r') const {
    Deal down, across;
    if (rows) down = {rows_each_ % vector_ == 0 ? vector_ : 1, row_kind, row_bits_};
    if (columns) across = {vector_, 'v', column_bits_};
    return dealt_layout({rows ? rows_.tile : 1, columns ? columns_.tile : 1}, {down, across}, out_team(),
                        machine_.target->gpu.wave);
  }
  int out_team() const { return static_cast<int>((rows_.tile / rows_each_) * (columns_.tile / columns_each_)); }

  // How a step's part of an operand is fetched: vectors, then threads, along what it is read along.
  Layout fetch_layout(const Side& side, bool slow, bool fast, bool vectors = true) const {
    const int64_t extents[] = {side.along_k ? side.tile : step_, side.along_k ? step_ : side.tile};
    const bool wide = vectors && extents[1] >= vector_ && side.aligned;
    const int64_t vector = wide ? vector_ : 1;
    int threads = log2_of(out_team()), bit = 0;
    Deal down, across{vector, 'v', {}};
    const int along = std::min(threads, log2_of(extents[1] / vector));
    take_bits(across.bits, bit, along);
    take_bits(down.bits, bit, std::min(threads - along, log2_of(extents[0])));
    return dealt_layout({slow ? extents[0] : 1, fast ? extents[1] : 1}, {slow ? down : Deal{}, fast ? across : Deal{}},
                        out_team(), machine_.target->gpu.wave);
  }

  // The part of K that a step is about.
  Place k_place(const Affine& step, int64_t inside, int64_t first) {
    Place at = block_;
    const bool alone = outer_ == 1;
    if (k_atom_ >= 0) {
      at[k_atom_] = fixed(first);
      if (inside > 1) at[k_atom_] = sum(fixed(first), alone ? step : digit_of("k", step, 1, inside), step_);
    }
    for (size_t i = k_outer_.size(); i-- > 0;) {
      const int64_t extent = domain_.atoms[k_outer_[i]].extent;
      if (extent == 1) continue;
      at[k_outer_[i]] = digit_of(domain_.atoms[k_outer_[i]].name, step, inside, i == 0 ? 0 : extent);
      inside *= extent;
    }
    return at;
  }
  Affine digit_of(const std::string& name, const Affine& of, int64_t div, int64_t mod) {
    if (of.terms.empty()) return fixed(mod == 0 ? of.base / div : of.base / div % mod);
    if (div == 1 && mod == 0) return of;
    return affine(out_.derived(name, {of}, div, mod));
  }

  // Both operands at a step, in registers. masked: K may end before the step does.
  std::vector<TileId> fetch(const Place& at, bool masked, bool but_async = false) {
    std::vector<TileId> tiles;
    for (const Side* side : {&rows_, &columns_}) {
      if (but_async && side->async) {
        tiles.push_back(-1);
        continue;
      }
      const int slow = side->along_k ? 0 : 1;  // the axis of the tile along the side's own atom
      TileExpr expr{group_,
                    domain_,
                    out_,
                    at,
                    slow == 0 ? side->atom : k_atom_,
                    slow == 0 ? k_atom_ : side->atom,
                    side->tile,
                    step_,
                    1,
                    {},
                    false,
                    {},
                    nullptr,
                    {}};
      if (slow == 1) std::swap(expr.extent0, expr.extent1);
      expr.layout = [this, side](bool down, bool across) { return fetch_layout(*side, down, across); };
      const absl::StatusOr<TileId> value = expr.operand(domain_.contract, side->position);
      if (!value.ok()) {
        fail(value.status());
        return {};
      }
      for (Instr& instr : expr.code) {
        if (instr.op != InstrOp::kLoad) continue;
        const auto along = [](int axis) { return std::vector<int64_t>{axis == 0 ? 1 : 0, axis}; };
        if (side->extent % side->tile != 0) instr.guards.push_back({side->first, along(slow), side->extent});
        if (masked) instr.guards.push_back({k_atom_ < 0 ? fixed(0) : at[k_atom_], along(1 - slow), k_extent_});
      }
      out_.push_all(std::move(expr.code));
      TileId tile = *value;
      if (out_.kernel().tiles[tile].dtype != dtype_) {
        tile = out_.like(tile, dtype_);
        out_.push(copy_instr(tile, *value, dtype_));
      }
      tiles.push_back(tile);
    }
    return tiles;
  }

  Slice slot_of(const Side& side, const Affine& slot) const {
    Slice to;
    to.buffer = side.buffer;
    to.offset = sum(fixed(0), slot, step_ * side.pitch);
    to.strides = side.along_k ? std::vector<int64_t>{1, side.pitch} : std::vector<int64_t>{side.pitch, 1};
    return to;
  }

  void put(const std::vector<TileId>& tiles, const Affine& slot) {
    if (tiles.empty()) return;
    for (const Side* side : {&rows_, &columns_})
      if (const TileId tile = tiles[side == &rows_ ? 0 : 1]; tile >= 0)
        out_.push(store_instr(tile, slot_of(*side, slot), false));
  }

  // Sends what can go without registers on its way; beyond the last step there is nothing to send.
  void send(const Place& at, const Affine& step, int64_t steps, const Affine& slot) {
    for (const Side* side : {&rows_, &columns_}) {
      if (!side->async) continue;
      const Access& access = domain_.operands[domain_.contract][side->position].access;
      const AtomId slow = side->along_k ? side->atom : k_atom_, fast = side->along_k ? k_atom_ : side->atom;
      // What lies across k in shared memory goes there element by element; so does what is not contiguous.
      const bool vectors = !side->along_k && fast >= 0 && access.strides[fast] == 1 &&
                           (side->extent % side->tile == 0 || side->extent % vector_ == 0);
      Instr instr;
      instr.op = InstrOp::kAsyncLoad;
      instr.args = {out_.tile({dtype_, fetch_layout(*side, true, true, vectors), {}})};
      instr.slice = slice_at(out_.input_buffer(access.input), access, at, slow, fast);
      instr.into = slot_of(*side, slot);
      if (side->extent % side->tile != 0)
        instr.guards.push_back(
            {side->first, side->along_k ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{0, 1}, side->extent});
      if (!step.terms.empty()) instr.guards.push_back({step, {0, 0}, steps});
      out_.push(std::move(instr));
    }
    out_.push(commit_instr());
  }

  // Outer products of what is in a slot, for `depth` of K.
  void compute(const Affine& slot, int64_t depth) {
    const int64_t together = depth % unroll_ == 0 ? unroll_ : 1;
    Affine k;
    VarId var = -1;
    if (depth > together) {
      var = out_.loop_var("kk");
      out_.open_loop(var, {fixed(depth / together)});
      k = affine(var, together);
    }
    const bool vectors = vector_ > 1 && rows_each_ % vector_ == 0;
    const TileId read = out_.tile({dtype_, grid_layout(true, false, vectors ? 'v' : 'r'), {}});
    const TileId a = vectors ? out_.tile({dtype_, grid_layout(true, false), {}}) : read;
    const TileId b = out_.tile({dtype_, grid_layout(false, true), {}});
    for (int64_t i = 0; i < together; ++i) {
      for (const Side* side : {&rows_, &columns_}) {
        Slice from;
        from.buffer = side->buffer;
        from.offset = sum(sum(fixed(i * side->pitch), slot, step_ * side->pitch), k, side->pitch);
        from.strides = {side == &rows_ ? 1 : 0, side == &rows_ ? 0 : 1};
        out_.push(load_instr(side == &rows_ ? read : b, std::move(from)));
      }
      if (vectors) {
        Instr convert;
        convert.op = InstrOp::kConvert;
        convert.result = a;
        convert.args = {read};
        out_.push(std::move(convert));
      }
      out_.push(map_instr(accumulator_, Op::fma, dtype_, {a, b, accumulator_}));
    }
    if (var >= 0) out_.close_loop();
  }

  void emit_whole_steps() {
    const int64_t total = outer_ * whole_;
    if (total == 0) return;
    if (total == 1) {
      put(fetch(k_place(fixed(0), whole_, 0), false), fixed(0));
      return compute(fixed(0), step_);
    }
    if (rows_.async || columns_.async) return emit_ring(total);
    const bool ahead = stages_ > 1;
    if (ahead) put(fetch(k_place(fixed(0), whole_, 0), false), fixed(0));
    const VarId step = out_.loop_var("step");
    // The last step fetches itself again: nothing uses it.
    const Affine now = affine(step);
    const Affine next = ahead ? affine(out_.derived("next", {affine(step, 1, 1), fixed(total - 1)})) : now;
    const Affine slot = ahead ? affine(out_.derived("slot", {now}, 1, stages_)) : fixed(0);
    const Affine next_slot = ahead ? affine(out_.derived("next_slot", {affine(step, 1, 1)}, 1, stages_)) : fixed(0);
    out_.open_loop(step, {fixed(total)});
    const std::vector<TileId> tiles = fetch(k_place(next, whole_, 0), false);
    if (!ahead) put(tiles, slot);
    compute(slot, step_);
    if (ahead) put(tiles, next_slot);
    out_.close_loop();
  }

  // As many steps on their way as there are slots but the one that is computed (ALCOP's multi-stage pipeline).
  void emit_ring(int64_t total) {
    for (int64_t i = 0; i + 1 < stages_; ++i) {
      const Place at = k_place(fixed(i), whole_, 0);
      put(fetch(at, false, true), fixed(i));
      send(at, fixed(i), total, fixed(i));
    }
    const VarId step = out_.loop_var("step");
    const Affine later = affine(step, 1, stages_ - 1);
    const Affine slot = affine(out_.derived("slot", {affine(step)}, 1, stages_));
    const Affine next_slot = affine(out_.derived("next_slot", {later}, 1, stages_));
    out_.open_loop(step, {fixed(total)});
    out_.push(wait_instr(static_cast<int>(stages_) - 2));
    send(k_place(later, whole_, 0), later, total, next_slot);
    std::vector<TileId> tiles;
    if (!rows_.async || !columns_.async) {
      const Affine last = affine(out_.derived("next", {later, fixed(total - 1)}));
      tiles = fetch(k_place(last, whole_, 0), false, true);
    }
    compute(slot, step_);
    put(tiles, next_slot);
    out_.close_loop();
    out_.push(wait_instr(0));
  }

  void emit_tail() {
    const int64_t left = k_extent_ - whole_ * step_;
    if (left == 0 || outer_ == 0) return;
    VarId var = -1;
    if (outer_ > 1) {
      var = out_.loop_var("last");
      out_.open_loop(var, {fixed(outer_)});
    }
    put(fetch(k_place(var < 0 ? fixed(0) : affine(var), 1, whole_ * step_), true), fixed(0));
    compute(fixed(0), left);
    if (var >= 0) out_.close_loop();
  }

  void emit_epilogue() {
    TileId value = accumulator_;
    std::vector<Instr> code;
    if (const DType dtype = group_.nodes[domain_.contract].dtype; dtype != dtype_) {
      value = out_.like(accumulator_, dtype);
      code.push_back(copy_instr(value, accumulator_, dtype));
    }
    std::vector<std::vector<Affine>> bound;
    if (columns_.extent % columns_.tile != 0) bound = {{}, {sum(fixed(columns_.extent), columns_.first, -1)}};
    TileExpr expr{group_,     domain_,        out_, block_, rows_.atom, columns_.atom,
                  rows_.tile, columns_.tile,  1,    bound,  false,      {{domain_.contract, value}},
                  nullptr,    std::move(code)};
    expr.layout = [this](bool rows, bool columns) { return grid_layout(rows, columns); };
    for (const Domain::Store& store : domain_.stores) {
      if (store.source < 0) return fail(unimplemented("a copied output beside a contraction"));
      const absl::StatusOr<TileId> result = expr.value(store.source);
      if (!result.ok()) return fail(result.status());
      const BufferId to = out_.output_buffer(store.output);
      expr.code.push_back(store_instr(*result, slice_at(to, store.access, block_, rows_.atom, columns_.atom), false));
      out_.kernel().buffers[to].once = std::all_of(domain_.parallel.begin(), domain_.parallel.end(), [&](AtomId a) {
        return domain_.atoms[a].extent == 1 || store.access.moves_along(a);
      });
    }
    if (rows_.extent % rows_.tile != 0)
      for (Instr& instr : expr.code)
        if (instr.op == InstrOp::kLoad || instr.op == InstrOp::kStore)
          instr.guards.push_back({rows_.first, {1, 0}, rows_.extent});
    out_.push_all(std::move(expr.code));
  }

  void fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const Graph& group_;
  const Domain& domain_;
  const Schedule& schedule_;
  const Machine& machine_;
  KernelBuilder out_;
  absl::Status status_;
  DType dtype_ = DType::f32;  // of the accumulators and in shared memory
  Side rows_, columns_;
  int64_t rows_each_ = 1, columns_each_ = 1, vector_ = 1, stages_ = 1, unroll_ = 1;
  std::vector<int> row_bits_, column_bits_;  // of a thread's place, as the register tiles are dealt
  AtomId k_atom_ = -1;
  std::vector<AtomId> k_outer_;
  int64_t k_extent_ = 1, step_ = 1, whole_ = 0, outer_ = 1;  // whole_: steps along k_atom_ that K fills
  Place block_;
  TileId accumulator_ = -1;
};

}  // namespace

absl::StatusOr<Kernel> lower_gpu_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                           const Machine& machine) {
  return TeamContract(group, domain, schedule, machine).run();
}

}  // namespace wl
