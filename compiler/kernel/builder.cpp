#include "compiler/kernel/builder.h"

#include <algorithm>

#include "compiler/ir/eval.h"

namespace wl {

KernelBuilder::KernelBuilder(const Graph& group, const Machine& machine) : inputs_(group.inputs()) {
  kernel_.target = std::string(machine.target->name);
  kernel_.vars.push_back({Var::Kind::kBlock, "block", {}, 1, 0});
  kernel_.wave = machine.target->gpu.wave;
  if (kernel_.wave > 0) kernel_.vars.push_back({Var::Kind::kTeam, "team", {}, 1, 0});
  for (const BufferSpec& spec : buffers_of(group))
    kernel_.buffers.push_back({spec.name, spec.dtype, spec.shape, Level::kGlobal, spec.output, false, 0});
  open_.emplace_back();
}

VarId KernelBuilder::loop_var(std::string name) {
  kernel_.vars.push_back({Var::Kind::kLoop, std::move(name), {}, 1, 0});
  return static_cast<VarId>(kernel_.vars.size()) - 1;
}

VarId KernelBuilder::derived(std::string name, std::vector<Affine> of, int64_t div, int64_t mod) {
  return derived_var(kernel_, std::move(name), std::move(of), div, mod);
}

BufferId KernelBuilder::shared(std::string name, DType dtype, std::vector<int64_t> shape, int64_t stagger) {
  const int64_t end = kernel_.scratch_bytes();
  kernel_.buffers.push_back(
      {std::move(name), dtype, std::move(shape), Level::kShared, false, false, (end + stagger + 63) / 64 * 64});
  return static_cast<BufferId>(kernel_.buffers.size()) - 1;
}

BufferId KernelBuilder::cluster(std::string name, DType dtype, std::vector<int64_t> shape) {
  const int64_t at = kernel_.scratch_bytes();
  kernel_.buffers.push_back({std::move(name), dtype, std::move(shape), Level::kCluster, false, false, at});
  return static_cast<BufferId>(kernel_.buffers.size()) - 1;
}

BufferId KernelBuilder::work(std::string name, DType dtype, std::vector<int64_t> shape) {
  const int64_t at = kernel_.work_bytes();
  kernel_.buffers.push_back({std::move(name), dtype, std::move(shape), Level::kWork, false, false, at});
  return static_cast<BufferId>(kernel_.buffers.size()) - 1;
}

BufferId KernelBuilder::input_buffer(NodeId input) const {
  const auto it = std::find(inputs_.begin(), inputs_.end(), input);
  WL_CHECK(it != inputs_.end(), "node %", input, " is no input of the group");
  return static_cast<BufferId>(it - inputs_.begin());
}

BufferId KernelBuilder::output_buffer(int output) const {
  return static_cast<BufferId>(inputs_.size()) + output;
}

TileId KernelBuilder::tile(DType dtype, std::vector<int64_t> shape, int vector_axis, int lanes,
                           std::vector<std::vector<Affine>> bound) {
  if (kernel_.wave > 0) return team_tile(dtype, std::move(shape), vector_axis, lanes / kernel_.team, std::move(bound));
  return tile({dtype, cpu_layout(std::move(shape), vector_axis, lanes), std::move(bound)});
}

TileId KernelBuilder::team_tile(DType dtype, std::vector<int64_t> shape, int axis, int vector,
                                std::vector<std::vector<Affine>> bound) {
  const int team = axis < 0 ? 1 : kernel_.team;
  return tile(
      {dtype, team_layout(std::move(shape), axis, axis < 0 ? 1 : vector, team, kernel_.wave), std::move(bound)});
}

TileId KernelBuilder::tile(Tile tile) {
  tile.origin = {.node = node_};
  kernel_.tiles.push_back(std::move(tile));
  return static_cast<TileId>(kernel_.tiles.size()) - 1;
}

TileId KernelBuilder::like(TileId other, DType dtype) {
  Tile same = kernel_.tiles[other];
  same.dtype = dtype;
  return tile(std::move(same));
}

void KernelBuilder::open_loop(VarId var, std::vector<Affine> trips) {
  Instr loop;
  loop.op = InstrOp::kLoop;
  loop.var = var;
  loop.trips = std::move(trips);
  loops_.push_back(std::move(loop));
  open_.emplace_back();
}

void KernelBuilder::close_loop() {
  WL_CHECK(!loops_.empty(), "no open loop");
  Instr loop = std::move(loops_.back());
  loops_.pop_back();
  loop.body = std::move(open_.back());
  open_.pop_back();
  open_.back().push_back(std::move(loop));
}

Instr& KernelBuilder::push(Instr instr) {
  return open_.back().emplace_back(std::move(instr));
}

void KernelBuilder::push_all(std::vector<Instr> instrs) {
  for (Instr& instr : instrs) open_.back().push_back(std::move(instr));
}

Kernel KernelBuilder::finish() {
  WL_CHECK(loops_.empty(), loops_.size(), " loops are open");
  kernel_.body = std::move(open_.back());
  return std::move(kernel_);
}

VarId derived_var(Kernel& kernel, std::string name, std::vector<Affine> of, int64_t div, int64_t mod) {
  // If no value can be negative, terms whose coefficient is a multiple of div * mod do not change the variable's value.
  const auto forward = [](const auto& term) { return term.second >= 0; };
  if (mod > 0 && of.size() == 1 && of[0].base >= 0 && std::all_of(of[0].terms.begin(), of[0].terms.end(), forward))
    std::erase_if(of[0].terms, [&](const auto& term) { return term.second % (div * mod) == 0; });
  Var var{Var::Kind::kDerived, std::move(name), std::move(of), div, mod};
  for (VarId v = 0; v < static_cast<VarId>(kernel.vars.size()); ++v) {
    const Var& known = kernel.vars[v];
    if (known.kind == var.kind && known.of == var.of && known.div == var.div && known.mod == var.mod) return v;
  }
  kernel.vars.push_back(std::move(var));
  return static_cast<VarId>(kernel.vars.size()) - 1;
}

Affine fixed(int64_t base) {
  return {base, {}};
}
Affine affine(VarId var, int64_t coefficient, int64_t base) {
  Affine out{base, {}};
  out.add(var, coefficient);
  return out;
}

Affine sum(Affine a, const Affine& b, int64_t factor) {
  a.base += b.base * factor;
  for (const auto& [var, coefficient] : b.terms) a.add(var, coefficient * factor);
  return a;
}

Instr load_instr(TileId result, Slice slice) {
  Instr out;
  out.op = InstrOp::kLoad;
  out.result = result;
  out.slice = std::move(slice);
  return out;
}

Instr prefetch_instr(TileId of, Slice slice, int level) {
  Instr out;
  out.op = InstrOp::kPrefetch;
  out.args = {of};
  out.slice = std::move(slice);
  out.level = level;
  return out;
}

Instr store_instr(TileId value, Slice slice, bool streaming) {
  Instr out;
  out.op = InstrOp::kStore;
  out.args = {value};
  out.slice = std::move(slice);
  out.streaming = streaming;
  return out;
}

Instr fill_instr(TileId result, double value) {
  Instr out;
  out.op = InstrOp::kFill;
  out.result = result;
  out.value = value;
  return out;
}

namespace {

Instr along_axis_1(InstrOp op, TileId result, TileId from, Op combine) {
  Instr out;
  out.op = op;
  out.result = result;
  out.args = {from};
  out.combine = combine;
  out.axes = {1};
  return out;
}

}  // namespace

Instr fold_instr(TileId into, TileId value, Op combine) {
  return along_axis_1(InstrOp::kFold, into, value, combine);
}

Instr cross_instr(TileId result, TileId from, Op combine) {
  return along_axis_1(InstrOp::kCross, result, from, combine);
}

Instr convert_instr(TileId result, TileId from, Slice through) {
  Instr out;
  out.op = InstrOp::kConvert;
  out.result = result;
  out.args = {from};
  out.slice = std::move(through);
  return out;
}

Instr words_instr(TileId result, DType element, Slice slice) {
  Instr instr = load_instr(result, std::move(slice));
  instr.op = InstrOp::kWords;
  instr.elements[0] = element;
  return instr;
}

Instr words_across_instr(TileId result, DType element, Slice slice, int64_t gap) {
  Instr instr = words_instr(result, element, std::move(slice));
  instr.op = InstrOp::kWordsAcross;
  instr.gap = gap;
  return instr;
}

Instr join_instr(TileId result, DType element, std::vector<TileId> elements) {
  Instr instr;
  instr.op = InstrOp::kJoin;
  instr.result = result;
  instr.elements[0] = element;
  instr.args = std::move(elements);
  return instr;
}

Instr pack_instr(TileId result, DType element, TileId from, int axis, int64_t first) {
  Instr instr;
  instr.op = InstrOp::kPack;
  instr.elements[0] = element;
  instr.result = result;
  instr.args = {from};
  instr.axis = axis;
  instr.slice.offset = fixed(first);
  return instr;
}

Instr view_instr(TileId result, TileId from) {
  Instr instr;
  instr.op = InstrOp::kView;
  instr.result = result;
  instr.args = {from};
  return instr;
}

Instr part_instr(TileId result, DType element, TileId words, int part) {
  Instr instr;
  instr.op = InstrOp::kPart;
  instr.result = result;
  instr.elements[0] = element;
  instr.args = {words};
  instr.part = part;
  return instr;
}

Instr dot_instr(TileId sum, DType a_element, TileId a, DType b_element, TileId b) {
  Instr instr;
  instr.op = InstrOp::kDot;
  instr.result = sum;
  instr.elements[0] = a_element;
  instr.elements[1] = b_element;
  instr.args = {a, b};
  return instr;
}

Instr mma_instr(TileId sums, MatrixOp matrix, TileId a, TileId b) {
  Instr instr;
  instr.op = InstrOp::kMma;
  instr.result = sums;
  instr.matrix = matrix;
  instr.args = {a, b};
  return instr;
}

Instr mma_wait_instr() {
  Instr instr;
  instr.op = InstrOp::kMmaWait;
  return instr;
}

Instr constant_instr(TileId result, DType dtype, double value) {
  Instr out;
  out.op = InstrOp::kMap;
  out.result = result;
  out.expr = {{ExprNode::Kind::kConstant, Op::add, dtype, -1, value, {-1, -1, -1}}};
  return out;
}

Instr copy_instr(TileId result, TileId from, DType dtype) {
  Instr out;
  out.op = InstrOp::kMap;
  out.result = result;
  out.args = {from};
  out.expr = {{ExprNode::Kind::kArg, Op::add, dtype, 0, 0, {-1, -1, -1}}};
  return out;
}

Instr fence_instr() {
  Instr out;
  out.op = InstrOp::kFence;
  return out;
}

Instr commit_instr() {
  Instr out;
  out.op = InstrOp::kCommit;
  return out;
}

Instr phase_instr(InstrOp op, BufferId phases, Affine element, Affine parity) {
  Instr instr;
  instr.op = op;
  instr.slice.buffer = phases;
  instr.slice.offset = std::move(element);
  instr.parity = std::move(parity);
  return instr;
}

Instr wait_instr(int pending) {
  Instr out;
  out.op = InstrOp::kWait;
  out.pending = pending;
  return out;
}

Instr map_instr(TileId result, Op op, DType dtype, std::vector<TileId> args) {
  Instr out;
  out.op = InstrOp::kMap;
  out.result = result;
  ExprNode root;
  root.op = op;
  root.dtype = dtype;
  for (size_t i = 0; i < args.size(); ++i) {
    ExprNode leaf;
    leaf.kind = ExprNode::Kind::kArg;
    leaf.dtype = dtype;
    leaf.arg = static_cast<int>(i);
    out.expr.push_back(leaf);
    root.operands[i] = static_cast<int>(i);
  }
  out.expr.push_back(root);
  out.args = std::move(args);
  return out;
}

}  // namespace wl
