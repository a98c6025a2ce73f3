#include "compiler/model/cpu_cost.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/ops.h"
#include "compiler/model/reuse.h"

namespace wl {
namespace {

constexpr std::string_view kFormat = "warploom cpu-cost 1";

constexpr std::array<CpuTermInfo, kCpuTerms> kTable = {{{"micro", "ns of the table"},
                                                        {"call", "call"},
                                                        {"entry", "entry"},
                                                        {"epilogue", "slot"},
                                                        {"pack_lane", "element"},
                                                        {"pack_row", "row"},
                                                        {"from_l3", "byte"},
                                                        {"pack_from_l3", "byte"},
                                                        {"from_memory", "byte"},
                                                        {"memory_runs", "run"},
                                                        {"launch", "launch"}}};

constexpr int64_t kL2Ways = 16;
constexpr int64_t kL3Shares = 4;  // of the third cache one is seen: others run beside this thread, and other machines

class Counter {
 public:
  Counter(const Kernel& kernel, const Machine& machine) : kernel_(kernel), machine_(machine), reuse_(kernel) {}

  CpuWork run() {
    for (int loop = 0; loop < static_cast<int>(reuse_.loops().size()); ++loop) micro_kernel(loop);
    for (int loop = 0; loop < static_cast<int>(reuse_.loops().size()); ++loop) epilogue(loop);
    for (int r = 0; r < static_cast<int>(reuse_.references().size()); ++r) reference(r);
    at(kLaunch) = kernel_.threads > 1 ? 1 : 0;
    return std::move(work_);
  }

 private:
  struct Call {
    int around = 0;  // the loop whose turn is a call
    int innermost = 0;
    double calls = 0;
  };

  double& at(CpuTerm term) { return work_.amount[term]; }
  const Tile& tile(TileId id) const { return kernel_.tiles[id]; }

  // The loop over k whose body multiplies and adds: its accumulator is set outside the outermost loop over k.
  void micro_kernel(int loop) {
    const Reuse::Loop& turns = reuse_.loops()[loop];
    if (turns.var < 0 || turns.body == &kernel_.body) return;
    for (const Instr& instr : *turns.body) {
      if (instr.op != InstrOp::kMap || instr.expr.empty() || instr.expr.back().op != Op::fma ||
          instr.expr.back().kind != ExprNode::Kind::kOp || instr.args.empty() || instr.args.back() != instr.result)
        continue;
      const Layout& layout = tile(instr.result).layout;
      if (layout.rank() != 2) continue;
      int outer = loop;
      while (outer > 0 && !sets(reuse_.loops()[outer].parent, instr.result)) outer = reuse_.loops()[outer].parent;
      if (outer <= 0) continue;
      const double calls = reuse_.loops()[outer].entries, steps = turns.entries * turns.trips;
      calls_.push_back({reuse_.loops()[outer].parent, loop, calls});
      add_steps(layout, outer, steps);
      at(kCall) += calls;
      at(kEntry) += turns.entries - calls;
    }
  }

  // gcc turns a loop of two turns into straight code and drops the vectors that the second has no columns for.
  void add_steps(const Layout& layout, int outer, double steps) {
    const int height = static_cast<int>(layout.shape[0]), lanes = layout.lanes();
    const int vectors = static_cast<int>((layout.shape[1] + lanes - 1) / lanes);
    int left = vectors;
    for (int loop = reuse_.loops()[outer].parent; kernel_.compiler == "gcc" && loop > 0;
         loop = reuse_.loops()[loop].parent) {
      const Reuse::Loop& turns = reuse_.loops()[loop];
      if (turns.trips == 2 && turns.body != &kernel_.body)
        left = std::min(left, vectors_in_second_turn(turns.var, lanes, vectors));
    }
    if (left > 0 && left < vectors) {
      work_.micro.emplace_back(MicroKernel{kernel_.compiler, height, left}, steps / 2);
      steps /= 2;
    }
    work_.micro.emplace_back(MicroKernel{kernel_.compiler, height, vectors}, steps);
  }

  // Of tiles whose columns are bound by this loop variable.
  int vectors_in_second_turn(VarId var, int lanes, int vectors) const {
    int64_t columns = int64_t{vectors} * lanes;
    for (const Tile& each : kernel_.tiles)
      for (const std::vector<Affine>& axis : each.bound)
        for (const Affine& affine : axis)
          for (const auto& [by, coefficient] : affine.terms)
            if (by == var) columns = std::min(columns, affine.base + coefficient);
    return static_cast<int>((std::max<int64_t>(columns, 0) + lanes - 1) / lanes);
  }

  bool sets(int loop, TileId accumulator) const {
    if (loop < 0) return false;
    return std::any_of(reuse_.loops()[loop].body->begin(), reuse_.loops()[loop].body->end(), [&](const Instr& instr) {
      return (instr.op == InstrOp::kFill || instr.op == InstrOp::kLoad) && instr.result == accumulator;
    });
  }

  // The call that a loop belongs to, -1: none.
  int call_of(int loop) const {
    for (size_t c = 0; c < calls_.size(); ++c)
      if (reuse_.is_inside(loop, calls_[c].around)) return static_cast<int>(c);
    return -1;
  }

  void epilogue(int loop) {
    const Reuse::Loop& turns = reuse_.loops()[loop];
    if (loop > 0 && turns.body == &kernel_.body && loop + 1 < static_cast<int>(reuse_.loops().size()) &&
        reuse_.loops()[loop + 1].body == &kernel_.body)
      return;  // an outer digit of the block
    if (loop == 0 || call_is_innermost(loop)) return;
    for (const Instr& instr : *turns.body) {
      if (instr.op != InstrOp::kMap) continue;
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
    // What is written is read first, or written back.
    const double line = (reference.store ? 2 : 1) * static_cast<double>(kLineBytes);
    const double second = reuse_.misses(r, {machine_.l2_bytes, kL2Ways}),
                 third = reuse_.misses(r, {machine_.l3_bytes / kL3Shares, 0});
    at(kFromMemory) += line * third;
    if (call < 0) {
      const int axis = layout.vector_axis();
      const int64_t along = axis < 0 ? 0 : reference.instr->slice.strides[axis];
      if (axis < 0 || along > 1) at(kPackLane) += reference.executions * reference.vectors * reference.lanes;
      if (reference.store) at(kPackRow) += reference.executions * static_cast<double>(layout.shape[0]);
      at(kPackFromL3) += line * second;
    } else if (reference.loop == calls_[call].innermost) {
      const Touched box = reuse_.touched(r, calls_[call].around);
      at(kFromL3) += line * second;
      at(kMemoryRuns) += third * box.runs / std::max(1.0, box.lines);
    }
  }

  const Kernel& kernel_;
  const Machine& machine_;
  Reuse reuse_;
  CpuWork work_;
  std::vector<Call> calls_;
};

// Both halves of the issue width busy: multiply-adds, loads, or a multiply-add's latency of four cycles.
double row_step_ns(const MicroKernel& micro, double fma_per_ns) {
  const double multiply_adds = static_cast<double>(micro.height) * micro.vectors;
  const double loads = micro.height + micro.vectors;
  return std::max({multiply_adds, loads, 8.0}) / fma_per_ns;
}

double micro_ns(const CpuWork& work, const CpuCost& cost) {
  double ns = 0;
  for (const auto& [micro, steps] : work.micro) {
    const auto found = cost.step_ns.find(micro);
    ns += steps * (found != cost.step_ns.end() ? found->second : row_step_ns(micro, cost.fma_per_ns));
  }
  return ns;
}

}  // namespace

const std::array<CpuTermInfo, kCpuTerms>& cpu_terms() {
  return kTable;
}

CpuWork cpu_work(const Kernel& kernel, const Machine& machine) {
  return Counter(kernel, machine).run();
}

CpuCost default_cpu_cost(const Machine& machine) {
  const Target& target = *machine.target;
  CpuCost cost;
  cost.fma_per_ns = target.flops_per_ns / 2 / target.lanes;
  // In cycles and in the row's rates as they were fitted to Zen 5; the order that they give hardly depends on them.
  const double cycle = 2 / cost.fma_per_ns;
  cost.ns[kMicro] = 1;
  cost.ns[kCall] = 5 * cycle;
  cost.ns[kEntry] = cycle;
  cost.ns[kEpilogue] = cycle / 2;
  cost.ns[kPackLane] = 0.1 * cycle;
  cost.ns[kPackRow] = 4 * cycle;
  cost.ns[kFromL3] = 0.3 / target.l2_bytes_per_ns;
  cost.ns[kPackFromL3] = 0.6 / target.l2_bytes_per_ns;
  cost.ns[kFromMemory] = 0.5 / target.copy_bytes_per_ns;
  cost.ns[kMemoryRuns] = 6 * cycle;
  cost.ns[kLaunch] = 1000;
  return cost;
}

double cpu_ns(const CpuWork& work, const CpuCost& cost) {
  double ns = cost.ns[kMicro] * micro_ns(work, cost);
  for (int term = kMicro + 1; term < kCpuTerms; ++term) ns += cost.ns[term] * work.amount[term];
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
  // Normal equations of the relative error; x are multiples of the row's costs.
  std::array<std::array<double, kCpuTerms>, kCpuTerms> normal = {};
  std::array<double, kCpuTerms> right = {}, x;
  x.fill(1);
  constexpr double kPrior = 1e-3;  // weight of the row, in samples
  double count = 0;
  for (const CpuSample& sample : samples) {
    if (sample.micro) continue;
    std::array<double, kCpuTerms> share = {};
    for (int t = 0; t < kCpuTerms; ++t)
      share[t] = row.ns[t] * (t == kMicro ? micro_ns(sample.work, cost) : sample.work.amount[t]) / sample.ns;
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
  constexpr int kSweeps = 20000;  // coordinate descent: converges, and alike everywhere
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
  std::string out = cat(kFormat, "\ndevice ", cost.device, "\nfma_per_ns ", cost.fma_per_ns, "\n");
  for (int t = 0; t < kCpuTerms; ++t) append(&out, "term ", kTable[t].name, " ", cost.ns[t], "\n");
  for (const auto& [micro, ns] : cost.step_ns)
    append(&out, "step ", micro.compiler, " ", micro.height, " ", micro.vectors, " ", ns, "\n");
  return out;
}

absl::StatusOr<CpuCost> parse_cpu_cost(std::string_view text) {
  CpuCost cost;
  std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n', absl::SkipEmpty());
  if (lines.empty() || lines[0] != kFormat)
    return invalid("expected \"", kFormat, "\" in the first line of a calibration of CPU costs");
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
