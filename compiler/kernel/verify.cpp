#include "compiler/kernel/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/base/records.h"
#include "compiler/kernel/barriers.h"
#include "compiler/kernel/buffer_checks.h"
#include "compiler/kernel/roles.h"
#include "compiler/kernel/shared_factors.h"
#include "compiler/kernel/tile_checks.h"
#include "compiler/kernel/tile_registers.h"
#include "compiler/target/target.h"

namespace wl {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel), shared_factors_(shared_factors(kernel)) {}

  absl::Status run() {
    if (kernel_.vars.empty() || kernel_.vars[0].kind != Var::Kind::kBlock)
      return invalid("kernel ", kernel_.name, ": variable 0 is not the block");
    WL_RETURN_IF_ERROR(check_buffers(kernel_));
    WL_RETURN_IF_ERROR(check_tiles(kernel_));
    WL_RETURN_IF_ERROR(check_teams());
    scope_ = {0};
    if (kernel_.wave > 0) scope_.insert(kTeamVar);
    for (const Pass& pass : kernel_.passes()) WL_RETURN_IF_ERROR(check_body(pass.body, {}));
    for (const Instr& instr : kernel_.body)
      if (instr.op == InstrOp::kPass) WL_RETURN_IF_ERROR(operand_last(instr));
    WL_RETURN_IF_ERROR(check_passes(kernel_));
    if (kernel_.wave == 0) return check_tile_registers(kernel_);
    WL_RETURN_IF_ERROR(check_shared_factor_order(kernel_));
    WL_RETURN_IF_ERROR(check_roles(kernel_));
    return check_barriers(kernel_);
  }

 private:
  absl::Status fail(const Instr& instr, const std::string& what) const {
    return absl::InternalError(cat("kernel ", kernel_.name, ": ", what, ": ", print(kernel_, instr)));
  }

  absl::Status with_problem(const Instr& instr, const std::string& what) const {
    return what.empty() ? absl::OkStatus() : fail(instr, what);
  }

  absl::Status check_teams() const {
    if (kernel_.wave == 0) return absl::OkStatus();
    const auto power = [](int n) { return n > 0 && (n & (n - 1)) == 0; };
    if (!power(kernel_.wave) || !power(kernel_.team) ||
        kernel_.threads != kernel_.team * kernel_.teams + kernel_.copiers)
      return absl::InternalError(cat("kernel ", kernel_.name, ": ", kernel_.threads, " threads are not ", kernel_.teams,
                                     " teams of ", kernel_.team, ", a power of two"));
    if (kernel_.vars.size() < 2 || kernel_.vars[kTeamVar].kind != Var::Kind::kTeam)
      return absl::InternalError(cat("kernel ", kernel_.name, ": variable 1 is not the team"));
    return absl::OkStatus();
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
    return read_problem(kernel_.tiles[from].layout, kernel_.tiles[to].layout).empty();
  }

  bool is_tile(TileId id) const { return id >= 0 && id < static_cast<TileId>(kernel_.tiles.size()); }
  const Tile& tile_of(TileId id) const { return kernel_.tiles[id]; }
  const Layout& layout_of(TileId id) const { return kernel_.tiles[id].layout; }

  // The checks that each kind of operand must pass.

  absl::Status operand_tile(const Instr&) const { return absl::OkStatus(); }   // check_tiles_of() checks the tile
  absl::Status operand_shape(const Instr&) const { return absl::OkStatus(); }  // check_tiles_of() checks the tile
  absl::Status operand_slice(const Instr& instr) const {
    WL_RETURN_IF_ERROR(check_slice(instr, instr.slice));
    const InstrInfo& row = info(instr.op);
    const KernelBuffer& buffer = kernel_.buffers[instr.slice.buffer];
    const DType dtype = row.has(Operand::element) ? instr.elements[0] : tile_of(space_tile(instr)).dtype;
    if (row.slice != SliceUse::kHints && buffer.dtype != dtype)
      return fail(instr, "the tile's dtype is not the buffer's");
    if (row.stores() && buffer.level == Level::kGlobal && !buffer.output) return fail(instr, "stores to an input");
    return absl::OkStatus();
  }
  absl::Status operand_into(const Instr& instr) const {
    WL_RETURN_IF_ERROR(check_slice(instr, instr.into));
    if (kernel_.buffers[instr.into.buffer].dtype != tile_of(space_tile(instr)).dtype)
      return fail(instr, "the tile's dtype is not the buffer's");
    return absl::OkStatus();
  }
  absl::Status operand_streaming(const Instr& instr) const {
    const KernelBuffer& buffer = kernel_.buffers[instr.slice.buffer];
    if (info(instr.op).loads() && instr.streaming && (info(buffer.level).of_block || buffer.output))
      return fail(instr, "a streaming load is of an input");
    return absl::OkStatus();
  }
  absl::Status operand_guards(const Instr& instr) const {
    const Layout& layout = tile_of(space_tile(instr)).layout;
    for (const SliceGuard& guard : instr.guards) {
      if (!in_scope(guard.at)) return fail(instr, "a guard uses a variable that is not in scope");
      if (static_cast<int>(guard.strides.size()) != layout.rank())
        return fail(instr, "a guard needs one stride per axis of the tile");
      if (info(instr.op).stores() && layout.lanes() > 1 && guard.strides[layout.vector_axis()] != 0)
        return fail(instr, "a store's guard does not move along its vectors: that is the tile's bound");
    }
    return absl::OkStatus();
  }
  absl::Status operand_otherwise(const Instr& instr) const {
    if (instr.args.empty()) return absl::OkStatus();
    const Tile &other = tile_of(instr.args[0]), &mine = tile_of(instr.result);
    if (instr.args.size() > 1 || instr.guards.empty() || other.dtype != mine.dtype || !(other.layout == mine.layout))
      return fail(instr, "what a load gives elsewhere is one tile of its own type");
    return absl::OkStatus();
  }
  absl::Status operand_index(const Instr& instr) const {
    return broadcasts(instr.args[0], instr.result) ? absl::OkStatus() : fail(instr, "the index does not broadcast");
  }
  absl::Status operand_level(const Instr&) const { return absl::OkStatus(); }
  absl::Status operand_expr(const Instr& instr) const {
    if (instr.expr.empty()) return fail(instr, "the map has no expression");
    for (size_t i = 0; i < instr.expr.size(); ++i) {
      const ExprNode& node = instr.expr[i];
      if (node.kind == ExprNode::Kind::kArg && (node.arg < 0 || node.arg >= static_cast<int>(instr.args.size())))
        return fail(instr, "the expression names an argument that the map does not have");
      if (node.rounded && (node.kind != ExprNode::Kind::kOp || node.op != Op::exp || node.dtype == DType::f64))
        return fail(instr, "only an exp of at most 32 bits can be a rounded one");
      if (node.kind != ExprNode::Kind::kOp) continue;
      if (class_of(node.op) != OpClass::kElementwise) return fail(instr, cat(name_of(node.op), " is not elementwise"));
      for (int k = 0; k < 3; ++k)
        if ((k < info(node.op).arity) != (node.operands[k] >= 0) || node.operands[k] >= static_cast<int>(i))
          return fail(instr, cat("operands of ", name_of(node.op)));
    }
    if (instr.expr.back().dtype != tile_of(instr.result).dtype)
      return fail(instr, "the expression's dtype is not the tile's");
    for (TileId arg : instr.args)
      if (!broadcasts(arg, instr.result)) return fail(instr, cat("%", arg, " does not broadcast to the result"));
    return absl::OkStatus();
  }
  absl::Status operand_combine(const Instr& instr) const {
    if (!is_combine(instr.combine)) return fail(instr, cat(name_of(instr.combine), " combines no values"));
    return absl::OkStatus();
  }
  absl::Status operand_element(const Instr& instr) const {
    return elements_of_word(instr.elements[0]) > 0
               ? absl::OkStatus()
               : fail(instr, cat("no words are made of ", name_of(instr.elements[0])));
  }
  absl::Status operand_part(const Instr& instr) const {
    return instr.part >= 0 && instr.part < elements_of_word(instr.elements[0])
               ? absl::OkStatus()
               : fail(instr, cat("a word has no element ", instr.part));
  }
  absl::Status operand_gap(const Instr& instr) const {
    return instr.gap > 0 ? absl::OkStatus() : fail(instr, "the elements of a word follow each other");
  }
  absl::Status operand_factors(const Instr& instr) const {
    if (sum_of_dot(instr.elements[0], instr.elements[1]) != tile_of(instr.result).dtype)
      return fail(instr, cat("no sums of products of ", name_of(instr.elements[0]), " and ", name_of(instr.elements[1]),
                             " are ", name_of(tile_of(instr.result).dtype)));
    return absl::OkStatus();
  }
  absl::Status operand_matrix(const Instr& instr) const {
    const absl::StatusOr<const Target*> target = target_named(kernel_.target);
    const uint32_t features = target.ok() ? (*target)->features : 0, wanted = info(instr.matrix).feature;
    return (features & wanted) == wanted ? absl::OkStatus() : fail(instr, cat(kernel_.target, " has no such matrices"));
  }
  absl::Status operand_tiles(const Instr&) const { return absl::OkStatus(); }  // check_tiles_of() checks the tiles
  absl::Status operand_axes(const Instr& instr) const {
    const int rank = tile_of(instr.args[0]).layout.rank();
    const auto exists = [rank](int axis) { return axis >= 0 && axis < rank; };
    if (rank != tile_of(instr.result).layout.rank() || !std::all_of(instr.axes.begin(), instr.axes.end(), exists))
      return fail(instr, "no such axis");
    return absl::OkStatus();
  }
  absl::Status operand_value(const Instr&) const { return absl::OkStatus(); }
  absl::Status operand_start(const Instr& instr) const {
    if (instr.axis < 0 || instr.axis >= tile_of(instr.result).layout.rank()) return fail(instr, "no such axis");
    if (!in_scope(instr.slice.offset)) return fail(instr, "the start uses a variable that is not in scope");
    return absl::OkStatus();
  }
  absl::Status operand_through(const Instr& instr) const {
    if (instr.slice.buffer < 0) return absl::OkStatus();
    if (kernel_.wave == 0) return fail(instr, "one thread has no elements to move through memory");
    const auto [store, load] = through_memory(instr);
    for (const Instr* part : {&store, &load}) WL_RETURN_IF_ERROR(check_slice(*part, part->slice));
    const KernelBuffer& buffer = kernel_.buffers[instr.slice.buffer];
    if (buffer.level != Level::kShared || buffer.dtype != tile_of(instr.result).dtype)
      return fail(instr, "elements move through shared memory of their dtype");
    return absl::OkStatus();
  }
  absl::Status operand_trips(const Instr& loop) const {
    if (loop.trips.empty() ||
        !std::all_of(loop.trips.begin(), loop.trips.end(), [&](const Affine& a) { return in_scope(a); }))
      return fail(loop, "the loop's trip count uses a variable that is not in scope");
    if (loop.var <= 0 || loop.var >= static_cast<VarId>(kernel_.vars.size()) ||
        kernel_.vars[loop.var].kind != Var::Kind::kLoop)
      return fail(loop, "no such loop variable");
    return scope_.contains(loop.var) ? fail(loop, "the loop's variable is in use") : absl::OkStatus();
  }
  absl::Status operand_pending(const Instr&) const { return absl::OkStatus(); }
  absl::Status operand_last(const Instr& pass) const { return with_problem(pass, last_problem(kernel_, pass)); }
  absl::Status operand_phase(const Instr& instr) const {
    if (!in_scope(instr.slice.offset)) return fail(instr, "the phase uses a variable that is not in scope");
    return with_problem(instr, phase_problem(kernel_, instr));
  }
  absl::Status operand_parity(const Instr& instr) const {
    return in_scope(instr.parity) ? absl::OkStatus() : fail(instr, "the parity uses a variable that is not in scope");
  }

  absl::Status check_slice(const Instr& instr, const Slice& slice) const {
    if (slice.buffer < 0 || slice.buffer >= static_cast<BufferId>(kernel_.buffers.size()))
      return fail(instr, "no such buffer");
    if (!in_scope(slice.offset)) return fail(instr, "the address uses a variable that is not in scope");
    const Tile& tile = tile_of(space_tile(instr));
    if (static_cast<int>(slice.strides.size()) != tile.layout.rank())
      return fail(instr, "the slice needs one stride per axis of the tile");
    const InstrInfo& row = info(instr.op);
    const bool word = row.has(Operand::element) && !row.has(Operand::gap);
    const int64_t each = word ? std::max(1, elements_of_word(instr.elements[0])) : 1;
    return with_problem(instr, access_problem(kernel_.buffers[slice.buffer], slice, tile, each, row.is_indexed()));
  }

  // The functions named in the column `check` of instrs.def: what an instruction requires beyond its operands' checks.

  absl::Status check_nothing(const Instr&) const { return absl::OkStatus(); }
  absl::Status check_fold(const Instr& instr) const {
    return with_problem(instr, fold_problem(layout_of(instr.args[0]), layout_of(instr.result), instr.axes));
  }
  absl::Status are_words(const Instr& instr, TileId words) const {
    return tile_of(words).dtype == DType::u32 ? absl::OkStatus() : fail(instr, "words are u32");
  }
  absl::Status check_words(const Instr& instr) const {
    WL_RETURN_IF_ERROR(are_words(instr, instr.result));
    return instr.slice.strides.empty() ? fail(instr, "words are along an axis") : absl::OkStatus();
  }
  // Checks words_across: lanes exchange elements of rows of 16 bytes, in blocks of 8 x 8 (PTX's ldmatrix.trans).
  absl::Status check_words_across(const Instr& instr) const {
    WL_RETURN_IF_ERROR(are_words(instr, instr.result));
    const Layout& layout = tile_of(instr.result).layout;
    if (layout.rank() != 2 || layout.lanes() != 1 || elements_of_word(instr.elements[0]) != 2 ||
        instr.slice.strides != std::vector<int64_t>{1, 2 * instr.gap} ||
        !begins_rows(instr.slice.offset, instr.gap, instr.elements[0]) || !tile_of(instr.result).bound.empty())
      return fail(instr, "the words are not of whole rows of 16 bytes");
    if (!shared_factors_.contains(instr.result) && !holds_shared_blocks(kernel_, instr))
      return fail(instr, "lanes do not hold a block of shared memory of eight rows and four words");
    return absl::OkStatus();
  }
  absl::Status check_join(const Instr& instr) const {
    WL_RETURN_IF_ERROR(are_words(instr, instr.result));
    if (static_cast<int>(instr.args.size()) > elements_of_word(instr.elements[0]))
      return fail(instr, "a word has fewer elements");
    for (TileId arg : instr.args)
      if (tile_of(arg).dtype != instr.elements[0] || !(tile_of(arg).layout == tile_of(instr.result).layout))
        return fail(instr, cat("%", arg, " has not the words' elements and layout"));
    return absl::OkStatus();
  }
  absl::Status check_pack(const Instr& instr) const { return with_problem(instr, pack_problem(kernel_, instr)); }
  absl::Status check_view(const Instr& instr) const { return with_problem(instr, view_problem(kernel_, instr)); }
  absl::Status check_part(const Instr& instr) const {
    WL_RETURN_IF_ERROR(are_words(instr, instr.args[0]));
    const Tile &words = tile_of(instr.args[0]), &result = tile_of(instr.result);
    if (!is_float(instr.elements[0]) || result.dtype != instr.elements[0] || !(result.layout == words.layout))
      return fail(instr, "the result has not the words' elements, which are floats, and layout");
    return absl::OkStatus();
  }
  absl::Status check_dot(const Instr& instr) const {
    if (instr.args.size() != 2) return fail(instr, "takes two tiles");
    for (TileId arg : instr.args)
      if (tile_of(arg).dtype != DType::u32 || !broadcasts(arg, instr.result))
        return fail(instr, cat("%", arg, " is no tile of words that broadcasts to the result"));
    return absl::OkStatus();
  }
  absl::Status check_mma(const Instr& instr) const {
    if (instr.args.size() != 2) return fail(instr, "takes two tiles");
    const Tile &a = tile_of(instr.args[0]), &b = tile_of(instr.args[1]), &sums = tile_of(instr.result);
    const MatrixInfo& row = info(instr.matrix);
    if (a.dtype != DType::u32 || b.dtype != DType::u32 || sums.dtype != row.sum)
      return fail(instr, cat("adds products of words to ", name_of(row.sum)));
    const std::optional<Fragments> tiles =
        a.layout.rank() == 2 ? tiles_of(instr.matrix, sums.layout, a.layout.shape[1]) : std::nullopt;
    if (!tiles || !(tiles->a == a.layout) || !(tiles->b == b.layout))
      return fail(instr, "the tiles are not the instruction's fragments, repeated");
    if (!a.bound.empty() || !b.bound.empty() || !sums.bound.empty()) return fail(instr, "fragments have no bounds");
    return std::max(1, kernel_.wave) == fragments_of(instr.matrix).c.count('l') ? absl::OkStatus()
                                                                                : fail(instr, "a wave has other lanes");
  }
  absl::Status check_cross(const Instr& instr) const {
    return with_problem(instr, cross_problem(layout_of(instr.args[0]), layout_of(instr.result), instr.axes));
  }
  absl::Status check_convert(const Instr& instr) const {
    if (tile_of(instr.result).dtype != tile_of(instr.args[0]).dtype) return fail(instr, "a convert keeps the dtype");
    return with_problem(instr, convert_problem(kernel_, instr));
  }
  // Checks an asynchronous copy: it consists of pieces of 4, 8 or 16 bytes, contiguous in source and destination.
  absl::Status check_async(const Instr& instr) const {
    const KernelBuffer &from = kernel_.buffers[instr.slice.buffer], &to = kernel_.buffers[instr.into.buffer];
    if (from.level != Level::kGlobal || from.output || to.level != Level::kShared)
      return fail(instr, "an asynchronous copy is of an input, into shared memory");
    const Layout& layout = tile_of(instr.args[0]).layout;
    const int axis = layout.vector_axis();
    if (layout.lanes() > 1 && (instr.slice.strides[axis] != 1 || instr.into.strides[axis] != 1))
      return fail(instr, "the elements of a copy's vectors are contiguous");
    return absl::OkStatus();
  }
  absl::Status check_box(const Instr& instr) const {
    return box_of(kernel_, instr) ? check_async(instr) : fail(instr, "it is no box of a matrix");
  }
  absl::Status check_pass(const Instr& instr) const { return fail(instr, "a pass inside a loop"); }
  absl::Status check_cluster_barrier(const Instr& instr) const {
    if (kernel_.cluster == 1) return fail(instr, "the kernel has no clusters");
    return absl::OkStatus();
  }

  using Check = absl::Status (Verifier::*)(const Instr&) const;

  static Check operand_check(Operand operand) {
    static constexpr Check kChecks[] = {
        &Verifier::check_nothing,
#define WL_OPERAND(id) &Verifier::operand_##id,
#include "compiler/kernel/instrs.def"
    };
    return kChecks[static_cast<size_t>(operand)];
  }

  static Check row_check(InstrOp op) {
    static constexpr Check kChecks[] = {
#define WL_INSTR(id, name, operands, result, space, stretch, slice, order, lanes, check, ...) &Verifier::check,
#include "compiler/kernel/instrs.def"
    };
    return kChecks[static_cast<size_t>(op)];
  }

  // Checks that arguments and result exist, are as many as the row of instrs.def says, and are defined when read.
  absl::Status check_tiles_of(const Instr& instr, const std::set<TileId>& defined) const {
    const InstrInfo& row = info(instr.op);
    const auto takes = std::count(std::begin(row.operands), std::end(row.operands), Operand::tile) +
                       std::count(std::begin(row.operands), std::end(row.operands), Operand::shape);
    const bool more = row.has(Operand::expr) || row.has(Operand::otherwise) || row.has(Operand::tiles);
    if (static_cast<int64_t>(instr.args.size()) < takes || (!more && static_cast<int64_t>(instr.args.size()) > takes))
      return fail(instr, cat("takes ", takes, " tiles"));
    for (TileId arg : instr.args) {
      if (!is_tile(arg)) return fail(instr, "no such tile");
      if (row.reads_arguments() && !defined.contains(arg))
        return fail(instr, cat("%", arg, " is used before it is defined"));
    }
    if (row.gives_tile() ? !is_tile(instr.result) : instr.result >= 0) return fail(instr, "no such tile");
    if (row.result == InstrResult::kUpdates && !defined.contains(instr.result))
      return fail(instr, cat("%", instr.result, " is updated before it is defined"));
    return absl::OkStatus();
  }

  absl::Status check_instr(const Instr& instr) const {
    const InstrInfo& row = info(instr.op);
    if (row.lanes == InstrLanes::kNeedsLanes && kernel_.wave == 0) return fail(instr, "the machine has no lanes");
    for (Operand operand : row.operands) WL_RETURN_IF_ERROR((this->*operand_check(operand))(instr));
    WL_RETURN_IF_ERROR(with_problem(instr, shared_factor_problem(kernel_, shared_factors_, instr)));
    return (this->*row_check(instr.op))(instr);
  }

  absl::Status check_body(std::span<const Instr> body, std::set<TileId> defined) {
    for (const Instr& instr : body) {
      WL_RETURN_IF_ERROR(check_tiles_of(instr, defined));
      WL_RETURN_IF_ERROR(check_instr(instr));
      if (instr.op == InstrOp::kLoop) {
        scope_.insert(instr.var);
        WL_RETURN_IF_ERROR(check_body(instr.body, defined));
        scope_.erase(instr.var);
      }
      if (instr.result >= 0) defined.insert(instr.result);
    }
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  SharedFactors shared_factors_;
  std::set<VarId> scope_;
};

}  // namespace

absl::Status verify(const Kernel& kernel) {
  return Verifier(kernel).run();
}

}  // namespace wl
