#include "compiler/model/cpu_cost.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/ops.h"
#include "compiler/kernel/tile_registers.h"
#include "compiler/model/reuse.h"

namespace wl {
namespace {

constexpr std::string_view kCpuCostFormat = "warploom cpu-cost 2";

constexpr std::array<CpuTermInfo, kCpuTerms> kTable = {{{"micro", "ns of the table"},
                                                        {"call", "call"},
                                                        {"entry", "entry"},
                                                        {"epilogue", "slot"},
                                                        {"pack_lane", "element"},
                                                        {"pack_row", "row"},
                                                        {"from_l2", "ns"},
                                                        {"from_l3", "byte"},
                                                        {"pack_from_l3", "byte"},
                                                        {"from_memory", "byte"},
                                                        {"memory_runs", "run"},
                                                        {"masked", "line"},
                                                        {"launch", "launch"}}};

// Other threads and other virtual machines also use the L3, so it is unknown how much of it a kernel gets. The model
// takes the mean of the misses with all of the L3, a half of it, and a quarter of it.
constexpr int64_t kL3Shares[] = {1, 2, 4};

// The share of the L2's nominal rate that a micro-kernel gets while it multiplies.
constexpr double kL2Share = 0.6;

class WorkCounter {
 public:
  WorkCounter(const Kernel& kernel, const Machine& machine) : kernel_(kernel), machine_(machine), reuse_(kernel) {}

  CpuWork run() {
    for (int loop = 0; loop < static_cast<int>(reuse_.loops().size()); ++loop) micro_kernel(loop);
    for (int loop = 0; loop < static_cast<int>(reuse_.loops().size()); ++loop) epilogue(loop);
    for (int r = 0; r < static_cast<int>(reuse_.references().size()); ++r) reference(r);
    at(kLaunch) = kernel_.threads > 1 ? 1 : 0;
    return std::move(work_);
  }

 private:
  struct Call {
    int around = 0;  // a loop each of whose iterations is one call of a micro-kernel
    int innermost = 0;
    double calls = 0;
  };

  double& at(CpuTerm term) { return work_.amount[term]; }
  const Tile& tile(TileId id) const { return kernel_.tiles[id]; }

  // Counts a micro-kernel if `loop` is one: a loop over k (the reduced axis) whose body multiplies and adds. A call of
  // the micro-kernel begins where its accumulator is set, outside all loops over k.
  void micro_kernel(int loop) {
    const Reuse::Loop& turns = reuse_.loops()[loop];
    if (turns.var < 0 || turns.body == &kernel_.body) return;
    for (const Instr& instr : *turns.body) {
      if (!multiplies_and_adds(instr)) continue;
      const Layout& layout = tile(instr.result).layout;
      if (layout.rank() != 2) continue;
      int outer = loop;
      while (outer > 0 && !sets(reuse_.loops()[outer].parent, instr.result)) outer = reuse_.loops()[outer].parent;
      if (outer <= 0) continue;
      const double calls = reuse_.loops()[outer].entries, steps = turns.entries * turns.trips;
      calls_.push_back({reuse_.loops()[outer].parent, loop, calls});
      if (instr.op == InstrOp::kMma)
        add_matrix_steps(instr, steps);
      else
        add_steps(layout, outer, steps, hints_in(*turns.body), product_of(instr));
      at(kCall) += calls;
      const Reuse::Loop& branching = is_unrolled(*turns.instr) && loop != outer ? reuse_.loops()[turns.parent] : turns;
      at(kEntry) += branching.entries - calls;
    }
  }

  int hints_in(const std::vector<Instr>& body) const {
    int64_t hints = 0;
    for (const Instr& instr : body)
      if (instr.op == InstrOp::kPrefetch) hints += tile(instr.args[0]).layout.count('r');
    return static_cast<int>(hints);
  }

  // Returns the time of one multiplication of vectors, as a multiple of the time of an f32 multiply-add. If the target
  // has no dot product of words (u32 of several narrow elements), each element of a word takes an i32 multiply-add.
  double product_of(const Instr& instr) const {
    if (instr.op != InstrOp::kDot) return 1;
    const Arithmetic& rates = machine_.target->arithmetic;
    const double rate = rates.dots(instr.elements[0], instr.elements[1]);
    return elements_of_word(instr.elements[0]) / (rate > 0 ? rate : rates.i32);
  }

  // Adds `steps` steps of vector instructions to work_.micro. gcc unrolls an outer loop of two iterations, and in the
  // second iteration drops those vectors of the micro-kernel that have no columns there.
  void add_steps(const Layout& layout, int outer, double steps, int hints, double product) {
    const int height = static_cast<int>(layout.shape[0]), lanes = layout.lanes();
    const int vectors = static_cast<int>((layout.shape[1] + lanes - 1) / lanes);
    int left = vectors;
    double share = 0;  // share of the steps that belong to the second iteration of the unrolled loop
    for (int loop = reuse_.loops()[outer].parent; kernel_.compiler == "gcc" && loop > 0;
         loop = reuse_.loops()[loop].parent) {
      const Reuse::Loop& turns = reuse_.loops()[loop];
      if (turns.trips != 2 || turns.body == &kernel_.body) continue;
      const int second = vectors_in_second_turn(turns.var, lanes, vectors);
      if (second >= left) continue;
      left = second;
      share = share_of_second_turn(loop, outer);
    }
    if (left > 0 && left < vectors) {
      work_.micro.emplace_back(MicroKernel{kernel_.compiler, height, left, 0, hints, product}, steps * share);
      steps *= 1 - share;
    }
    work_.micro.emplace_back(MicroKernel{kernel_.compiler, height, vectors, 0, hints, product}, steps);
  }

  // Adds `steps` steps of matrix instructions to work_.micro. A step takes the time of its products of tile registers,
  // but at least the latency after which the next step can add to the same sums.
  void add_matrix_steps(const Instr& mma, double steps) {
    constexpr double kLatency = 3.25;  // latency of a product's sums, divided by the product's time: 52 / 16 cycles
    const MatrixInfo& row = info(mma.matrix);
    const Layout& layout = tile(mma.result).layout;
    const Arithmetic& rates = machine_.target->arithmetic;
    const double products = static_cast<double>(registers_of(mma.matrix, layout).size());
    const double one_ns =
        2 * static_cast<double>(row.m * row.n * row.k) / rates.flops_per_ns / rates.matrices(row.left, row.right);
    const int vectors = static_cast<int>((layout.shape[1] + layout.lanes() - 1) / layout.lanes());
    work_.micro.emplace_back(MicroKernel{kernel_.compiler, static_cast<int>(layout.shape[0]), vectors,
                                         one_ns * std::max(products, kLatency)},
                             steps);
  }

  // `loop` has two iterations. Returns the share of the second one in all iterations of the loops between `loop` and
  // `inner`.
  double share_of_second_turn(int loop, int inner) const {
    double turns[2] = {1, 1};
    for (int l = reuse_.loops()[inner].parent; l != loop; l = reuse_.loops()[l].parent)
      for (int turn = 0; turn < 2; ++turn) turns[turn] *= reuse_.trips(l, loop, turn);
    return turns[1] / (turns[0] + turns[1]);
  }

  // Returns how many of a tile's `vectors` vectors have columns in the second iteration of the loop over `var`, if a
  // tile's bound on columns depends on `var`.
  int vectors_in_second_turn(VarId var, int lanes, int vectors) const {
    const int64_t width = int64_t{vectors} * lanes;
    int64_t columns = width;
    for (const Tile& each : kernel_.tiles) {
      const int axis = each.layout.vector_axis();
      if (axis < 0 || axis >= static_cast<int>(each.bound.size()) || each.layout.shape[axis] != width) continue;
      for (const Affine& affine : each.bound[axis])
        for (const auto& [by, coefficient] : affine.terms)
          if (by == var) columns = std::min(columns, affine.base + coefficient);
    }
    return static_cast<int>((std::max<int64_t>(columns, 0) + lanes - 1) / lanes);
  }

  bool sets(int loop, TileId accumulator) const {
    if (loop < 0) return false;
    return std::any_of(reuse_.loops()[loop].body->begin(), reuse_.loops()[loop].body->end(), [&](const Instr& instr) {
      return (instr.op == InstrOp::kFill || instr.op == InstrOp::kLoad) && instr.result == accumulator;
    });
  }

  // Returns the index in calls_ of the micro-kernel call that contains a loop; -1: no call contains it.
  int call_of(int loop) const {
    for (size_t c = 0; c < calls_.size(); ++c)
      if (reuse_.is_inside(loop, calls_[c].around)) return static_cast<int>(c);
    return -1;
  }

  void epilogue(int loop) {
    const Reuse::Loop& turns = reuse_.loops()[loop];
    if (loop > 0 && turns.body == &kernel_.body && loop + 1 < static_cast<int>(reuse_.loops().size()) &&
        reuse_.loops()[loop + 1].body == &kernel_.body)
      return;  // the kernel's body is counted once, for the innermost loop over the block number
    if (loop == 0) return;
    const bool innermost = call_is_innermost(loop);
    for (const Instr& instr : *turns.body) {
      if (instr.op != InstrOp::kMap || (innermost && multiplies_and_adds(instr))) continue;
      double slots = 0;
      for (const ExprNode& node : instr.expr)
        if (node.kind == ExprNode::Kind::kOp) slots += info(node.op).cost;
      at(kEpilogue) += turns.entries * turns.trips * slots * static_cast<double>(tile(instr.result).layout.count('r'));
    }
  }

  bool call_is_innermost(int loop) const {
    return std::any_of(calls_.begin(), calls_.end(), [loop](const Call& call) { return call.innermost == loop; });
  }

  void reference(int r) {
    const Reuse::Reference& reference = reuse_.references()[r];
    const Layout& layout = tile(reference.store ? reference.instr->args[0] : reference.instr->result).layout;
    const int call = call_of(reference.loop);
    // A store moves a cache line twice: the line is read before it is written, and is written back later.
    const double line = (reference.store ? 2 : 1) * static_cast<double>(kLineBytes);
    const double second = reuse_.misses(r, {machine_.l2_bytes, kL2Ways});
    double third = 0;
    for (int64_t shares : kL3Shares)
      third += reuse_.misses(r, {machine_.l3_bytes / shares, 0}) / static_cast<double>(std::size(kL3Shares));
    at(kFromMemory) += line * third;
    if (call < 0) {
      const int axis = layout.vector_axis();
      const int64_t along = axis < 0 ? 0 : reference.instr->slice.strides[axis];
      if (axis < 0 || along > 1) at(kPackLane) += reference.executions * reference.vectors * reference.lanes;
      if (reference.store) at(kPackRow) += reference.executions * static_cast<double>(layout.shape[0]);
      at(kPackFromL3) += line * second;
      if (!reference.store) add_runs(reuse_.touched(r, reference.loop), third);
    } else if (reference.loop == calls_[call].innermost) {
      if (layout.vector_axis() >= 0)
        at(kFromL2) += line * reuse_.misses(r, {machine_.l1_bytes, 0}) / (machine_.target->l2_bytes_per_ns * kL2Share);
      at(kFromL3) += line * second;
      add_runs(reuse_.touched(r, calls_[call].around), third);
      if (masks_every_load(reference, layout)) at(kMasked) += third;
    }
  }

  void add_runs(const Touched& box, double lines) { at(kMemoryRuns) += lines * box.runs / std::max(1.0, box.lines); }

  // gcc proves that the first vector of a row is always whole, and does not mask its load; clang masks all loads.
  bool masks_every_load(const Reuse::Reference& reference, const Layout& layout) const {
    const int axis = layout.vector_axis();
    const auto& bound = tile(reference.instr->result).bound;
    return kernel_.compiler == "clang" && axis >= 0 && axis < static_cast<int>(bound.size()) && !bound[axis].empty();
  }

  const Kernel& kernel_;
  const Machine& machine_;
  Reuse reuse_;
  CpuWork work_;
  std::vector<Call> calls_;
};

// Returns the least time of a micro-kernel's step: the time of its multiply-adds or of its loads, two of each per
// cycle, but at least the latency of one multiply-add (four cycles).
double row_step_ns(const MicroKernel& micro, double fma_per_ns) {
  const double multiply_adds = static_cast<double>(micro.height) * micro.vectors * micro.product;
  const double loads = micro.height + micro.vectors + micro.hints;
  return std::max({multiply_adds, loads, 8.0}) / fma_per_ns;
}

// Step times are measured for f32 without prefetches; other steps take the longer of that time and row_step_ns().
double step_ns_of(const MicroKernel& micro, const CpuCost& cost) {
  if (micro.step_ns > 0) return micro.step_ns;
  const double row = row_step_ns(micro, cost.fma_per_ns);
  const auto found = cost.step_ns.find({micro.compiler, micro.height, micro.vectors});
  if (found == cost.step_ns.end()) return row;
  return micro.hints == 0 && micro.product == 1 ? found->second : std::max(found->second, row);
}

double micro_ns(const CpuWork& work, const CpuCost& cost) {
  double ns = 0;
  for (const auto& [micro, steps] : work.micro) ns += steps * step_ns_of(micro, cost);
  return ns;
}

// Returns, for each term, the amount that is multiplied by the term's unit cost.
std::array<double, kCpuTerms> amounts(const CpuWork& work, const CpuCost& cost) {
  std::array<double, kCpuTerms> out = work.amount;
  out[kMicro] = micro_ns(work, cost);
  out[kFromL2] = std::max(0.0, out[kFromL2] - out[kMicro]);
  return out;
}

}  // namespace

const std::array<CpuTermInfo, kCpuTerms>& cpu_terms() {
  return kTable;
}

CpuWork cpu_work(const Kernel& kernel, const Machine& machine) {
  return WorkCounter(kernel, machine).run();
}

CpuCost default_cpu_cost(const Machine& machine) {
  const Target& target = *machine.target;
  CpuCost cost;
  cost.fma_per_ns = target.arithmetic.flops_per_ns / 2 / target.lanes;
  // The unit costs below were fitted to measurements on Zen 5. They are multiples of a clock cycle and of the target's
  // nominal rates (target.h). The ranking of schedules hardly depends on them.
  const double cycle = 2 / cost.fma_per_ns;
  cost.ns[kMicro] = 1;
  cost.ns[kCall] = 5 * cycle;
  cost.ns[kEntry] = 2.5 * cycle;
  cost.ns[kEpilogue] = cycle / 2;
  cost.ns[kPackLane] = 0.02 * cycle;
  cost.ns[kPackRow] = 2.5 * cycle;
  cost.ns[kFromL2] = 0.6;
  cost.ns[kFromL3] = 0.2 / target.l2_bytes_per_ns;
  cost.ns[kPackFromL3] = 0.2 / target.l2_bytes_per_ns;
  cost.ns[kFromMemory] = 0.25 / target.copy_bytes_per_ns;
  cost.ns[kMemoryRuns] = 14 * cycle;
  cost.ns[kMasked] = 16 * cycle;
  cost.ns[kLaunch] = 1000;
  return cost;
}

double cpu_ns(const CpuWork& work, const CpuCost& cost) {
  const std::array<double, kCpuTerms> amount = amounts(work, cost);
  double ns = 0;
  for (int term = 0; term < kCpuTerms; ++term) ns += cost.ns[term] * amount[term];
  return ns;
}

CpuCost calibrate(const std::vector<CpuSample>& samples, const Machine& machine, std::string device) {
  const CpuCost row = default_cpu_cost(machine);
  CpuCost cost = row;
  cost.device = std::move(device);
  double fastest = 0;
  for (const CpuSample& sample : samples) {
    double steps = 0, multiply_adds = 0;
    for (const auto& [micro, n] : sample.work.micro) {
      steps += n;
      multiply_adds += n * micro.height * micro.vectors;
    }
    if (!sample.micro || steps == 0) continue;
    cost.step_ns[sample.work.micro[0].first] = sample.ns / steps;
    fastest = std::max(fastest, multiply_adds / sample.ns);
  }
  if (fastest > 0) cost.fma_per_ns = fastest;
  // Normal equations of the relative error. The unknown x[t] is the factor of term t's default unit cost.
  std::array<std::array<double, kCpuTerms>, kCpuTerms> normal = {};
  std::array<double, kCpuTerms> right = {}, x;
  x.fill(1);
  constexpr double kPrior = 1e-3;  // weight of the default unit costs; a sample has weight 1
  double count = 0;
  for (const CpuSample& sample : samples) {
    if (sample.micro) continue;
    std::array<double, kCpuTerms> share = amounts(sample.work, cost);
    for (int t = 0; t < kCpuTerms; ++t) share[t] *= row.ns[t] / sample.ns;
    for (int t = 0; t < kCpuTerms; ++t) {
      for (int u = 0; u < kCpuTerms; ++u) normal[t][u] += share[t] * share[u];
      right[t] += share[t];
    }
    count += 1;
  }
  if (count == 0) return cost;
  for (int t = 0; t < kCpuTerms; ++t) {
    normal[t][t] += kPrior;
    right[t] += kPrior;
  }
  constexpr int kSweeps = 20000;  // sweeps of coordinate descent, which converges to the same result on every machine
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (int t = 0; t < kCpuTerms; ++t) {
      double rest = right[t];
      for (int u = 0; u < kCpuTerms; ++u)
        if (u != t) rest -= normal[t][u] * x[u];
      x[t] = std::max(0.0, rest / normal[t][t]);
    }
  }
  for (int t = 0; t < kCpuTerms; ++t) cost.ns[t] = row.ns[t] * x[t];
  return cost;
}

std::string print(const CpuCost& cost) {
  std::string out = cat(kCpuCostFormat, "\ndevice ", cost.device, "\nfma_per_ns ", cost.fma_per_ns, "\n");
  for (int t = 0; t < kCpuTerms; ++t) append(&out, "term ", kTable[t].name, " ", cost.ns[t], "\n");
  for (const auto& [micro, ns] : cost.step_ns)
    append(&out, "step ", micro.compiler, " ", micro.height, " ", micro.vectors, " ", ns, "\n");
  return out;
}

absl::StatusOr<CpuCost> parse_cpu_cost(std::string_view text) {
  CpuCost cost;
  std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n', absl::SkipEmpty());
  if (lines.empty() || lines[0] != kCpuCostFormat)
    return invalid("expected \"", kCpuCostFormat, "\" in the first line of a calibration of CPU costs");
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> words = absl::StrSplit(lines[i], absl::MaxSplits(' ', 4));
    const auto wrong = [&] { return invalid("line ", i + 1, " of a calibration of CPU costs: ", lines[i]); };
    double value = 0;
    if (words[0] == "device") {
      cost.device = lines[i].substr(std::min(lines[i].size(), words[0].size() + 1));
      continue;
    }
    if (!absl::SimpleAtod(words.back(), &value) || !std::isfinite(value) || value < 0) return wrong();
    if (words[0] == "fma_per_ns" && words.size() == 2 && value > 0) {
      cost.fma_per_ns = value;
    } else if (words[0] == "term" && words.size() == 3) {
      const auto row = std::find_if(kTable.begin(), kTable.end(), [&](const auto& r) { return r.name == words[1]; });
      if (row == kTable.end()) return wrong();
      cost.ns[row - kTable.begin()] = value;
    } else if (words[0] == "step" && words.size() == 5) {
      MicroKernel micro{words[1], 0, 0};
      if (!absl::SimpleAtoi(words[2], &micro.height) || !absl::SimpleAtoi(words[3], &micro.vectors)) return wrong();
      cost.step_ns[micro] = value;
    } else {
      return wrong();
    }
  }
  return cost;
}

}  // namespace wl
