// Lowers a stage without a contraction whose values are resident in registers: each value is one tile of all its
// elements, in the layout of a matrix instruction's sums.
#include <algorithm>

#include "compiler/domain/phases.h"
#include "compiler/schedule/launch.h"
#include "compiler/schedule/resident/resident.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {
namespace {

// The layout that a tile has after the registers of each thread along an axis have been combined into one.
Layout folded(const Layout& layout, int axis) {
  Layout out = layout;
  out.bases.clear();
  int bits = 0;
  const int low = axis == 0 ? 0 : layout.bits[0];
  for (const Layout::Base& base : layout.bases) {
    const uint64_t along = layout.part(base, axis);
    if (along == 0) {
      out.bases.push_back(base);
    } else if (base.kind != 'r') {
      out.bases.push_back({base.kind, uint64_t{1} << (low + bits++)});
    }
  }
  // In the vector of a base, the coordinate bits of axis 1 lie above those of axis 0. So they move down by as many bits
  // as axis 0 has lost.
  const int gone = layout.bits[axis] - bits;
  if (axis == 0)
    for (Layout::Base& base : out.bases)
      if (base.vector >> layout.bits[0] != 0) base.vector >>= gone;
  out.bits[axis] = bits;
  out.shape[axis] = int64_t{1} << bits;
  out.outer[axis] = {};
  return out;
}

class ResidentNest {
 public:
  ResidentNest(const Graph& group, const Domain& domain, const ResidentStage& loops, const GpuResident& how,
               const Machine& machine)
      : group_(group),
        domain_(domain),
        loops_(loops),
        how_(how),
        machine_(machine),
        across_(1 - how.rows_axis),
        out_(group, machine),
        place_(domain.atoms.size(), fixed(0)) {}

  absl::StatusOr<Kernel> run() {
    set_launch(out_.kernel(), "held", Schedule(), machine_);
    Kernel& kernel = out_.kernel();
    kernel.team = kernel.threads = how_.waves * kernel.wave;
    const int64_t columns =
        loops_.columns < 0 ? fragments_of(how_.matrix).c.shape[across_] : domain_.atoms[loops_.columns].extent;
    WL_ASSIGN_OR_RETURN(layout_, resident_tile_layout(how_, domain_.atoms[loops_.rows].extent, columns));
    TileExpr wide = expression(true), narrow = expression(false);
    std::vector<int> uses(group_.nodes.size(), 0);
    for (NodeId id = 0; id < static_cast<NodeId>(group_.nodes.size()); ++id)
      for (const Domain::Operand& operand : domain_.operands[id])
        if (operand.source >= 0) ++uses[operand.source];
    for (const Domain::Store& store : domain_.stores)
      if (store.source >= 0) ++uses[store.source];
    for (NodeId id = 0; id < static_cast<NodeId>(group_.nodes.size()); ++id) {
      if (domain_.operands[id].empty()) continue;
      TileId tile = -1;
      if (is_reduction(group_, id)) {
        WL_ASSIGN_OR_RETURN(tile, reduced(id, wide));
      } else if (class_of(group_.nodes[id].op) != OpClass::kElementwise || (is_wide(id) && uses[id] < 2)) {
        continue;  // this value gets no tile, but is computed within the expressions that use it
      } else {
        TileExpr& expr = is_wide(id) ? wide : narrow;
        WL_ASSIGN_OR_RETURN(tile, expr.value(id));
        flush(expr);
      }
      wide.known[id] = narrow.known[id] = tile;
    }
    for (const Domain::Store& store : domain_.stores) WL_RETURN_IF_ERROR(stored(store, wide, narrow));
    return out_.finish();
  }

 private:
  // Whether a value has columns; a value without columns has one element for each row.
  bool is_wide(NodeId id) const { return holds(domain_.varies[id], loops_.columns); }

  TileExpr expression(bool is_wide) {
    std::vector<TileLoop> loops = {{loops_.rows, domain_.atoms[loops_.rows].extent},
                                   is_wide ? TileLoop{loops_.columns, layout_.shape[across_]} : TileLoop{}};
    if (how_.rows_axis == 1) std::swap(loops[0], loops[1]);
    TileExpr made{group_, domain_, out_, place_, std::move(loops)};
    made.layout = [this, is_wide](std::vector<bool> keeps) {
      if (!is_wide) keeps[static_cast<size_t>(across_)] = false;
      return projected(layout_, keeps);
    };
    return made;
  }

  void flush(TileExpr& expr) {
    out_.push_all(std::move(expr.code));
    expr.code.clear();
  }

  absl::StatusOr<TileId> reduced(NodeId id, TileExpr& wide) {
    if (loops_.columns < 0) return invalid("%", id, ": there are no columns to reduce");
    const Node& node = group_.nodes[id];
    WL_ASSIGN_OR_RETURN(const TileId elements, wide.operand(id, 0));
    flush(wide);
    const auto scope = out_.values_of(id);
    const Op combine = combine_of(node.op);
    const Layout partial = folded(layout_, across_);
    std::vector<bool> keeps = {true, true};
    keeps[static_cast<size_t>(across_)] = false;
    const TileId sum = out_.tile({node.dtype, partial, {}}),
                 result = out_.tile({node.dtype, projected(partial, keeps), {}});
    out_.push(fill_instr(sum, identity_of(combine, node.dtype)));
    Instr fold = fold_instr(sum, elements, combine), cross = cross_instr(result, sum, combine);
    fold.axes = cross.axes = {across_};
    out_.push(std::move(fold));
    out_.push(std::move(cross));
    return result;
  }

  absl::Status stored(const Domain::Store& store, TileExpr& wide, TileExpr& narrow) {
    if (store.source < 0) return unimplemented("a copied output beside values in registers");
    TileExpr& expr = is_wide(store.source) ? wide : narrow;
    WL_ASSIGN_OR_RETURN(const TileId value, expr.value(store.source));
    flush(expr);
    const BufferId to = out_.output_buffer(store.output);
    out_.push(store_instr(value, slice_at(to, store.access, place_, expr.axes()), false));
    out_.kernel().buffers[to].once = std::all_of(domain_.parallel.begin(), domain_.parallel.end(), [&](AtomId atom) {
      return domain_.atoms[atom].extent == 1 || store.access.moves_along(atom);
    });
    return absl::OkStatus();
  }

  const Graph& group_;
  const Domain& domain_;
  const ResidentStage loops_;
  const GpuResident how_;
  const Machine& machine_;
  const int across_;  // number of the axis of tiles that runs along the columns
  KernelBuilder out_;
  const Place place_;
  Layout layout_;
};

}  // namespace

absl::StatusOr<Kernel> lower_resident_nest(const Graph& group, const Domain& domain, const ResidentStage& loops,
                                           const GpuResident& how, const Machine& machine) {
  return ResidentNest(group, domain, loops, how, machine).run();
}

}  // namespace wl
