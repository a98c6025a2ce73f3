#include "compiler/kernel/verify.h"

#include <algorithm>
#include <set>

#include "compiler/base/records.h"
#include "compiler/kernel/barriers.h"

namespace wl {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  absl::Status run() {
    if (kernel_.vars.empty() || kernel_.vars[0].kind != Var::Kind::kBlock)
      return invalid("kernel ", kernel_.name, ": variable 0 is not the block");
    WL_RETURN_IF_ERROR(check_scratch());
    WL_RETURN_IF_ERROR(check_cluster());
    WL_RETURN_IF_ERROR(check_tiles());
    WL_RETURN_IF_ERROR(check_teams());
    scope_ = {0};
    if (kernel_.wave > 0) scope_.insert(kTeamVar);
    const std::vector<Pass> passes = kernel_.passes();
    for (const Pass& pass : passes) WL_RETURN_IF_ERROR(check_body(pass.body, {}));
    for (const Instr& instr : kernel_.body)
      if (instr.op == InstrOp::kPass) WL_RETURN_IF_ERROR(check_last(instr));
    WL_RETURN_IF_ERROR(check_passes(passes));
    if (kernel_.wave == 0) return absl::OkStatus();
    WL_RETURN_IF_ERROR(check_vectors(kernel_.body));
    return check_barriers(kernel_);
  }

 private:
  absl::Status fail(const Instr& instr, const std::string& what) const {
    return absl::InternalError(cat("kernel ", kernel_.name, ": ", what, ": ", print(kernel_, instr)));
  }

  absl::Status check_teams() const {
    if (kernel_.wave == 0) return absl::OkStatus();
    const auto power = [](int n) { return n > 0 && (n & (n - 1)) == 0; };
    if (!power(kernel_.wave) || !power(kernel_.team) || kernel_.threads != kernel_.team * kernel_.teams)
      return absl::InternalError(cat("kernel ", kernel_.name, ": ", kernel_.threads, " threads are not ", kernel_.teams,
                                     " teams of ", kernel_.team, ", a power of two"));
    if (kernel_.vars.size() < 2 || kernel_.vars[kTeamVar].kind != Var::Kind::kTeam)
      return absl::InternalError(cat("kernel ", kernel_.name, ": variable 1 is not the team"));
    return absl::OkStatus();
  }

  // A team's threads hold a tile, each element once (or all of them, where the layout lacks their bits).
  absl::Status check_lanes(size_t tile) const {
    int64_t threads = 1;
    for (const Layout::Base& base : kernel_.tiles[tile].layout.bases)
      if (base.kind == 'l' || base.kind == 'u') threads *= 2;
    if (threads > (kernel_.wave == 0 ? 1 : kernel_.team))
      return absl::InternalError(cat("kernel ", kernel_.name, ": %", tile, " has more lanes than a team"));
    return absl::OkStatus();
  }

  // With lanes vectors have one width, that of the widest in a loop and the loops inside it: so are they called.
  absl::Status check_vectors(std::span<const Instr> body) const {
    const int width = kernel_.vector_lanes(body);
    for (const Instr& instr : body) {
      if (const int lanes = instr.result < 0 ? 1 : kernel_.tiles[instr.result].layout.lanes();
          lanes > 1 && lanes != width)
        return fail(instr, cat("others of its loop have vectors of ", width));
      WL_RETURN_IF_ERROR(check_vectors(instr.body));
    }
    return absl::OkStatus();
  }

  // Where in the body a buffer is first and last met, by instruction outside of all loops but sections.
  struct Life {
    size_t first = SIZE_MAX, last = 0;
  };
  void live(std::span<const Instr> body, size_t& at, std::vector<Life>& lives) const {
    for (const Instr& instr : body)
      if (section_of(instr)) {
        live(instr.body, at, lives);
      } else {
        live(instr, at++, lives);
      }
  }
  void live(const Instr& instr, size_t at, std::vector<Life>& lives) const {
    for (const Instr& inner : instr.body) live(inner, at, lives);
    if (instr.slice.buffer < 0 || instr.slice.buffer >= static_cast<BufferId>(lives.size())) return;
    Life& life = lives[instr.slice.buffer];
    life.first = std::min(life.first, at);
    life.last = at;
  }

  // Buffers share memory only when one is done with before the other is met.
  absl::Status check_scratch() const {
    std::vector<Life> lives(kernel_.buffers.size());
    size_t at = 0;
    live(kernel_.body, at, lives);
    for (BufferId a = 0; a < static_cast<BufferId>(kernel_.buffers.size()); ++a) {
      const KernelBuffer& buffer = kernel_.buffers[a];
      if (buffer.level != Level::kGlobal && buffer.byte_offset % 64 != 0)
        return absl::InternalError(
            cat("scratch ", buffer.name, " starts at byte ", buffer.byte_offset, ", not a multiple of 64"));
      for (BufferId b = 0; b < a; ++b)
        if (kernel_.overlap(a, b) &&
            (buffer.level == Level::kWork || (lives[a].first <= lives[b].last && lives[b].first <= lives[a].last)))
          return absl::InternalError(cat("scratch buffers overlap: ", kernel_.buffers[b].name, " and ", buffer.name));
    }
    return absl::OkStatus();
  }

  // Between a store to a cluster buffer and a load from it, and after the last load, all of the cluster meet.
  absl::Status check_meetings(std::span<const Instr> body, std::set<BufferId>& stored, bool& loaded) const {
    for (const Instr& instr : body) {
      if (instr.op == InstrOp::kMeet) {
        stored.clear();
        loaded = false;
      }
      const bool touches = instr.op == InstrOp::kLoad || instr.op == InstrOp::kGather || instr.op == InstrOp::kStore;
      if (touches && kernel_.buffers[instr.slice.buffer].level == Level::kCluster) {
        if (instr.op == InstrOp::kStore) {
          stored.insert(instr.slice.buffer);
        } else {
          if (stored.contains(instr.slice.buffer)) return fail(instr, "the cluster has not met since this was stored");
          loaded = true;
        }
      }
      WL_RETURN_IF_ERROR(check_meetings(instr.body, stored, loaded));
    }
    return absl::OkStatus();
  }

  absl::Status check_cluster() const {
    if (kernel_.cluster < 1 || kernel_.grid % kernel_.cluster != 0)
      return absl::InternalError(
          cat("kernel ", kernel_.name, ": ", kernel_.grid, " blocks are not clusters of ", kernel_.cluster));
    for (const KernelBuffer& b : kernel_.buffers)
      if (b.level == Level::kCluster && (b.shape.empty() || b.shape[0] != kernel_.cluster))
        return absl::InternalError(
            cat("kernel ", kernel_.name, ": ", b.name, " has no part for each block of a cluster"));
    return absl::OkStatus();
  }

  // Which buffers a pass loads, and stores.
  void accesses(std::span<const Instr> body, std::set<BufferId>& loads, std::set<BufferId>& stores) const {
    for (const Instr& instr : body) {
      if (instr.op == InstrOp::kLoad || instr.op == InstrOp::kGather) loads.insert(instr.slice.buffer);
      if (instr.op == InstrOp::kStore) stores.insert(instr.slice.buffer);
      if (instr.op == InstrOp::kAsyncLoad) {
        loads.insert(instr.slice.buffer);
        stores.insert(instr.into.buffer);
      }
      accesses(instr.body, loads, stores);
    }
  }

  absl::Status check_last(const Instr& pass) const {
    if (pass.pending == 0)
      return pass.slice.buffer < 0 ? absl::OkStatus() : fail(pass, "nobody is told who is the last of a sweep");
    if (pass.pending < 2 || kernel_.grid % pass.pending != 0 || kernel_.grid / pass.pending > kCounterBytes / 4)
      return fail(pass, cat(kernel_.grid, " blocks do not count each other so"));
    if (kernel_.cluster > 1) return fail(pass, "blocks of a cluster do not count each other");
    if (kernel_.wave == 0) return pass.slice.buffer < 0 ? absl::OkStatus() : fail(pass, "a thread alone tells nobody");
    const auto buffers = static_cast<BufferId>(kernel_.buffers.size());
    if (pass.slice.buffer < 0 || pass.slice.buffer >= buffers || !pass.slice.strides.empty() ||
        pass.slice.offset != Affine{} || kernel_.buffers[pass.slice.buffer].level != Level::kShared ||
        kernel_.buffers[pass.slice.buffer].dtype != DType::u32 || kernel_.buffers[pass.slice.buffer].shape.empty())
      return fail(pass, "threads are told in the first element of a shared u32 buffer");
    return absl::OkStatus();
  }

  // Scratch holds what its own pass stored; the workspace what earlier ones did, as blocks of a pass come in any order.
  absl::Status check_passes(const std::vector<Pass>& passes) const {
    std::set<BufferId> before;
    for (size_t i = 0; i < passes.size(); ++i) {
      std::set<BufferId> stored;
      bool loaded = false;
      WL_RETURN_IF_ERROR(check_meetings(passes[i].body, stored, loaded));
      if (loaded)
        return absl::InternalError(cat("kernel ", kernel_.name, ": blocks leave while others load from them"));
      std::set<BufferId> loads, stores;
      accesses(passes[i].body, loads, stores);
      for (BufferId buffer : loads) {
        const KernelBuffer& b = kernel_.buffers[buffer];
        if ((b.level == Level::kShared || b.level == Level::kCluster) && !stores.contains(buffer))
          return absl::InternalError(
              cat("kernel ", kernel_.name, ": pass ", i, " loads ", b.name, ", and stores nothing there"));
        if (b.level == Level::kWork && (stores.contains(buffer) || !before.contains(buffer)))
          return absl::InternalError(cat("kernel ", kernel_.name, ": pass ", i, " loads ", b.name,
                                         ", which an earlier pass must have stored, alone"));
      }
      before.merge(stores);
    }
    const bool work = kernel_.work_bytes() != 0;
    if (work && passes.size() == 1)
      return absl::InternalError(cat("kernel ", kernel_.name, ": a workspace for one pass"));
    return absl::OkStatus();
  }

  absl::Status check_tiles() const {
    for (size_t i = 0; i < kernel_.tiles.size(); ++i) {
      const Layout& layout = kernel_.tiles[i].layout;
      const size_t rank = layout.shape.size(), bounds = kernel_.tiles[i].bound.size();
      if (layout.bits.size() != rank || layout.outer.size() != rank || (bounds != 0 && bounds != rank))
        return absl::InternalError(cat("kernel ", kernel_.name, ": %", i, " has no layout and bound for every axis"));
      WL_RETURN_IF_ERROR(check_lanes(i));
    }
    return absl::OkStatus();
  }

  bool axes_exist(const Instr& instr) const {
    const int rank = kernel_.tiles[instr.args[0]].layout.rank();
    return rank == kernel_.tiles[instr.result].layout.rank() &&
           std::all_of(instr.axes.begin(), instr.axes.end(), [&](int axis) { return axis >= 0 && axis < rank; });
  }

  bool in_scope(VarId var) const {
    if (var < 0 || var >= static_cast<VarId>(kernel_.vars.size())) return false;
    if (kernel_.vars[var].kind != Var::Kind::kDerived) return scope_.contains(var);
    return !kernel_.vars[var].of.empty() && kernel_.vars[var].div > 0 &&
           std::all_of(kernel_.vars[var].of.begin(), kernel_.vars[var].of.end(),
                       [&](const Affine& a) { return in_scope(a); });
  }
  bool in_scope(const Affine& affine) const {
    return std::all_of(affine.terms.begin(), affine.terms.end(),
                       [&](const auto& term) { return in_scope(term.first); });
  }

  bool broadcasts(TileId from, TileId to) const {
    const std::vector<int64_t>&a = kernel_.tiles[from].layout.shape, &b = kernel_.tiles[to].layout.shape;
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i] && a[i] != 1) return false;
    return true;
  }

  // A copy on its way is made of pieces of 4, 8 or 16 bytes (the printer knows which), neighbours at both ends.
  absl::Status check_async(const Instr& instr) const {
    if (kernel_.wave == 0) return fail(instr, "copies on their way are for machines with lanes");
    const TileId tile = instr.args[0];
    WL_RETURN_IF_ERROR(check_slice(instr, instr.slice, tile));
    WL_RETURN_IF_ERROR(check_slice(instr, instr.into, tile));
    const KernelBuffer &from = kernel_.buffers[instr.slice.buffer], &to = kernel_.buffers[instr.into.buffer];
    if (from.level != Level::kGlobal || from.output || to.level != Level::kShared)
      return fail(instr, "a copy is of an input, into shared memory");
    const Layout& layout = kernel_.tiles[tile].layout;
    if (layout.lanes() > 1 &&
        (instr.slice.strides[layout.vector_axis()] != 1 || instr.into.strides[layout.vector_axis()] != 1))
      return fail(instr, "the elements of a copy's vectors are neighbours");
    return absl::OkStatus();
  }

  absl::Status check_slice(const Instr& instr, TileId tile) const { return check_slice(instr, instr.slice, tile); }
  absl::Status check_slice(const Instr& instr, const Slice& slice, TileId tile) const {
    if (slice.buffer < 0 || slice.buffer >= static_cast<BufferId>(kernel_.buffers.size()))
      return fail(instr, "no such buffer");
    if (!in_scope(slice.offset)) return fail(instr, "the address uses a variable that is not in scope");
    if (static_cast<int>(slice.strides.size()) != kernel_.tiles[tile].layout.rank())
      return fail(instr, "the slice needs one stride per axis of the tile");
    const KernelBuffer& buffer = kernel_.buffers[slice.buffer];
    if (instr.op != InstrOp::kPrefetch && buffer.dtype != kernel_.tiles[tile].dtype)
      return fail(instr, "the tile's dtype is not the buffer's");
    if (instr.op == InstrOp::kStore && buffer.level == Level::kGlobal && !buffer.output)
      return fail(instr, "stores to an input");
    if (instr.op == InstrOp::kLoad && instr.streaming && (buffer.level == Level::kShared || buffer.output))
      return fail(instr, "a streaming load is of an input");
    return absl::OkStatus();
  }

  static bool moves_along_vectors(const SliceGuard& guard, const Layout& layout) {
    return layout.lanes() > 1 && guard.strides[layout.vector_axis()] != 0;
  }

  absl::Status check_guards(const Instr& instr) const {
    for (const SliceGuard& guard : instr.guards) {
      if (!in_scope(guard.at)) return fail(instr, "a guard uses a variable that is not in scope");
      const TileId tile = instr.result < 0 ? instr.args[0] : instr.result;
      if (static_cast<int>(guard.strides.size()) != kernel_.tiles[tile].layout.rank())
        return fail(instr, "a guard needs one stride per axis of the tile");
      if (instr.op == InstrOp::kStore && moves_along_vectors(guard, kernel_.tiles[tile].layout))
        return fail(instr, "a store's guard does not move along its vectors: that is the tile's bound");
    }
    if (instr.result < 0 || instr.args.empty()) return absl::OkStatus();
    const Tile &other = kernel_.tiles[instr.args[0]], &mine = kernel_.tiles[instr.result];
    if (instr.args.size() > 1 || instr.guards.empty() || other.dtype != mine.dtype || !(other.layout == mine.layout))
      return fail(instr, "what a load gives elsewhere is one tile of its own type");
    return absl::OkStatus();
  }

  absl::Status check_expr(const Instr& instr) const {
    if (instr.expr.empty()) return fail(instr, "the map has no expression");
    for (size_t i = 0; i < instr.expr.size(); ++i) {
      const ExprNode& node = instr.expr[i];
      if (node.kind == ExprNode::Kind::kArg && (node.arg < 0 || node.arg >= static_cast<int>(instr.args.size())))
        return fail(instr, "the expression names an argument that the map has not");
      if (node.kind != ExprNode::Kind::kOp) continue;
      if (class_of(node.op) != OpClass::kElementwise) return fail(instr, cat(name_of(node.op), " is not elementwise"));
      for (int k = 0; k < 3; ++k) {
        const bool needed = k < info(node.op).arity;
        if (needed != (node.operands[k] >= 0) || node.operands[k] >= static_cast<int>(i))
          return fail(instr, cat("operands of ", name_of(node.op)));
      }
    }
    if (instr.expr.back().dtype != kernel_.tiles[instr.result].dtype)
      return fail(instr, "the expression's dtype is not the tile's");
    return absl::OkStatus();
  }

  absl::Status check_body(std::span<const Instr> body, std::set<TileId> defined) {
    for (const Instr& instr : body) {
      if (instr.op == InstrOp::kLoop) {
        if (instr.trips.empty() ||
            !std::all_of(instr.trips.begin(), instr.trips.end(), [&](const Affine& a) { return in_scope(a); }))
          return fail(instr, "the loop's trip count uses a variable that is not in scope");
        if (instr.var <= 0 || instr.var >= static_cast<VarId>(kernel_.vars.size()) ||
            kernel_.vars[instr.var].kind != Var::Kind::kLoop)
          return fail(instr, "no such loop variable");
        if (scope_.contains(instr.var)) return fail(instr, "the loop's variable is in use");
        scope_.insert(instr.var);
        WL_RETURN_IF_ERROR(check_body(instr.body, defined));
        scope_.erase(instr.var);
        continue;
      }
      const auto known = [&](TileId t) { return t >= 0 && t < static_cast<TileId>(kernel_.tiles.size()); };
      for (TileId arg : instr.args) {
        if (!known(arg)) return fail(instr, "no such tile");
        if (instr.op != InstrOp::kPrefetch && instr.op != InstrOp::kAsyncLoad && !defined.contains(arg))
          return fail(instr, cat("%", arg, " is used before it is defined"));
      }
      if (instr.result >= 0 && !known(instr.result)) return fail(instr, "no such tile");
      switch (instr.op) {
        case InstrOp::kLoad:
          WL_RETURN_IF_ERROR(check_guards(instr));
          [[fallthrough]];
        case InstrOp::kGather:
          WL_RETURN_IF_ERROR(check_slice(instr, instr.result));
          break;
        case InstrOp::kStore:
          WL_RETURN_IF_ERROR(check_guards(instr));
          [[fallthrough]];
        case InstrOp::kPrefetch:
          WL_RETURN_IF_ERROR(check_slice(instr, instr.args[0]));
          break;
        case InstrOp::kMap:
          WL_RETURN_IF_ERROR(check_expr(instr));
          for (TileId arg : instr.args)
            if (!broadcasts(arg, instr.result)) return fail(instr, cat("%", arg, " does not broadcast to the result"));
          break;
        case InstrOp::kFold:
          if (!axes_exist(instr)) return fail(instr, "no such axis");
          if (!defined.contains(instr.result)) return fail(instr, "a fold adds to a tile that exists");
          if (kernel_.tiles[instr.result].layout.lanes() != kernel_.tiles[instr.args[0]].layout.lanes())
            return fail(instr, "a fold keeps its lanes");
          break;
        case InstrOp::kCross:
          if (!axes_exist(instr)) return fail(instr, "no such axis");
          if (kernel_.tiles[instr.result].layout.lanes() != 1) return fail(instr, "a cross leaves no lanes");
          break;
        case InstrOp::kConvert:
          if (kernel_.tiles[instr.result].layout.shape != kernel_.tiles[instr.args[0]].layout.shape)
            return fail(instr, "a convert keeps the shape");
          break;
        case InstrOp::kIota:
          if (instr.axis < 0 || instr.axis >= kernel_.tiles[instr.result].layout.rank())
            return fail(instr, "no such axis");
          if (!in_scope(instr.slice.offset)) return fail(instr, "the start uses a variable that is not in scope");
          break;
        case InstrOp::kAsyncLoad:
          WL_RETURN_IF_ERROR(check_async(instr));
          WL_RETURN_IF_ERROR(check_guards(instr));
          break;
        case InstrOp::kMeet:
          if (kernel_.cluster == 1) return fail(instr, "a block alone meets nobody");
          break;
        case InstrOp::kPass:
          return fail(instr, "a pass inside a loop");
        case InstrOp::kFill:
        case InstrOp::kFence:
        case InstrOp::kBarrier:
        case InstrOp::kCommit:
        case InstrOp::kWait:
        case InstrOp::kLoop:
          break;
      }
      if (instr.result >= 0) defined.insert(instr.result);
    }
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  std::set<VarId> scope_;
};

}  // namespace

absl::Status verify(const Kernel& kernel) {
  return Verifier(kernel).run();
}

}  // namespace wl
