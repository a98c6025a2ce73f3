#include "compiler/model/gpu_work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compiler/base/log2.h"
#include "compiler/ir/ops.h"
#include "compiler/kernel/var_values.h"
#include "compiler/model/occupancy.h"
#include "compiler/schedule/contract/contract.h"

namespace wl {
namespace {

constexpr double kSector = 32;       // bytes of device memory that move together
constexpr double kMemoryOfL2 = 0.5;  // share of the L2 in which values stay until they are read again
constexpr double kBytesOfWord = 4;   // of a word of a matrix instruction's factor
constexpr double kMatrixUnits = 4;   // of a multiprocessor; a wave keeps one of them busy
constexpr int64_t kSampled = 64;     // the most blocks of which it is counted how often they run a loop
constexpr int64_t kCompared = 512;   // the most blocks of which it is counted how many read the same
constexpr double kGoldenSection = 0.6180339887;

// What the blocks that run at once read by one load: bytes of one block, in sectors; and how much of it moves from
// device memory, and from the cache behind the L2s of dies, as a share of what is read, if nothing stays in the caches
// from earlier blocks.
struct Read {
  double bytes = 0, device_share = 1, die_share = 1;
};

// Whether every block has a part of the buffer in device memory, and reads what it has stored there.
bool is_own(const Kernel& kernel, BufferId buffer) {
  return kernel.buffers[buffer].level == Level::kOwn;
}

// Lanes of a wave that hold different elements; all others are served together with them.
int64_t different_lanes(const Layout& layout) {
  const auto counts = [](const Layout::Base& base) { return base.kind == 'l' && base.vector != 0; };
  return int64_t{1} << std::count_if(layout.bases.begin(), layout.bases.end(), counts);
}

// Counts what one block does. Bounds and offsets are taken at the first iteration of every loop.
class BlockWalk {
 public:
  BlockWalk(const Kernel& kernel, const Machine& machine, GpuWork& out)
      : kernel_(kernel), machine_(machine), out_(out), vars_(kernel), in_memory_(words_in_memory(kernel)) {}

  void run() {
    chain_ = &out_.teams;
    blocks_ = {0, kernel_.grid};
    for (const Pass& pass : kernel_.passes()) {
      const double share = pass.last > 0 ? 1 / static_cast<double>(pass.last) : 1;
      if (pass.last > 0) ++out_.joins;
      walk(pass.body, {share, share, true, true});
    }
    out_.sweeps = kernel_.sweeps();
  }
  const std::map<BufferId, std::vector<Read>>& reads() const { return reads_; }
  double written() const { return written_; }  // bytes that the block writes to device memory, in sectors

 private:
  // How often instructions run: in the block that decides how long the launch takes, and in all blocks on average;
  // whether this is the first iteration of the innermost loop, and of all loops.
  struct Times {
    double times = 1, mean = 1;
    bool first = true, first_of_all = true;
  };

  double waves() const { return static_cast<double>(kernel_.threads - kernel_.copiers) / std::max(1, kernel_.wave); }

  void walk(std::span<const Instr> instrs, Times at) {
    for (const Instr& instr : instrs) {
      if (instr.op == InstrOp::kLoop)
        walk_loop(instr, at);
      else
        step(instr, at);
    }
  }

  void walk_loop(const Instr& loop, Times at) {
    GpuChain* const before = chain_;
    if (loop.role == Role::kCopiers) chain_ = &out_.copiers;
    if (const std::optional<Section> section = section_of(loop)) {
      blocks_ = *section;
      vars_.set(0, section->from);
      const double share = static_cast<double>(section->to - section->from) / static_cast<double>(kernel_.grid);
      walk(loop.body, {at.times * share, at.mean * share, true, true});
      vars_.set(0, 0);
      blocks_ = {0, kernel_.grid};
    } else {
      const auto [most, mean] = trips_of(loop);
      // An iteration may wait for what the one before has loaded, so the second one stands for all others.
      walk(loop.body, {at.times * std::min(1.0, most), at.mean * std::min(1.0, mean), true, at.first_of_all});
      if (most > 1) walk(loop.body, {at.times * (most - 1), at.mean * std::max(0.0, mean - 1), false, false});
    }
    chain_ = before;
  }

  // The trips of a loop: those that count for how long the launch takes, and those of all blocks on average. Where all
  // blocks run at once, the block with most trips decides.
  std::pair<double, double> trips_of(const Instr& loop) {
    const int64_t own = vars_.value(0), count = blocks_.to - blocks_.from;
    double most = 0, sum = 0, sampled = 0;
    for (double place = 0; sampled < std::min<double>(kSampled, static_cast<double>(count)); ++sampled) {
      // Multiples of the golden section lie evenly, and fall on no period of the blocks' numbers.
      const double share = count <= kSampled ? sampled / static_cast<double>(count) : place - std::floor(place);
      vars_.set(0, blocks_.from + static_cast<int64_t>(share * static_cast<double>(count)));
      const auto trips = static_cast<double>(std::max<int64_t>(0, vars_.smallest(loop.trips)));
      most = std::max(most, trips);
      sum += trips;
      place += kGoldenSection;
    }
    vars_.set(0, own);
    const double mean = sum / std::max(1.0, sampled);
    const bool at_once = static_cast<double>(kernel_.grid) <= std::max(1, machine_.multiprocessors()) * out_.resident;
    return {at_once ? most : mean, mean};
  }

  void step(const Instr& instr, Times at) {
    await(instr, at);
    switch (info(instr.op).order) {
      case Order::kArrival:
        // Copies of `pending` further groups are under way while these arrive; on entry to a loop, none has arrived.
        wait(at.first, at.times, 1 + instr.pending);
        return;
      case Order::kPhaseEnd: {
        if (chain_ == &out_.copiers) return;  // they wait for teams, whose own time counts
        const auto ring =
            static_cast<double>(std::max<int64_t>(2, elements(kernel_.buffers[instr.slice.buffer].shape)));
        wait(at.first_of_all, at.times, ring - 1);
        return;
      }
      case Order::kBlock:
      case Order::kCluster:
        chain_->meetings += at.times;
        return;
      default:
        break;
    }
    if (instr.op == InstrOp::kMmaWait)
      chain_->meetings += at.times;
    else if (instr.op == InstrOp::kMma)
      multiply(instr, at.times);
    else if (info(instr.op).accesses_memory())
      move(instr, at);
    else if (goes_through_memory(instr))
      for (const Instr& part : through_memory(instr)) move(part, at);
    else
      compute(instr, at.times);
  }

  // Waits for device memory, at first or while `under_way` such things are under way.
  void wait(bool at_first, double times, double under_way) {
    if (at_first)
      chain_->waits += times;
    else
      chain_->ahead += times / under_way;
  }

  // Waits for loads whose values the instruction needs. All loads that were issued by then have arrived, too. Loads
  // that were issued before products were begun, or in a later iteration, arrive beside other things.
  void await(const Instr& instr, const Times& at) {
    bool waits = false, at_first = false;
    for (const TileId tile : instr.args)
      if (const auto load = loading_.find(tile); load != loading_.end()) {
        waits = true;
        at_first = at_first || (at.first && load->second == multiplied_);
      }
    if (waits) {
      wait(at_first, at.times, 1);
      loading_.clear();
    }
    const auto is_near = [&](TileId tile) { return near_.contains(tile); };
    if (!std::any_of(instr.args.begin(), instr.args.end(), is_near)) return;
    chain_->near += at.times;
    near_.clear();
  }

  void multiply(const Instr& instr, double times) {
    const MatrixInfo& row = info(instr.matrix);
    const Layout& sums = kernel_.tiles[instr.result].layout;
    const double words = static_cast<double>(kernel_.tiles[instr.args[0]].layout.shape[1]);
    const double depth = words * kBytesOfWord / size_of(row.left), teams = std::max(1, kernel_.teams);
    const auto m = static_cast<double>(sums.shape[0]), n = static_cast<double>(sums.shape[1]);
    // A wave keeps one of the units busy.
    const double idle = std::max(1.0, kMatrixUnits / (waves() * out_.resident));
    out_.products += times * teams * m * n * depth / matrix_rate(instr.matrix, *machine_.target) * idle;
    if (multiplies_in_memory(instr.matrix)) {
      double wide = n;  // columns of one instruction, which a group of waves executes
      for (const Layout::Base& base : sums.bases)
        if (base.kind == 'u' && sums.part(base, 1) != 0) wide /= 2;
      const double left = holds_left(instr.matrix) ? 0 : m * n / wide, right = m * n / static_cast<double>(row.m);
      out_.shared_bytes += times * teams * (left + right) * depth * size_of(row.left);
    }
    near_.clear();
    ++multiplied_;
  }

  void move(const Instr& instr, const Times& at) {
    const double times = at.times;
    const bool store = info(instr.op).stores(), copy = info(instr.op).is_async_copy();
    const Tile& tile = kernel_.tiles[store || copy ? instr.args[0] : instr.result];
    const KernelBuffer& buffer = kernel_.buffers[instr.slice.buffer];
    double elements = std::max(1, kernel_.teams), neighbours = 1;
    for (size_t axis = 0; axis < tile.layout.shape.size(); ++axis) {
      if (instr.op != InstrOp::kGather && instr.slice.strides[axis] == 0) continue;
      const auto extent = static_cast<double>(extent_of(tile, axis));
      elements *= extent;
      if (std::abs(instr.slice.strides[axis]) == 1) neighbours = std::max(1.0, extent);
    }
    const double size = size_of(buffer.dtype), repeats = static_cast<double>(tile.layout.count('r'));
    if (info(instr.op).has(Operand::element)) return load_words(instr, times);
    if (copy && instr.op != InstrOp::kBoxLoad)
      chain_->copies += times * repeats;
    else if (!copy)
      issue(times * repeats);
    if (buffer.level == Level::kShared) {
      const double loaded = repeats * static_cast<double>(tile.layout.lanes() * different_lanes(tile.layout)) * waves();
      out_.shared_bytes += times * size * (store ? elements : loaded);
      return;
    }
    if (copy) out_.shared_bytes += times * elements * size;
    const double bytes = elements / neighbours * std::ceil(neighbours * size / kSector) * kSector;
    if (store) {
      chain_->stored += times * bytes;
      written_ += at.mean * bytes;
    } else {
      read(instr, at.mean * bytes);
    }
    out_.streaming = out_.streaming || (!store && instr.streaming);
    if (!store && !copy) loading_[instr.result] = multiplied_;
  }

  // Words of a factor: each wave loads those that it multiplies, unless the instruction reads shared memory itself.
  void load_words(const Instr& instr, double times) {
    if (in_memory_.contains(instr.result)) return;
    const Tile& tile = kernel_.tiles[instr.result];
    const double words = elements_of_lane(tile);
    issue(times * words / 2);  // most are loaded two or four at a time
    out_.shared_bytes += times * words * kBytesOfWord * (kernel_.threads - kernel_.copiers);
    near_.insert(instr.result);
  }

  void read(const Instr& instr, double bytes) {
    auto [at, added] = shares_.try_emplace(&instr);
    if (added) at->second = shares_of(instr);
    Read one = at->second;
    one.bytes = bytes;
    reads_[instr.slice.buffer].push_back(one);
  }

  // Counts the different parts of a buffer that blocks read which run at once, by the offsets of their loads.
  Read shares_of(const Instr& instr) {
    if (is_own(kernel_, instr.slice.buffer)) return {};
    const double at_once = std::max(1, machine_.multiprocessors()) * out_.resident;
    const int64_t blocks = std::min<int64_t>({kernel_.grid, kCompared, static_cast<int64_t>(at_once)});
    const int64_t own = vars_.value(0), dies = machine_.dies();
    std::set<int64_t> parts;
    std::set<std::pair<int64_t, int64_t>> of_dies;
    for (int64_t block = 0; block < blocks; ++block) {
      vars_.set(0, block);
      const int64_t offset = vars_.value(instr.slice.offset);
      parts.insert(offset);
      of_dies.emplace(block % dies, offset);
    }
    vars_.set(0, own);
    const auto all = static_cast<double>(blocks);
    return {0, static_cast<double>(parts.size()) / all, static_cast<double>(of_dies.size()) / all};
  }

  int64_t extent_of(const Tile& tile, size_t axis) const {
    const int64_t whole = tile.layout.shape[axis];
    if (axis >= tile.bound.size() || tile.bound[axis].empty()) return whole;
    return std::clamp<int64_t>(vars_.smallest(tile.bound[axis]), 0, whole);
  }

  void compute(const Instr& instr, double times) {
    if (instr.op == InstrOp::kMap) {
      double slots = 0;
      for (const ExprNode& node : instr.expr)
        if (node.kind == ExprNode::Kind::kOp) slots += info(node.op).cost;
      issue(times * slots * elements_of_lane(kernel_.tiles[instr.result]));
    } else if (instr.op == InstrOp::kFold) {
      issue(times * elements_of_lane(kernel_.tiles[instr.args[0]]));
    } else if (instr.op == InstrOp::kCross) {
      // In each step, a lane takes the value of another one and combines it with its own.
      const int steps = log2_floor(std::max(1, std::min(kernel_.wave, kernel_.team)));
      issue(times * 2 * steps * elements_of_lane(kernel_.tiles[instr.args[0]]));
    }
  }

  // All waves that run this issue operations that take `slots` slots.
  void issue(double slots) {
    out_.slots += slots * (chain_ == &out_.copiers ? static_cast<double>(kernel_.copiers) / kernel_.wave : waves());
    chain_->slots += slots;
  }

  const Kernel& kernel_;
  const Machine& machine_;
  GpuWork& out_;
  VarValues vars_;
  Section blocks_;             // the blocks that run what is walked
  GpuChain* chain_ = nullptr;  // of the role whose instructions are walked
  std::map<BufferId, std::vector<Read>> reads_;
  std::map<const Instr*, Read> shares_;
  double written_ = 0;
  // Tiles that loads from device memory have not delivered yet, with the number of products that were begun before.
  std::map<TileId, int> loading_;
  std::set<TileId> near_;       // words that were loaded from shared memory since products were begun
  std::set<TileId> in_memory_;  // words that instructions read from shared memory themselves
  int multiplied_ = 0;
};

}  // namespace

GpuWork gpu_work(const Kernel& kernel, const Machine& machine) {
  const Gpu& gpu = machine.target->gpu;
  const double blocks = static_cast<double>(kernel.grid);
  GpuWork out;
  out.resident = resident_blocks(kernel, gpu);
  BlockWalk walk(kernel, machine, out);
  walk.run();
  const double at_once = std::min(blocks, std::max(1, machine.multiprocessors()) * out.resident);
  out.device_bytes = walk.written() * blocks;
  if (machine.dies() > 1) out.die_bytes = out.device_bytes;
  for (const auto& [buffer, reads] : walk.reads()) {
    const bool own = is_own(kernel, buffer);
    const auto size = static_cast<double>(kernel.bytes_of(kernel.buffers[buffer])) * (own ? blocks : 1);
    double all = 0, in_use = 0, anew = 0, of_dies = 0;
    for (const Read& one : reads) {
      all += one.bytes * blocks;
      anew += one.bytes * one.device_share * blocks;
      of_dies += one.bytes * one.die_share * blocks;
      in_use = std::max(in_use, std::min(size, one.bytes * one.device_share * at_once));
    }
    // What is read again stays in the L2 if the parts of the buffer fit that the resident blocks read; what a block has
    // stored itself was in the L2 before it is read.
    const double once = in_use > kMemoryOfL2 * static_cast<double>(gpu.l2_bytes) ? anew : own ? 0 : std::min(all, size);
    out.device_bytes += once;
    out.cached_bytes += all - once;
    if (machine.dies() > 1) out.die_bytes += of_dies;
  }
  return out;
}

}  // namespace wl
