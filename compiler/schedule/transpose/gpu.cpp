// Transposes on GPUs: a block owns a square of two atoms (loops of the group). The output is contiguous along the
// vectorised axis, a transposed input along the second atom. Such an input is read along the second atom, stored to
// shared memory with a pitch of one more than the square's side, and read back along the vectorised axis.
#include <algorithm>

#include "compiler/kernel/barriers.h"
#include "compiler/schedule/launch.h"
#include "compiler/schedule/transpose/transpose.h"

namespace wl {
namespace {

constexpr int64_t kSide = kStagedSide;

class StagedTranspose {
 public:
  StagedTranspose(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
      : group_(group), domain_(domain), out_(group, machine) {
    set_launch(out_.kernel(), "transpose", schedule, machine);
    streaming_ = schedule[kStreamStores] != 0;
    each_ = kSide / out_.kernel().teams;
  }

  absl::StatusOr<Kernel> run() {
    Kernel& kernel = out_.kernel();
    if (kernel.team != kSide || kSide % kernel.teams != 0)
      return invalid("a square of ", kSide, " is staged by teams of ", kSide, " that share it evenly, not by ",
                     kernel.teams, " of ", kernel.team);
    place_.assign(domain_.atoms.size(), fixed(0));
    kernel.grid = 1;
    const Affine across = digit(domain_.vector), down = digit(domain_.second);
    for (size_t i = domain_.parallel.size(); i-- > 0;) {
      const AtomId a = domain_.parallel[i];
      if (a == domain_.second || a == domain_.vector) continue;
      place_[a] =
          affine(out_.derived(domain_.atoms[a].name, {affine(kBlockVar)}, kernel.grid, domain_.atoms[a].extent));
      kernel.grid *= domain_.atoms[a].extent;
    }
    // The place of the team's rows of the square; the team's lanes run along the vectorised axis.
    Place mine = place_;
    mine[domain_.vector] = across;
    mine[domain_.second] = sum(down, affine(kTeamVar, each_));
    TileExpr expr{group_, domain_, out_, mine, {{domain_.second, each_}, {domain_.vector, kSide}}};
    expr.lanes = static_cast<int>(kSide);
    expr.bound = bound(domain_.vector, across);
    expr.load = [&](const Access& access) { return staged(access, across, down, expr.bound); };
    for (const Domain::Store& store : domain_.stores) {
      WL_ASSIGN_OR_RETURN(const TileId value, expr.value(store.source));
      expr.code.push_back(store_instr(
          value, slice_at(out_.output_buffer(store.output), store.access, mine, {domain_.second, domain_.vector}),
          streaming_));
      out_.kernel().buffers[out_.output_buffer(store.output)].once =
          std::all_of(domain_.parallel.begin(), domain_.parallel.end(),
                      [&](AtomId a) { return domain_.atoms[a].extent == 1 || store.access.moves_along(a); });
    }
    guard_rows(expr.code, mine[domain_.second], domain_.second);
    out_.push_all(std::move(staging_));
    out_.push_all(std::move(expr.code));
    Kernel done = out_.finish();
    insert_barriers(done);
    return done;
  }

 private:
  // Returns where a block's square begins along an atom. Also multiplies the grid by the number of squares along the
  // atom.
  Affine digit(AtomId atom) {
    const int64_t squares = (domain_.atoms[atom].extent + kSide - 1) / kSide;
    const VarId var =
        out_.derived(cat("square_", domain_.atoms[atom].name), {affine(kBlockVar)}, out_.kernel().grid, squares);
    out_.kernel().grid *= squares;
    return affine(var, kSide);
  }

  std::vector<std::vector<Affine>> bound(AtomId atom, const Affine& from) const {
    if (domain_.atoms[atom].extent % kSide == 0) return {};
    return {{}, {sum(fixed(domain_.atoms[atom].extent), from, -1)}};
  }

  // Adds guards to loads and stores of global memory, so that none accesses rows beyond the atom's extent. `first`: the
  // index of a team's first row along the atom.
  void guard_rows(std::vector<Instr>& code, const Affine& first, AtomId atom) {
    if (domain_.atoms[atom].extent % kSide == 0) return;
    for (Instr& instr : code) {
      if (instr.op != InstrOp::kLoad && instr.op != InstrOp::kStore) continue;
      if (out_.kernel().buffers[instr.slice.buffer].level == Level::kShared) continue;
      instr.guards.push_back({first, {1, 0}, domain_.atoms[atom].extent});
    }
  }

  // Returns the tile of a transposed input (contiguous along the second atom), read back from shared memory. Returns -1
  // if the input is not transposed, so that it is loaded where it is needed.
  TileId staged(const Access& access, const Affine& across, const Affine& down,
                const std::vector<std::vector<Affine>>& row_bound) {
    if (access.strides[domain_.second] != 1 || access.strides[domain_.vector] == 0) return -1;
    for (const auto& [known, tile] : known_)
      if (known == access) return tile;
    const DType dtype = group_.nodes[access.input].dtype;
    Place from = place_;
    from[domain_.second] = down;
    from[domain_.vector] = sum(across, affine(kTeamVar, each_));
    std::vector<Instr> code;
    const TileId column = out_.team_tile(dtype, {each_, kSide}, 1, 1, bound(domain_.second, down));
    code.push_back(
        load_instr(column, slice_at(out_.input_buffer(access.input), access, from, {domain_.vector, domain_.second})));
    guard_rows(code, from[domain_.vector], domain_.vector);
    Slice slice;
    slice.buffer = out_.shared(cat("square", known_.size()), dtype, {kSide, kSide + 1});
    slice.offset = affine(kTeamVar, each_);
    slice.strides = {1, kSide + 1};
    code.push_back(store_instr(column, slice, false));
    const TileId row = out_.team_tile(dtype, {each_, kSide}, 1, 1, row_bound);
    slice.offset = affine(kTeamVar, each_ * (kSide + 1));
    slice.strides = {kSide + 1, 1};
    known_.emplace_back(access, row);
    // The instructions that store inputs come before those that read them back, so that one barrier is enough.
    staging_.insert(staging_.begin() + static_cast<int64_t>(put_), code.begin(), code.end());
    put_ += code.size();
    Instr back = load_instr(row, slice);
    if (domain_.atoms[domain_.second].extent % kSide != 0)
      back.guards.push_back({sum(down, affine(kTeamVar, each_)), {1, 0}, domain_.atoms[domain_.second].extent});
    staging_.push_back(std::move(back));
    return row;
  }

  const Graph& group_;
  const Domain& domain_;
  KernelBuilder out_;
  bool streaming_ = false;
  int64_t each_ = 1;  // the number of rows of the square that each team owns
  Place place_;
  std::vector<Instr> staging_;  // instructions that move inputs through shared memory
  size_t put_ = 0;              // number of instructions, the first ones of staging_, that fill shared memory
  std::vector<std::pair<Access, TileId>> known_;  // the inputs staged so far, with the tiles that are read back
};

}  // namespace

absl::StatusOr<Kernel> lower_gpu_transpose(const Graph& group, const Domain& domain, const Schedule& schedule,
                                           const Machine& machine) {
  return StagedTranspose(group, domain, schedule, machine).run();
}

}  // namespace wl
