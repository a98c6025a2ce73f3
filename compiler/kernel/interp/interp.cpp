#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "compiler/base/fill.h"
#include "compiler/ir/ops.h"
#include "compiler/kernel/interp/copies.h"
#include "compiler/kernel/interp/scalars.h"
#include "compiler/kernel/interp/team_tiles.h"
#include "compiler/kernel/interp/words.h"
#include "compiler/kernel/var_values.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::vector<std::vector<Number>>& globals)
      : kernel_(kernel), globals_(globals), vars_(kernel), tiles_(kernel) {}

  absl::Status run() {
    work_ = empty([](Level level) { return level == Level::kWork; });
    for (const Pass& pass : kernel_.passes())
      for (int64_t first = 0; first < kernel_.grid; first += std::max<int64_t>(kernel_.cluster, pass.last)) {
        first_ = first + (pass.last == 0 ? 0 : first / pass.last * 5 % pass.last);  // an arbitrary block arrives last
        scratch_.assign(kernel_.cluster, empty([](Level level) { return info(level).of_block; }));
        cluster_ = empty([](Level level) { return level == Level::kCluster; });
        std::vector<int> teams(static_cast<size_t>(std::max(1, kernel_.teams)) * kernel_.cluster);
        std::iota(teams.begin(), teams.end(), 0);
        copies_ = PendingCopies(teams.size());
        tiles_.start(teams.size());
        WL_RETURN_IF_ERROR(body(pass.body, teams));
      }
    return absl::OkStatus();
  }

 private:
  // Returns new buffers: those of the levels `of` hold NaN, as nothing was stored yet; those of other levels are empty.
  std::vector<std::vector<Number>> empty(bool (*of)(Level)) const {
    std::vector<std::vector<Number>> out;
    for (const KernelBuffer& b : kernel_.buffers)
      out.emplace_back(of(b.level) ? elements(b.shape) : 0, std::numeric_limits<Number>::quiet_NaN());
    return out;
  }

  using Index = std::span<const int64_t>;  // the coordinates of an element, one per axis

  // Calls visit(coordinates, position) for every position of the tile whose element is within the tile's bound.
  template <typename Visit>
  absl::Status each(TileId id, Visit visit) const {
    const Tile& tile = kernel_.tiles[id];
    std::vector<int64_t> limit = tile.layout.shape;
    for (size_t axis = 0; axis < tile.bound.size(); ++axis)
      if (!tile.bound[axis].empty())
        limit[axis] = std::clamp<int64_t>(vars_.smallest(tile.bound[axis]), 0, limit[axis]);
    const TilePlaces& places = tiles_.places(id);
    for (int64_t at = 0; at < places.size(); ++at) {
      const Index index = places.index(at);
      bool inside = true;
      for (size_t axis = 0; axis < index.size(); ++axis) inside = inside && index[axis] < limit[axis];
      if (inside) WL_RETURN_IF_ERROR(visit(index, at));
    }
    return absl::OkStatus();
  }

  std::vector<Number>& tile(TileId id) { return tiles_.tile(id); }

  absl::StatusOr<Number*> cell(const Instr& instr, Index index, int64_t extra) {
    return cell(instr, instr.slice, index, extra);
  }
  absl::StatusOr<Number*> cell(const Instr& instr, const Slice& slice, Index index, int64_t extra) {
    int64_t at = vars_.value(slice.offset) + extra;
    for (size_t axis = 0; axis < index.size(); ++axis) at += slice.strides[axis] * index[axis];
    const BufferId id = slice.buffer;
    const Level level = kernel_.buffers[id].level;
    std::vector<Number>& data = info(level).of_block       ? scratch_[now_ / std::max(1, kernel_.teams)][id]
                                : level == Level::kCluster ? cluster_[id]
                                : level == Level::kWork    ? work_[id]
                                                           : globals_[id];
    if (at < 0 || at >= static_cast<int64_t>(data.size()))
      return absl::OutOfRangeError(cat("kernel ", kernel_.name, ": element ", at, " of ", kernel_.buffers[id].name,
                                       ", which has ", data.size(), ": ", print(kernel_, instr)));
    return &data[kernel_.buffers[id].swizzle.place_of(at)];
  }

  bool holds(const Instr& instr, Index index) const {
    return std::all_of(instr.guards.begin(), instr.guards.end(), [&](const SliceGuard& guard) {
      int64_t at = vars_.value(guard.at);
      for (size_t axis = 0; axis < index.size(); ++axis) at += guard.strides[axis] * index[axis];
      return at >= 0 && at < guard.extent;
    });
  }

  Number evaluate(const Instr& instr, int64_t at) {
    scratch_values_.clear();
    for (const ExprNode& node : instr.expr) {
      Number operand[3] = {};
      for (int k = 0; k < 3; ++k)
        if (node.operands[k] >= 0) operand[k] = scratch_values_[node.operands[k]];
      Number result = is_float(node.dtype) ? node.value : held_as(node.dtype, node.value);
      if (node.kind == ExprNode::Kind::kArg) result = tiles_.held(instr.args[node.arg], instr.result, at);
      if (node.kind == ExprNode::Kind::kOp)
        result = result_of(node.op, node.dtype, instr.expr[node.operands[0]].dtype, operand[0], operand[1], operand[2]);
      scratch_values_.push_back(result);
    }
    return scratch_values_.back();
  }

  // The functions that execute an instruction for the current team. instrs.def names them in the column `meaning`.

  absl::Status nothing(const Instr&) { return absl::OkStatus(); }

  absl::Status load(const Instr& instr) {
    const std::vector<Number> other = instr.args.empty() ? std::vector<Number>() : tile(instr.args[0]);
    const Number value = held_as(kernel_.tiles[instr.result].dtype, instr.value);
    std::vector<Number>& result = tile(instr.result);
    return each(instr.result, [&](Index index, int64_t at) -> absl::Status {
      if (!holds(instr, index)) {
        result[at] = instr.args.empty() ? value : other[at];
        return absl::OkStatus();
      }
      WL_ASSIGN_OR_RETURN(const Number* from, cell(instr, index, 0));
      result[at] = *from;
      return absl::OkStatus();
    });
  }

  absl::Status store(const Instr& instr) {
    return each(instr.args[0], [&](Index index, int64_t at) -> absl::Status {
      if (!tiles_.places(instr.args[0]).stores(at) || !holds(instr, index)) return absl::OkStatus();
      WL_ASSIGN_OR_RETURN(Number * to, cell(instr, index, 0));
      const DType dtype = kernel_.buffers[instr.slice.buffer].dtype;
      *to = is_float(dtype) ? round_to(dtype, static_cast<double>(tile(instr.args[0])[at])) : tile(instr.args[0])[at];
      return absl::OkStatus();
    });
  }

  absl::Status map(const Instr& instr) {
    std::vector<Number> result = tile(instr.result);
    WL_RETURN_IF_ERROR(each(instr.result, [&](Index, int64_t at) {
      result[at] = evaluate(instr, at);
      return absl::OkStatus();
    }));
    tile(instr.result) = std::move(result);
    return absl::OkStatus();
  }

  // Folds the elements within each thread, separately for each position in a vector.
  absl::Status fold(const Instr& instr) {
    const TilePlaces &from = tiles_.places(instr.args[0]), &to = tiles_.places(instr.result);
    const std::vector<Number> input = tile(instr.args[0]);
    std::vector<Number>& result = tile(instr.result);
    return each(instr.args[0], [&](Index, int64_t at) {
      const int64_t number = from.folded(from.register_of(at), instr.axes);
      Number& sum = result[to.at(from.thread_of(at), number, at % from.vector())];
      sum = combine(instr.combine, kernel_.tiles[instr.result].dtype, sum, input[at]);
      return absl::OkStatus();
    });
  }

  absl::Status words(const Instr& instr) {
    std::vector<Number>& result = tile(instr.result);
    const DType dtype = instr.elements[0];
    return each(instr.result, [&](Index index, int64_t at) -> absl::Status {
      std::vector<Number> elements;
      for (int i = 0; i < elements_of_word(dtype); ++i) {
        WL_ASSIGN_OR_RETURN(const Number* from, cell(instr, index, i * instr.gap));
        elements.push_back(*from);
      }
      result[at] = word_of(dtype, elements);
      return absl::OkStatus();
    });
  }

  absl::Status join(const Instr& instr) {
    std::vector<Number>& result = tile(instr.result);
    return each(instr.result, [&](Index, int64_t at) {
      std::vector<Number> elements;
      for (TileId arg : instr.args) elements.push_back(tile(arg)[at]);
      result[at] = word_of(instr.elements[0], elements);
      return absl::OkStatus();
    });
  }

  absl::Status pack(const Instr& instr) {
    const int size = elements_of_word(instr.elements[0]);
    std::vector<int64_t>& from = packed_[&instr];
    if (from.empty())
      from = packed_positions(tiles_.places(instr.args[0]), tiles_.places(instr.result), instr.axis,
                              instr.slice.offset.base, size);
    const std::vector<Number>& input = tile(instr.args[0]);
    std::vector<Number>& result = tile(instr.result);
    for (size_t at = 0; at < result.size(); ++at) {
      std::vector<Number> elements;
      for (int i = 0; i < size; ++i) elements.push_back(input[from[at * size + i]]);
      result[at] = word_of(instr.elements[0], elements);
    }
    return absl::OkStatus();
  }

  absl::Status part(const Instr& instr) {
    const std::vector<Number>& words = tile(instr.args[0]);
    std::vector<Number>& result = tile(instr.result);
    return each(instr.result, [&](Index, int64_t at) {
      result[at] = element_of(instr.elements[0], words[at], instr.part);
      return absl::OkStatus();
    });
  }

  absl::Status dot(const Instr& instr) {
    const DType sum = kernel_.tiles[instr.result].dtype;
    std::vector<Number>& result = tile(instr.result);
    return each(instr.result, [&](Index, int64_t at) {
      const Number a = tiles_.held(instr.args[0], instr.result, at), b = tiles_.held(instr.args[1], instr.result, at);
      add_products(instr.elements[0], a, instr.elements[1], b, sum, result[at]);
      return absl::OkStatus();
    });
  }

  // Reads the whole tiles of both factors, because a product multiplies elements that other lanes of the wave hold.
  absl::Status mma(const Instr& instr) {
    const MatrixInfo& row = info(instr.matrix);
    const int64_t words = kernel_.tiles[instr.args[0]].layout.shape[1];
    const std::vector<Number> a = tiles_.whole(instr.args[0]), b = tiles_.whole(instr.args[1]);
    std::vector<Number>& result = tile(instr.result);
    return each(instr.result, [&](Index index, int64_t at) {
      for (int64_t w = 0; w < words; ++w)
        add_products(row.left, a[index[0] * words + w], row.right, b[index[1] * words + w], row.sum, result[at]);
      return absl::OkStatus();
    });
  }

  // Combines the elements of a thread's vector, then those of the lanes of its wave that differ only along the axes of
  // the instruction.
  absl::Status cross(const Instr& instr) {
    const TilePlaces &from = tiles_.places(instr.args[0]), &to = tiles_.places(instr.result);
    const int64_t lanes = from.thread_bits(instr.axes) & (std::max(1, kernel_.wave) - 1);
    const std::vector<Number> input = tile(instr.args[0]);
    std::vector<Number>& result = tile(instr.result);
    for (int64_t at = 0; at < to.size(); ++at) {
      const int64_t thread = to.thread_of(at), number = to.register_of(at);
      bool seen = false;
      for (int64_t lane = lanes;; lane = (lane - 1) & lanes) {  // visits all subsets of the bits of `lanes`
        for (int64_t v = 0; v < from.vector(); ++v) {
          const Number one = input[from.at(thread ^ lane, number, v)];
          result[at] = seen ? combine(instr.combine, kernel_.tiles[instr.result].dtype, result[at], one) : one;
          seen = true;
        }
        if (lane == 0) break;
      }
    }
    return absl::OkStatus();
  }

  absl::Status gather(const Instr& instr) {
    std::vector<Number>& result = tile(instr.result);
    return each(instr.result, [&](Index index, int64_t at) -> absl::Status {
      auto chosen = static_cast<int64_t>(tiles_.held(instr.args[0], instr.result, at));
      if (chosen < 0) chosen += instr.gather_extent;
      if (!instr.gather_inside) chosen = std::clamp<int64_t>(chosen, 0, instr.gather_extent - 1);
      WL_ASSIGN_OR_RETURN(const Number* from, cell(instr, index, chosen * instr.gather_stride));
      result[at] = *from;
      return absl::OkStatus();
    });
  }

  absl::Status fill(const Instr& instr) {
    std::vector<Number>& result = tile(instr.result);
    std::fill(result.begin(), result.end(), held_as(kernel_.tiles[instr.result].dtype, instr.value));
    return absl::OkStatus();
  }

  absl::Status iota(const Instr& instr) {
    std::vector<Number>& result = tile(instr.result);
    return each(instr.result, [&](Index index, int64_t at) {
      result[at] = static_cast<Number>(vars_.value(instr.slice.offset) + index[instr.axis]);
      return absl::OkStatus();
    });
  }

  absl::Status convert(const Instr& instr) {
    if (!goes_through_memory(instr)) {
      tiles_.spread(instr.result, tiles_.whole(instr.args[0]));
      return absl::OkStatus();
    }
    const auto [to, from] = through_memory(instr);
    WL_RETURN_IF_ERROR(store(to));
    return load(from);
  }

  absl::Status async_load(const Instr& instr) {
    return each(instr.args[0], [&](Index index, int64_t at) -> absl::Status {
      if (!tiles_.places(instr.args[0]).stores(at)) return absl::OkStatus();
      Number value = 0;
      if (holds(instr, index)) {
        WL_ASSIGN_OR_RETURN(const Number* from, cell(instr, index, 0));
        value = *from;
      }
      WL_ASSIGN_OR_RETURN(Number * to, cell(instr, instr.into, index, 0));
      copies_.start(static_cast<size_t>(now_), to, value);
      return absl::OkStatus();
    });
  }

  absl::Status commit(const Instr&) { return copies_.commit(static_cast<size_t>(now_)), absl::OkStatus(); }
  absl::Status wait(const Instr& instr) {
    copies_.wait(static_cast<size_t>(now_), instr.pending);
    return absl::OkStatus();
  }
  absl::Status arrive_copied(const Instr& instr) {
    copies_.arrive(static_cast<size_t>(now_), instr.slice.buffer, vars_.value(instr.slice.offset));
    return absl::OkStatus();
  }
  absl::Status await(const Instr& instr) {
    copies_.await(instr.slice.buffer, vars_.value(instr.slice.offset));
    return absl::OkStatus();
  }

  absl::Status one(const Instr& instr) {
    using Meaning = absl::Status (Interpreter::*)(const Instr&);
    static constexpr Meaning kMeanings[] = {
#define WL_INSTR(id, name, operands, result, space, stretch, slice, order, lanes, check, meaning, ...) \
  &Interpreter::meaning,
#include "compiler/kernel/instrs.def"
    };
    return (this->*kMeanings[static_cast<size_t>(instr.op)])(instr);
  }

  void be(int team) {
    const int teams = std::max(1, kernel_.teams);
    vars_.set(0, first_ + team / teams);
    if (kernel_.wave > 0) vars_.set(kTeamVar, team % teams);
    now_ = team;
    tiles_.be(static_cast<size_t>(team));
  }

  // Runs each instruction for one team after another. If the barriers are right, any other order has the same result.
  absl::Status body(std::span<const Instr> instrs, const std::vector<int>& teams) {
    for (const Instr& instr : instrs) {
      if (instr.op == InstrOp::kLoop) {
        WL_RETURN_IF_ERROR(loop(instr, teams));
        continue;
      }
      for (int team : teams) {
        be(team);
        WL_RETURN_IF_ERROR(one(instr));
      }
    }
    return absl::OkStatus();
  }

  absl::Status loop(const Instr& instr, const std::vector<int>& teams) {
    std::vector<int64_t> trips;
    for (int team : teams) {
      be(team);
      trips.push_back(vars_.smallest(instr.trips));
    }
    for (int64_t i = 0; true; ++i) {
      std::vector<int> running;
      for (size_t t = 0; t < teams.size(); ++t)
        if (i < trips[t]) running.push_back(teams[t]);
      if (running.empty()) return absl::OkStatus();
      vars_.set(instr.var, i);
      WL_RETURN_IF_ERROR(body(instr.body, running));
    }
  }

  const Kernel& kernel_;
  std::vector<std::vector<Number>>& globals_;
  VarValues vars_;
  std::vector<std::vector<std::vector<Number>>> scratch_;  // the scratch buffers of each block of the cluster
  std::vector<std::vector<Number>> cluster_, work_;
  int64_t first_ = 0;                                    // number of the first of the blocks that run now
  std::map<const Instr*, std::vector<int64_t>> packed_;  // for each pack: the result of packed_positions()
  TeamTiles tiles_;
  PendingCopies copies_{1};
  int now_ = 0;  // number of the team being run, over all blocks of the cluster
  std::vector<Number> scratch_values_;
};

}  // namespace

absl::Status interpret(const Kernel& kernel, std::vector<std::vector<double>>& buffers) {
  const auto globals = static_cast<size_t>(std::count_if(
      kernel.buffers.begin(), kernel.buffers.end(), [](const KernelBuffer& b) { return b.level == Level::kGlobal; }));
  if (buffers.size() != globals)
    return invalid("kernel ", kernel.name, " takes ", globals, " buffers, not ", buffers.size());
  WL_RETURN_IF_ERROR(verify(kernel));
  std::vector<std::vector<Number>> numbers;
  for (size_t i = 0; i < buffers.size(); ++i)
    numbers.push_back(numbers_of(kernel.buffers[i].dtype, kernel.buffers[i].output, buffers[i]));
  const absl::Status ran = Interpreter(kernel, numbers).run();
  std::transform(numbers.begin(), numbers.end(), buffers.begin(), doubles_of);
  return ran;
}

}  // namespace wl
