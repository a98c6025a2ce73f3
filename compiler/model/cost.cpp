#include "compiler/model/cost.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/domain/group.h"
#include "compiler/domain/masks.h"
#include "compiler/domain/merged_columns.h"
#include "compiler/domain/pack.h"
#include "compiler/domain/phases.h"
#include "compiler/domain/stitch.h"
#include "compiler/kernel/shared_factors.h"
#include "compiler/model/roofline.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/target/matrix.h"

namespace wl {
namespace {

constexpr double kLoad = 0.5;  // issue slots that a load or store takes for each element
// On CPUs: issue slots of a load or store, for each element, if the elements are not contiguous.
constexpr double kScattered = 6;
constexpr double kBeyondPeak = 1.3;  // the best kernels are at most this many times as fast as the model's rates say
// If a value takes at most this many issue slots per element, each later pass over a row computes it again; other
// values are kept in memory.
constexpr int kExpensive = 4;
// On CPUs, contractions of at most this many rows do not pack the right operand, which varies along the columns.
constexpr int64_t kUnpackedRows = 32;

double ceil_to(double n, double unit) {
  return std::ceil(n / unit) * unit;
}

class Price {
 public:
  Price(const Graph& group, const Domain& domain, const Machine& machine, const Rates& rates)
      : group_(group),
        domain_(domain),
        machine_(machine),
        rates_(rates),
        counted_(share_of(counted_products(group, domain), domain)) {}

  Cost run() {
    Cost cost;
    double memory_ns = 0, best_memory_ns = 0;
    const auto move = [&](double bytes) {
      cost.bytes += static_cast<int64_t>(bytes);
      memory_ns += bytes / rates_.home_of(bytes);
      best_memory_ns += bytes / (rates_.near_bytes_per_ns * kBeyondPeak);
    };
    for (double bytes : bytes_read()) move(bytes);
    for (const Output& output : group_.outputs) move(static_cast<double>(group_.bytes(output.node)));
    least_work();
    const double peak_ns = (least_slots_ / rates_.slots_per_ns + flops_ns(1)) / kBeyondPeak;
    cost.bound = rates_.alone_us + counted_ * std::max(best_memory_ns, peak_ns) / 1000;

    if (domain_.cls == LoopClass::kContract) {
      contraction();
    } else {
      walk();
    }
    const bool alone = static_cast<double>(cost.bytes) < rates_.small_bytes;
    const double work_ns = slots_ / rates_.slots_per_ns + contract_ns_;
    const double ns = std::max(memory_ns + again_ns_, work_ns) / fill_of(alone);
    cost.micros = std::max(cost.bound, (alone ? rates_.alone_us : rates_.launch_us) + ns / 1000);
    cost.busy = std::max(memory_ns + again_ns_, slots_ / rates_.slots_per_ns + contract_ns_ * contract_fill_) / 1000;
    return cost;
  }

 private:
  int64_t extent(const std::vector<AtomId>& atoms) const { return extent_of(domain_, atoms); }
  // Returns how many bytes are read of each input; elements that are read several times count once. A gather reads a
  // cache line for each element.
  std::vector<double> bytes_read() const {
    std::map<NodeId, double> touched;
    const auto touch = [&](const Access& access) {
      if (access.input < 0) return;
      double bytes = size_of(group_.nodes[access.input].dtype);
      for (size_t atom = 0; atom < access.strides.size(); ++atom)
        if (access.strides[atom] != 0) bytes *= static_cast<double>(domain_.atoms[atom].extent);
      touched[access.input] += bytes;
    };
    for (size_t id = 0; id < domain_.operands.size(); ++id)
      for (const Domain::Operand& operand : domain_.operands[id]) {
        touch(operand.access);
        for (const Piece& piece : operand.pieces) touch(piece.access);
        if (operand.gather_extent > 0)
          touched[operand.access.input] += static_cast<double>(kLineBytes * elements(group_.nodes[id].shape));
      }
    for (const Domain::Store& store : domain_.stores) {
      touch(store.copy);
      for (const Piece& piece : store.pieces) touch(piece.access);
    }
    std::vector<double> bytes;
    for (const auto& [input, all] : touched) bytes.push_back(std::min(all, static_cast<double>(group_.bytes(input))));
    return bytes;
  }

  double flops_ns(double share) const {
    double ns = 0;
    for (const Node& node : group_.nodes) {
      if (node.op != Op::contract) continue;
      const double rate = rates_.contract_flops_per_ns * multiply_adds(group_, node, machine_);
      ns += contraction_flops(group_, node) / (rate * share);
    }
    return ns;
  }

  static double slots_of(const Node& node) { return info(node.op).cost; }

  void least_work() {
    for (const Node& node : group_.nodes) {
      const OpClass cls = class_of(node.op);
      if (cls == OpClass::kElementwise || cls == OpClass::kGather)
        least_slots_ += static_cast<double>(elements(node.shape)) * slots_of(node);
      if (cls == OpClass::kReduce) least_slots_ += static_cast<double>(elements(group_.nodes[node.operands[0]].shape));
    }
  }

  // Returns in how many iterations a kernel computes a node's value: the product of the extents of all loops that the
  // value depends on or that the node reduces over. A value that varies along the vectorised loop is computed again in
  // every iteration of all parallel loops: no kernel keeps it from one of their iterations to the next.
  double turns(NodeId id) const {
    double count = 1;
    const bool sums = is_reduction(group_, id);
    const auto moves = [&](AtomId atom) {
      return holds(domain_.varies[id], atom) || (sums && holds(domain_.reduced, atom));
    };
    const bool vector = domain_.vector >= 0 && moves(domain_.vector);
    for (AtomId atom = 0; atom < static_cast<AtomId>(domain_.atoms.size()); ++atom)
      if (moves(atom) || (vector && holds(domain_.parallel, atom)))
        count *= static_cast<double>(domain_.atoms[atom].extent);
    // An operation on a scalar takes as long as one on a vector, so it counts as often as a vector has lanes.
    return vector || domain_.vector < 0 ? count : count * machine_.target->lanes;
  }

  // Returns the issue slots of an operand's loads in `turns` iterations.
  double fetch(const Access& access, double turns) const {
    if (domain_.vector < 0 || access.strides.empty()) return turns * kLoad;
    const int64_t stride = std::abs(access.strides[domain_.vector]);
    return stride == 0 ? 0 : turns * (stride == 1 ? kLoad : scattered());
  }
  double scattered() const { return machine_.target->is_gpu() ? kLoad : kScattered; }

  double fetches(NodeId id, double turns) const {
    double slots = 0;
    for (const Domain::Operand& operand : domain_.operands[id]) {
      if (operand.access.input >= 0) slots += fetch(operand.access, turns);
      // Each piece (of a pad or concat) takes a comparison in each iteration, besides its load.
      for (const Piece& piece : operand.pieces) slots += fetch(piece.access, turns) + turns;
    }
    return slots;
  }

  // Adds the work of a group of maps and reductions to slots_ and again_ns_. Each phase (the work up to where a
  // reduction's result is first needed) walks the reduced loops once more.
  void walk() {
    const RowPhases phases = row_phases(group_, domain_);
    const int count = static_cast<int>(group_.nodes.size());
    // For each node: the last phase that uses its value.
    std::vector<int> last = phases.level;
    for (int id = count - 1; id >= 0; --id) {
      if (domain_.operands[id].empty()) continue;
      const bool reduces = is_reduction(group_, id);
      const int wanted = reduces ? phases.level[id] - 1 : last[id];
      for (const Domain::Operand& operand : domain_.operands[id])
        if (operand.source >= 0) last[operand.source] = std::max(last[operand.source], wanted);
    }
    for (size_t i = 0; i < domain_.stores.size(); ++i) {
      const NodeId source = domain_.stores[i].source;
      if (source >= 0) last[source] = std::max(last[source], phases.store_phase[i]);
    }
    double row_values = 1;
    for (int id = 0; id < count; ++id) {
      if (domain_.operands[id].empty()) continue;
      const bool inside = domain_.vector >= 0 && holds(domain_.varies[id], domain_.vector);
      const double again = inside ? last[id] - phases.level[id] : 0;
      const double all = turns(id);
      double each = slots_of(group_.nodes[id]);
      const double fetched = fetches(id, all);
      if (each > kExpensive || group_.nodes[id].op == Op::contract) {
        slots_ += each * all + fetched + (again > 0 ? 2 * kLoad * all : 0);
        row_values += again > 0 ? 1 : 0;
      } else {
        slots_ += (each * all + fetched) * (1 + again);
        if (again > 0 && fetched > 0) again_bytes(id, again);
      }
    }
    for (const Domain::Store& store : domain_.stores) {
      const double all = static_cast<double>(elements(group_.nodes[group_.outputs[store.output].node].shape));
      slots_ += fetch(store.access, all);
      if (store.source < 0) slots_ += fetch(store.copy, all);
    }
    // So far, again_ns_ is the time to read the inputs again; every value that is kept for a later phase takes as long.
    again_ns_ *= row_values;
  }

  void again_bytes(NodeId id, double times) {
    const double row = static_cast<double>(extent(domain_.reduced)) * size_of(group_.nodes[id].dtype);
    if (row <= rates_.row_bytes) return;
    for (const Domain::Operand& operand : domain_.operands[id])
      if (operand.access.input >= 0)
        again_ns_ += times * static_cast<double>(group_.bytes(operand.access.input)) /
                     (row <= rates_.near_bytes ? rates_.near_bytes_per_ns : rates_.far_bytes_per_ns);
  }

  void contraction() {
    const std::optional<MergedColumns> merged = merged_columns(domain_);
    const Domain& loops = merged ? merged->domain : domain_;
    const auto inner = [&](const std::vector<AtomId>& role) {
      return role.empty() ? 1.0 : static_cast<double>(loops.atoms[role.back()].extent);
    };
    const double rows = inner(loops.m), columns = inner(loops.n), depth = static_cast<double>(extent(loops.reduced));
    const double lanes = machine_.target->lanes;
    const double batch = static_cast<double>(extent(domain_.batch));
    double share = 1;
    double reads = 1;  // how often each element of the right operand, which varies along the columns, is read
    if (machine_.target->is_gpu()) {
      // Chooses the best tile size: larger tiles read each element less often, but waste more work at the edges and
      // leave more multiprocessors idle.
      const double m = static_cast<double>(extent(domain_.m)), n = static_cast<double>(extent(domain_.n));
      const double units = std::max(1, machine_.target->gpu.units);
      share = 0.01;
      for (double tile : {16.0, 32.0, 64.0, 128.0})
        for (double split : {1.0, 4.0}) {
          const double whole = (m * n) / (ceil_to(m, tile) * ceil_to(n, tile));
          const double blocks = batch * std::ceil(m / tile) * std::ceil(n / tile) * split;
          const double waves = blocks / ceil_to(blocks, units);
          const double reuse = tile / (tile + 12) * (split > 1 ? std::min(1.0, depth / 2048) : 1);
          if (whole * waves * reuse > share) {
            share = whole * waves * reuse;
            contract_fill_ = waves;
            reads = std::ceil(m / tile);
          }
        }
    } else {
      const double used = columns / ceil_to(columns, lanes);
      share = used * std::min(1.0, (rows + 2) / 8) * std::min(1.0, (depth + 8) / 40);
      if (rows <= kUnpackedRows) reads = std::ceil(rows / 8);
      // Packing writes a panel and reads it back. If several tasks use the same columns, each task packs them.
      const double packed = static_cast<double>(extent(domain_.n)) * depth * batch;
      if (rows > kUnpackedRows) slots_ += packed * 4 * kLoad;
    }
    contract_ns_ = counted_ * flops_ns(std::max(share, 0.01));
    std::vector<char> before(group_.nodes.size(), 0);
    before[domain_.contract] = 1;
    for (NodeId id = domain_.contract; id >= 0; --id)
      if (before[id])
        for (NodeId operand : group_.nodes[id].operands) before[operand] = 1;
    for (NodeId id = 0; id < static_cast<NodeId>(group_.nodes.size()); ++id) {
      if (domain_.operands[id].empty() || id == domain_.contract) continue;
      const double all = static_cast<double>(elements(group_.nodes[id].shape)) * (before[id] ? reads : 1);
      slots_ += slots_of(group_.nodes[id]) * all + fetches(id, all);
    }
    for (const Domain::Store& store : domain_.stores)
      slots_ +=
          fetch(store.access, static_cast<double>(elements(group_.nodes[group_.outputs[store.output].node].shape)));
  }

  double fill_of(bool alone) const {
    const double parallel = static_cast<double>(std::max<int64_t>(1, extent(domain_.parallel)));
    if (domain_.cls == LoopClass::kContract) return 1;
    if (machine_.target->is_gpu()) {
      const double inside =
          domain_.cls == LoopClass::kRows ? static_cast<double>(std::min<int64_t>(extent(domain_.reduced), 1024)) : 1;
      return std::clamp(parallel * inside / rates_.workers, 0.02, 1.0);
    }
    const double threads = std::max(1, machine_.threads);
    if (alone) return 1 / threads;
    const double tasks = domain_.cls == LoopClass::kRows ? parallel : std::ceil(parallel / machine_.target->lanes);
    return std::min(tasks, threads) / threads;
  }

  const Graph& group_;
  const Domain& domain_;
  const Machine& machine_;
  const Rates& rates_;
  const double counted_;  // share of the contraction's products that masks do not leave out
  double slots_ = 0, least_slots_ = 0, contract_ns_ = 0, again_ns_ = 0;
  double contract_fill_ = 1;  // share of the GPU's multiprocessors that a contraction's blocks keep busy
};

// Returns the rates of one of `workers` equal parts of the machine. The costs of launches are set to 0.
Rates share_of(Rates r, double workers) {
  r.launch_us = r.alone_us = r.small_bytes = 0;
  for (double* rate : {&r.slots_per_ns, &r.contract_flops_per_ns, &r.memory_bytes_per_ns, &r.far_bytes_per_ns,
                       &r.near_bytes_per_ns, &r.workers})
    *rate /= workers;
  return r;
}

// Returns the rate of the matrix instruction that a stage (a loop nest of a stitched group) can use, as a share of the
// target's rate for the dtypes of its factors; 0: the stage multiplies without matrix instructions. Instructions that
// take the left factor from registers and the right one from shared memory are used only if values stay in registers
// between stages (`resident`) and the extents are large enough.
double stage_matrix_share(const Stage& stage, bool resident, const Machine& machine) {
  const Target& target = *machine.target;
  if (!target.is_gpu() || stage.domain.contract < 0) return 0;
  const Domain& domain = stage.domain;
  const bool wide = std::min({extent_of(domain, domain.m), extent_of(domain, domain.n),
                              extent_of(domain, domain.reduced)}) >= kSharedFactorRows;
  const std::vector<NodeId>& factors = stage.graph.nodes[domain.contract].operands;
  const auto dtype = [&](size_t side) { return stage.graph.nodes[factors[side]].dtype; };
  for (const MatrixOp op : matrices_for(dtype(0), dtype(1), resident && wide ? target.features : 0, /*resident=*/true))
    if (holds_left(op)) return matrix_rate(op, target) / target.arithmetic.matrices(info(op).left, info(op).right);
  for (const MatrixOp op : matrices_for(stage.graph, stage.domain, machine))
    if (!multiplies_in_memory(op))
      return matrix_rate(op, target) / target.arithmetic.matrices(info(op).left, info(op).right);
  return 0;
}

// Returns the cost of a stitched group with the number of rows per block that makes it cheapest. Each block runs all
// stages one after the other, at the rates that the machine has per worker (thread or multiprocessor).
Cost stitched_cost(const Graph& group, const Domain& domain, const Machine& machine, const Rates& rates) {
  const double workers =
      machine.target->is_gpu() ? std::max(1, machine.target->gpu.units) : std::max(1, machine.threads);
  const Rates one = share_of(rates, workers);
  double best_us = -1, busy_us = 0;
  for (const Stitched& choice : domain.stitch->choices) {
    const auto blocks = static_cast<double>(choice.blocks());
    double block_us = 0;
    for (size_t k = 0; k < choice.stages.size(); ++k) {
      const Stage& stage = choice.stages[k];
      Machine mine = stage_machine(machine, stage);
      Target target = *mine.target;
      target.gpu.units = std::min(1, target.gpu.units);
      const double share = stage_matrix_share(stage, choice.turns.resident, mine);
      Arithmetic& own = target.arithmetic;
      for (double* rate : {&own.matrix_f16, &own.matrix_bf16, &own.matrix_i8, &own.matrix_tf32}) *rate *= share;
      mine.target = &target;
      block_us += static_cast<double>(choice.turns_of(k)) * cost_of(stage.graph, stage.domain, mine, one).micros;
    }
    const double us = std::ceil(blocks / workers) * block_us;
    if (best_us >= 0 && us >= best_us) continue;
    best_us = us;
    busy_us = blocks / workers * block_us;
  }
  Cost cost;
  double memory_ns = 0, least_ns = 0;
  const auto move = [&](NodeId id) {
    const double bytes = static_cast<double>(group.bytes(id));
    memory_ns += bytes / rates.home_of(bytes);
    least_ns += bytes / (rates.near_bytes_per_ns * kBeyondPeak);
  };
  for (NodeId input : group.inputs()) move(input);
  for (const Output& output : group.outputs) move(output.node);
  cost.bytes = bytes_moved(group);
  cost.bound = rates.alone_us + least_ns / 1000;
  cost.micros = std::max(cost.bound, rates.launch_us + std::max(memory_ns / 1000, best_us));
  cost.busy = std::max(memory_ns / 1000, busy_us);
  return cost;
}

// Returns the cost of a packed group. On a GPU its members (kernels side by side) run at the same time: the group
// takes the time of its longest member or, if that is longer, the time of all members' work on the whole machine. The
// threads of a CPU compute the members one after the other.
Cost packed_cost(const Graph& group, const Domain& domain, const Machine& machine, const Rates& rates) {
  Cost cost;
  cost.bytes = bytes_moved(group);
  const auto launch_of = [&](int64_t bytes) {
    return static_cast<double>(bytes) < rates.small_bytes ? rates.alone_us : rates.launch_us;
  };
  const Machine own = member_machine(machine);
  double longest_us = 0, all_us = 0, least_us = 0;
  for (const Member& member : domain.packed->members) {
    const Cost part = cost_of(member.graph, member.domain, own, rates);
    const double work_us = part.micros - launch_of(part.bytes);
    longest_us = std::max(longest_us, work_us);
    all_us += work_us;
    least_us = std::max(least_us, part.bound - rates.alone_us);
    cost.busy += part.busy;
  }
  cost.bound = rates.alone_us + least_us;
  const double work_us = machine.target->is_gpu() ? std::max(longest_us, cost.busy) : all_us;
  cost.micros = std::max(cost.bound, launch_of(cost.bytes) + work_us);
  return cost;
}

}  // namespace

Cost cost_of(const Graph& group, const Domain& domain, const Machine& machine, const Rates& rates) {
  if (domain.cls == LoopClass::kPacked) return packed_cost(group, domain, machine, rates);
  if (domain.cls == LoopClass::kStitched) return stitched_cost(group, domain, machine, rates);
  return Price(group, domain, machine, rates).run();
}

}  // namespace wl
