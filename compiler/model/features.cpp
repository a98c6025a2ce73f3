#include "compiler/model/features.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/ops.h"
#include "compiler/kernel/var_values.h"
#include "compiler/model/cpu_cost.h"
#include "compiler/model/gpu_cost.h"
#include "compiler/model/polydl.h"

namespace wl {
namespace {

constexpr int kExpensiveSlots = 4;  // ops that take at least this many issue slots count as expensive

// How much of everything one launch has, in all or for the worker that has most: a thread of a CPU or a multiprocessor
// of a GPU.
struct Facts {
  const Kernel& kernel;
  const Machine& machine;
  double blocks = 1;     // number of blocks of the worker that has most blocks
  double idle = 0;       // share of the launch's time for which the average worker has no block
  double must_move = 1;  // bytes of all arguments, divided by the number of workers
  // Bytes that are read and that are written outside scratch, bytes that are moved to and from scratch, and bytes that
  // are moved around the caches (streamed). Elements that several threads hold count once.
  double read = 0, written = 0, scratch = 0, streamed = 0;
  // Numbers of vectors that loads and stores move: by gathers, as scalars, with a stride above 1, and in all.
  double gathers = 0, narrow = 0, strided = 0, moves = 0;
  // Issue slots of multiply-adds, of other cheap ops, of other expensive ops, of folds, and of crosses.
  double fma = 0, cheap = 0, expensive = 0, folds = 0, crosses = 0;
  double turns = 0, barriers = 0, prefetches = 0;
  double ahead = 0;      // the longest distance from a load to its prefetch, in bytes
  double registers = 0;  // vectors of the largest tile in registers (on a CPU), or elements of it in a lane (on a GPU)
  double instructions = 0, loads = 0;  // numbers of instructions and of loads in the kernel's text
  double occupancy = 1;                // resident threads of a multiprocessor as a share of its limit; GPUs only
  double l1 = 0, l2 = 0, l3 = 0;       // bytes that enter each cache; CPUs only
  MicroKernel micro = {};              // the micro-kernel that has most steps
  CpuWork work = {};
  CpuCost cost = {};
  double polydl = 0;
  double ns = 1;  // ns of a launch that the analytic model predicts

  double slots() const { return fma + cheap + expensive + folds + crosses; }
  double share(int term) const { return work.amount[term] * cost.ns[term] / ns; }
};

double log_ratio(double of, double to) {
  return std::log2((of + 1) / (to + 1));
}

class FactCounter {
 public:
  explicit FactCounter(Facts& facts) : facts_(facts), kernel_(facts.kernel), vars_(facts.kernel) {}

  void run() {
    const double times = facts_.blocks * std::max(1, kernel_.teams);
    if (!kernel_.is_packed()) return body(kernel_.body, times);
    for (const Instr& instr : kernel_.body) {
      const Section section = section_of(instr).value();
      vars_.set(0, section.from);
      body(instr.body, times * static_cast<double>(section.to - section.from) / static_cast<double>(kernel_.grid));
    }
  }

 private:
  int64_t extent(const Tile& tile, size_t axis) const {
    const int64_t whole = tile.layout.shape[axis];
    if (axis >= tile.bound.size() || tile.bound[axis].empty()) return whole;
    return std::clamp<int64_t>(vars_.smallest(tile.bound[axis]), 0, whole);
  }
  // Returns the number of vectors in a tile, or in each lane's part of a tile.
  static double vectors(const Tile& tile) { return static_cast<double>(tile.layout.count('r')); }
  // Returns how many operations it takes to compute a tile: on a CPU one for each vector, on a GPU one for each
  // element of a lane.
  double repeats(const Tile& tile) const { return vectors(tile) * (kernel_.wave > 0 ? tile.layout.lanes() : 1); }

  void body(const std::vector<Instr>& instrs, double times) {
    for (const Instr& instr : instrs) {
      facts_.instructions += 1;
      if (instr.op == InstrOp::kLoop) {
        const auto trips = static_cast<double>(std::max<int64_t>(0, vars_.smallest(instr.trips)));
        facts_.turns += times * trips;
        body(instr.body, times * trips);
      } else if (info(instr.op).accesses_memory()) {
        move(instr, times);
      } else if (goes_through_memory(instr)) {
        for (const Instr& part : through_memory(instr)) move(part, times);
      } else if (instr.op == InstrOp::kMap) {
        map(instr, times * repeats(kernel_.tiles[instr.result]));
      } else if (instr.op == InstrOp::kPart) {
        facts_.cheap += times * repeats(kernel_.tiles[instr.result]);
      } else if (instr.op == InstrOp::kDot || (instr.op == InstrOp::kMma && kernel_.wave == 0)) {
        facts_.fma += times * repeats(kernel_.tiles[instr.result]);
        keep(instr.result);
      } else if (instr.op == InstrOp::kFold) {
        facts_.folds += times * repeats(kernel_.tiles[instr.args[0]]);
        keep(instr.result);
      } else if (instr.op == InstrOp::kCross) {
        facts_.crosses += times * repeats(kernel_.tiles[instr.args[0]]);
      } else if (instr.op == InstrOp::kPrefetch) {
        facts_.prefetches += times;
        ahead_of_.emplace_back(&instr);
      } else if (instr.op == InstrOp::kBarrier) {
        facts_.barriers += times;
      }
    }
  }

  void keep(TileId tile) { facts_.registers = std::max(facts_.registers, repeats(kernel_.tiles[tile])); }

  void map(const Instr& instr, double times) {
    for (const ExprNode& node : instr.expr) {
      if (node.kind != ExprNode::Kind::kOp) continue;
      const double slots = info(node.op).cost;
      (node.op == Op::fma ? facts_.fma : slots >= kExpensiveSlots ? facts_.expensive : facts_.cheap) += times * slots;
    }
    if (std::find(instr.args.begin(), instr.args.end(), instr.result) != instr.args.end()) keep(instr.result);
  }

  void move(const Instr& instr, double times) {
    const bool store = instr.op == InstrOp::kStore;
    // Whether the tile that moves is args[0], as in stores and asynchronous copies, and not the result.
    const bool given = store || info(instr.op).is_async_copy();
    const Tile& tile = kernel_.tiles[given ? instr.args[0] : instr.result];
    const KernelBuffer& buffer = kernel_.buffers[instr.slice.buffer];
    double each = 1;
    for (size_t axis = 0; axis < tile.layout.shape.size(); ++axis)
      if (instr.op == InstrOp::kGather || instr.slice.strides[axis] != 0)
        each *= static_cast<double>(extent(tile, axis));
    const double bytes = times * each * size_of(buffer.dtype);
    if (buffer.level == Level::kShared) {
      facts_.scratch += bytes;
    } else {
      (store ? facts_.written : facts_.read) += bytes;
      if (instr.streaming) facts_.streamed += bytes;
    }
    facts_.loads += store ? 0 : 1;
    const double all = times * vectors(tile);
    facts_.moves += all;
    if (instr.op == InstrOp::kGather) facts_.gathers += all;
    // Whether an access counts as strided depends on its stride along the axis of vectors or, if the tile has no
    // vectors, along the first axis that is divided among threads.
    int axis = tile.layout.vector_axis();
    for (int i = 0; axis < 0 && i < tile.layout.rank(); ++i)
      if (tile.layout.width(i) > 1) axis = i;
    if (axis < 0) facts_.narrow += all;
    if (axis >= 0 && std::abs(instr.slice.strides[axis]) > 1) facts_.strided += all;
    if (store || ahead_of_.empty()) return;
    for (const Instr* prefetch : ahead_of_) {
      if (prefetch->slice.buffer != instr.slice.buffer) continue;
      const int64_t apart = vars_.value(prefetch->slice.offset) - vars_.value(instr.slice.offset);
      facts_.ahead = std::max(facts_.ahead, static_cast<double>(apart * size_of(buffer.dtype)));
    }
  }

  Facts& facts_;
  const Kernel& kernel_;
  VarValues vars_;
  std::vector<const Instr*> ahead_of_;
};

void count_cpu(Facts& facts) {
  const Machine& machine = facts.machine;
  const Reuse reuse(facts.kernel);
  facts.work = cpu_work(facts.kernel, machine);
  facts.cost = default_cpu_cost(machine);
  facts.polydl = polydl_rank(reuse, machine).cycles;
  double steps = 0;
  for (const auto& [micro, n] : facts.work.micro)
    if (n > steps) {
      steps = n;
      facts.micro = micro;
    }
  for (int r = 0; r < static_cast<int>(reuse.references().size()); ++r) {
    facts.l1 += kLineBytes * reuse.misses(r, {machine.l1_bytes, 0});
    facts.l2 += kLineBytes * reuse.misses(r, {machine.l2_bytes, kL2Ways});
    facts.l3 += kLineBytes * reuse.misses(r, {machine.l3_bytes, 0});
  }
  facts.ns = std::max(1.0, cpu_ns(facts.work, facts.cost));
}

void price_gpu(Facts& facts) {
  const GpuTime time = gpu_time(facts.kernel, facts.machine);
  const double threads = time.work.resident * facts.kernel.threads;
  facts.occupancy = std::min(1.0, threads / std::max(1, facts.machine.target->gpu.unit_threads));
  facts.ns = time.ns;
}

struct Feature {
  std::string_view name;
  double (*value)(const Facts& f);
};
constexpr Feature kFeatures[] = {
    // Features about the bytes that move at each level of memory, and their reuse.
    {"read", [](const Facts& f) { return log_ratio(f.read, f.must_move); }},
    {"written", [](const Facts& f) { return log_ratio(f.written, f.must_move); }},
    {"scratch", [](const Facts& f) { return log_ratio(f.scratch, f.must_move); }},
    {"scratch_of_l1", [](const Facts& f) { return log_ratio(f.kernel.scratch_bytes(), f.machine.l1_bytes); }},
    {"scratch_of_l2", [](const Facts& f) { return log_ratio(f.kernel.scratch_bytes(), f.machine.l2_bytes); }},
    {"into_l1", [](const Facts& f) { return log_ratio(f.l1, f.must_move); }},
    {"into_l2", [](const Facts& f) { return log_ratio(f.l2, f.must_move); }},
    {"into_l3", [](const Facts& f) { return log_ratio(f.l3, f.must_move); }},
    {"streamed", [](const Facts& f) { return f.streamed / (f.read + f.written + 1); }},
    {"must_of_l1", [](const Facts& f) { return log_ratio(f.must_move, f.machine.l1_bytes); }},
    {"must_of_l2", [](const Facts& f) { return log_ratio(f.must_move, f.machine.l2_bytes); }},
    {"must_of_l3", [](const Facts& f) { return log_ratio(f.must_move, f.machine.l3_bytes); }},
    {"working_sets", [](const Facts& f) { return log_ratio(f.polydl, f.must_move); }},
    {"intensity", [](const Facts& f) { return log_ratio(f.slots(), f.must_move); }},
    // Features about how full the machine is.
    {"blocks", [](const Facts& f) { return std::log2(f.blocks); }},
    {"idle", [](const Facts& f) { return f.idle; }},
    {"occupancy", [](const Facts& f) { return f.occupancy; }},
    {"threads", [](const Facts& f) { return std::log2(std::max(1, f.kernel.threads)); }},
    {"team", [](const Facts& f) { return std::log2(std::max(1, f.kernel.team)); }},
    {"teams", [](const Facts& f) { return std::log2(std::max(1, f.kernel.teams)); }},
    // Features about the width of vectors, and the order of memory accesses.
    {"lanes", [](const Facts& f) { return std::log2(f.kernel.vector_lanes()); }},
    {"moves", [](const Facts& f) { return log_ratio(f.moves, f.slots()); }},
    {"narrow", [](const Facts& f) { return f.narrow / (f.moves + 1); }},
    {"strided", [](const Facts& f) { return f.strided / (f.moves + 1); }},
    {"gathers", [](const Facts& f) { return f.gathers / (f.moves + 1); }},
    // Features about prefetches, barriers, loops, the kernel's text and registers.
    {"prefetches", [](const Facts& f) { return log_ratio(f.prefetches, f.turns); }},
    {"ahead", [](const Facts& f) { return std::log2(1 + f.ahead); }},
    {"barriers", [](const Facts& f) { return log_ratio(f.barriers, f.turns); }},
    {"turns", [](const Facts& f) { return log_ratio(f.turns, f.slots()); }},
    {"instructions", [](const Facts& f) { return std::log2(1 + f.instructions); }},
    {"loads", [](const Facts& f) { return f.loads; }},
    {"unroll", [](const Facts& f) { return std::log2(f.kernel.unroll); }},
    {"accumulators", [](const Facts& f) { return std::log2(f.kernel.accumulators); }},
    {"clang", [](const Facts& f) { return f.kernel.compiler == "clang" ? 1.0 : 0.0; }},
    {"registers", [](const Facts& f) { return f.registers / std::max(1, f.machine.target->vector_registers); }},
    // Features about the mix of operations, and the micro-kernel.
    {"fma", [](const Facts& f) { return f.fma / (f.slots() + 1); }},
    {"dear", [](const Facts& f) { return f.expensive / (f.slots() + 1); }},
    {"folds", [](const Facts& f) { return f.folds / (f.slots() + 1); }},
    {"crosses", [](const Facts& f) { return log_ratio(f.crosses, f.slots()); }},
    {"slots", [](const Facts& f) { return log_ratio(f.slots(), f.must_move); }},
    {"height", [](const Facts& f) { return 1.0 * f.micro.height; }},
    {"width", [](const Facts& f) { return 1.0 * f.micro.vectors; }},
    {"tile", [](const Facts& f) { return 1.0 * f.micro.height * f.micro.vectors; }},
    {"loads_a_product",
     [](const Facts& f) { return f.micro.height == 0 ? 0.0 : 1.0 / f.micro.height + 1.0 / f.micro.vectors; }},
    // Features that the analytic model predicts.
    {"share_call", [](const Facts& f) { return f.share(kCall); }},
    {"share_entry", [](const Facts& f) { return f.share(kEntry); }},
    {"share_epilogue", [](const Facts& f) { return f.share(kEpilogue); }},
    {"share_pack_lane", [](const Facts& f) { return f.share(kPackLane); }},
    {"share_pack_row", [](const Facts& f) { return f.share(kPackRow); }},
    {"share_from_l2", [](const Facts& f) { return f.share(kFromL2); }},
    {"share_masked", [](const Facts& f) { return f.share(kMasked); }},
    {"share_from_l3", [](const Facts& f) { return f.share(kFromL3); }},
    {"share_pack_from_l3", [](const Facts& f) { return f.share(kPackFromL3); }},
    {"share_from_memory", [](const Facts& f) { return f.share(kFromMemory); }},
    {"share_memory_runs", [](const Facts& f) { return f.share(kMemoryRuns); }},
    {"slots_of_price", [](const Facts& f) { return log_ratio(f.slots(), f.ns); }},
};

}  // namespace

const std::vector<std::string_view>& feature_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Feature& row : kFeatures) names.push_back(row.name);
    return names;
  }();
  return kNames;
}

Features features_of(const Kernel& kernel, const Machine& machine) {
  Facts facts{kernel, machine};
  const bool gpu = kernel.wave > 0;
  const double workers = gpu ? std::max(1, machine.multiprocessors()) : std::max(1, kernel.threads);
  const auto grid = static_cast<double>(kernel.grid);
  facts.blocks = std::ceil(grid / workers);
  facts.idle = 1 - grid / (facts.blocks * workers);
  double bytes = 0;
  for (const KernelBuffer& buffer : kernel.buffers)
    if (buffer.level == Level::kGlobal) bytes += static_cast<double>(elements(buffer.shape) * size_of(buffer.dtype));
  facts.must_move = bytes / workers;
  FactCounter(facts).run();
  if (gpu) {
    price_gpu(facts);
  } else {
    count_cpu(facts);
  }
  Features out;
  out.kind = cat(machine.target->family, "/", kernel.name);
  out.analytic_ns = gpu || !facts.work.micro.empty() ? facts.ns : 0;
  for (const Feature& row : kFeatures) out.values.push_back(static_cast<float>(row.value(facts)));
  return out;
}

}  // namespace wl
