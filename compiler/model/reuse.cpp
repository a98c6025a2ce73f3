#include "compiler/model/reuse.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr int64_t kPage = 4096;
constexpr int kLaunchLoop = 0;  // index of the loop that stands for repeated launches
// Hardware prefetchers follow rows that are at most this many bytes apart, such as the rows of a panel that is four
// cache lines wide. Such rows count as one run.
constexpr int64_t kFollowed = 4 * kLineBytes;
// A mean over the iterations of loops is taken over all combinations of iterations if there are at most kMostTurns,
// otherwise over at most kSampledTurns of them, for which iterations of the longest loops are sampled evenly.
constexpr int64_t kMostTurns = 4096, kSampledTurns = 512;
// Two references count as touching the same data if the number of elements that one touches is at least this share of
// the number that the other touches.
constexpr double kAlike = 0.75;

double elements_of(const KernelBuffer& buffer) {
  double n = 1;
  for (int64_t extent : buffer.shape) n *= static_cast<double>(extent);
  return n;
}

int64_t product_of(const std::vector<int64_t>& numbers) {
  double product = 1;
  for (int64_t number : numbers) product *= static_cast<double>(number);
  return product > 1e15 ? int64_t{1} << 50 : static_cast<int64_t>(product);
}

}  // namespace

double miss_share(double bytes, double capacity) {
  return std::clamp((bytes / capacity - 0.5) / 0.75, 0.0, 1.0);
}

Reuse::Reuse(const Kernel& kernel) : kernel_(kernel), digit_(kernel.vars.size(), -1) {
  WL_CHECK(kernel.wave == 0, "reuse of a kernel with lanes");
  add_loop(-1, -1, 1);
  add_digits();
  walk(kernel.body, static_cast<int>(loops_.size()) - 1);
  link();
  for (int loop = 0; loop < static_cast<int>(loops_.size()); ++loop) {
    turn_bytes_.push_back(union_bytes(loop, loop));
    run_bytes_.push_back(union_bytes(loop, loops_[loop].parent));
  }
}

int Reuse::add_loop(VarId var, int parent, double trips) {
  const double entries = parent < 0 ? 1 : loops_[parent].entries * loops_[parent].trips;
  const auto most = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(trips)));
  loops_.push_back({var, parent, &kernel_.body, nullptr, trips, entries, most});
  return static_cast<int>(loops_.size()) - 1;
}

// Adds the loops over the blocks that the first thread computes, which are the first blocks of the launch. If the
// kernel uses the block number only through its digits (reuse.h), each digit becomes a loop; otherwise one loop runs
// over the blocks.
void Reuse::add_digits() {
  double blocks = std::ceil(static_cast<double>(kernel_.grid) / std::max(1, kernel_.threads));
  std::map<int64_t, std::vector<VarId>> digits;  // for each divisor: the variables (block / divisor) % mod
  bool whole = kernel_.vars.empty();
  const Affine block{0, {{0, 1}}};
  for (VarId v = 1; v < static_cast<VarId>(kernel_.vars.size()); ++v) {
    const Var& var = kernel_.vars[v];
    if (var.kind != Var::Kind::kDerived) continue;
    if (var.of.size() == 1 && var.of[0] == block) {
      digits[var.div].push_back(v);
    } else {
      for (const Affine& affine : var.of)
        for (const auto& term : affine.terms) whole |= term.first == 0;
    }
  }
  int64_t inside = 1;
  for (const auto& [div, vars] : digits) {
    whole |= div != inside || vars.size() != 1;
    const int64_t mod = kernel_.vars[vars[0]].mod;
    inside = mod == 0 ? kernel_.grid : div * mod;
  }
  if (whole || digits.empty() || inside < kernel_.grid) {
    add_loop(0, kLaunchLoop, blocks);
    return;
  }
  std::vector<std::pair<VarId, double>> loops;
  for (const auto& [div, vars] : digits) {
    const int64_t mod = kernel_.vars[vars[0]].mod;
    const double trips = mod == 0 ? blocks : std::min(blocks, static_cast<double>(mod));
    loops.emplace_back(vars[0], trips);
    blocks = std::ceil(blocks / trips);
  }
  int parent = kLaunchLoop;
  for (size_t i = loops.size(); i-- > 0;) {
    parent = add_loop(loops[i].first, parent, loops[i].second);
    digit_[loops[i].first] = parent;
  }
}

void Reuse::walk(const std::vector<Instr>& body, int loop) {
  for (const Instr& instr : body) {
    if (instr.op == InstrOp::kLoop) {
      int64_t most = 1;
      const double trips = mean(instr.trips, loop, [&](int64_t n) {
        most = std::max(most, n);
        return static_cast<double>(std::max<int64_t>(0, n));
      });
      const int turns = add_loop(instr.var, loop, trips);
      loops_[turns].most = most;
      loops_[turns].body = &instr.body;
      loops_[turns].instr = &instr;
      walk(instr.body, turns);
    } else if (info(instr.op).accesses_memory() && !info(instr.op).is_async_copy()) {
      add_reference(instr, loop);
    }
  }
}

void Reuse::add_reference(const Instr& instr, int loop) {
  Reference out;
  out.instr = &instr;
  out.loop = loop;
  out.buffer = instr.slice.buffer;
  out.store = info(instr.op).stores();
  out.executions = loops_[loop].entries * loops_[loop].trips;
  const Tile& tile = kernel_.tiles[out.store ? instr.args[0] : instr.result];
  const int vector_axis = tile.layout.vector_axis();
  out.lanes = tile.layout.lanes();
  for (int axis = 0; axis < tile.layout.rank(); ++axis) {
    const int64_t extent = tile.layout.shape[axis], lanes = axis == vector_axis ? tile.layout.lanes() : 1;
    int64_t most = 1;
    const auto vectors = [&](int64_t n) {
      const int64_t here = std::clamp<int64_t>(n, 0, extent);
      most = std::max(most, here);
      return std::ceil(static_cast<double>(here) / static_cast<double>(lanes));
    };
    const bool bound = axis < static_cast<int>(tile.bound.size()) && !tile.bound[axis].empty();
    out.vectors *= bound ? mean(tile.bound[axis], loop, vectors) : vectors(extent);
    out.extents.push_back(most);
  }
  references_.push_back(out);
}

int Reuse::loop_of(VarId var, int loop) const {
  if (digit_[var] >= 0) return digit_[var];
  while (loop > kLaunchLoop && loops_[loop].var != var) loop = loops_[loop].parent;
  return loop > kLaunchLoop ? loop : -1;
}

void Reuse::sources(VarId var, int loop, std::vector<int>& found) const {
  if (const int turns = loop_of(var, loop); turns >= 0) {
    if (std::find(found.begin(), found.end(), turns) == found.end()) found.push_back(turns);
  } else if (kernel_.vars[var].kind == Var::Kind::kDerived) {
    for (const Affine& affine : kernel_.vars[var].of)
      for (const auto& term : affine.terms) sources(term.first, loop, found);
  }
}

int64_t Reuse::value(VarId var, int loop, const std::vector<int64_t>& at) const {
  if (const int turns = loop_of(var, loop); turns >= 0) return at[turns];
  const Var& v = kernel_.vars[var];
  if (v.kind != Var::Kind::kDerived) return 0;
  int64_t least = value(v.of[0], loop, at);
  for (const Affine& affine : v.of) least = std::min(least, value(affine, loop, at));
  return v.mod == 0 ? least / v.div : least / v.div % v.mod;
}

int64_t Reuse::value(const Affine& affine, int loop, const std::vector<int64_t>& at) const {
  int64_t sum = affine.base;
  for (const auto& [var, coefficient] : affine.terms) sum += coefficient * value(var, loop, at);
  return sum;
}

// Returns the loops that the expressions `of` depend on, and the loops that the trip counts of these loops depend on.
std::vector<int> Reuse::turning(const std::vector<Affine>& of, int loop) const {
  std::vector<int> found;
  const auto add = [&](const std::vector<Affine>& list, int inside) {
    for (const Affine& affine : list)
      for (const auto& term : affine.terms) sources(term.first, inside, found);
  };
  add(of, loop);
  for (size_t i = 0; i < found.size(); ++i)
    if (const Loop& turns = loops_[found[i]]; turns.instr != nullptr) add(turns.instr->trips, turns.parent);
  return found;
}

template <typename F>
double Reuse::mean(const std::vector<Affine>& of, int loop, F f) const {
  const std::vector<int> loops = turning(of, loop);
  std::vector<int64_t> points;
  for (int t : loops) points.push_back(loops_[t].most);
  for (const bool all = product_of(points) <= kMostTurns; !all && product_of(points) > kSampledTurns;) {
    int64_t& longest = *std::max_element(points.begin(), points.end());
    longest = (longest + 1) / 2;
  }
  const int64_t combinations = product_of(points);
  std::vector<int64_t> at(loops_.size(), 0);
  double sum = 0;
  int64_t count = 0;
  for (int64_t flat = 0; flat < combinations; ++flat) {
    int64_t rest = flat;
    for (size_t i = 0; i < loops.size(); ++i) {
      const int64_t turn = rest % points[i], most = loops_[loops[i]].most;
      at[loops[i]] = points[i] == most ? turn : (2 * turn + 1) * most / (2 * points[i]);
      rest /= points[i];
    }
    // Skips combinations of iterations that do not occur, because a loop may have fewer iterations in some iterations
    // of the loops around it.
    const bool happens = std::all_of(loops.begin(), loops.end(), [&](int t) {
      return loops_[t].instr == nullptr || at[t] < least(loops_[t].instr->trips, t, at);
    });
    if (!happens) continue;
    sum += f(least(of, loop, at));
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

int64_t Reuse::least(const std::vector<Affine>& of, int loop, const std::vector<int64_t>& at) const {
  int64_t out = std::numeric_limits<int64_t>::max();
  for (const Affine& affine : of) out = std::min(out, value(affine, loop, at));
  return out;
}

double Reuse::trips(int loop, int outer, int64_t turn) const {
  if (loops_[loop].instr == nullptr) return loops_[loop].trips;
  std::vector<int64_t> at(loops_.size(), 0);
  at[outer] = turn;
  return static_cast<double>(std::max<int64_t>(0, least(loops_[loop].instr->trips, loop, at)));
}

double Reuse::reach(VarId var, int loop, int stop) const {
  if (const int turns = loop_of(var, loop); turns >= 0) {
    // Only loops from `loop` outwards, up to but not including `stop`, iterate.
    for (int l = loop; l != stop && l >= 0; l = loops_[l].parent)
      if (l == turns) return loops_[turns].trips;
    return 1;
  }
  const Var& v = kernel_.vars[var];
  if (v.kind != Var::Kind::kDerived) return 1;
  double span = 1;
  for (const auto& [source, coefficient] : v.of[0].terms)
    span += static_cast<double>(std::abs(coefficient)) * (reach(source, loop, stop) - 1);
  const double values = span <= static_cast<double>(v.div) ? 1 : std::ceil(span / static_cast<double>(v.div));
  return v.mod == 0 ? values : std::min(values, static_cast<double>(v.mod));
}

// Returns the box that a reference touches while the loops inside `stop` iterate. It is built from strides in ascending
// order: a stride within the contiguous run so far extends that run; a multiple of the previous stride that does not go
// beyond the rows of that stride adds to them; any other stride adds rows of its own. Gaps of fewer than `granule`
// elements count as touched.
Reuse::Box Reuse::box(const Reference& reference, int stop, int64_t granule) const {
  const Slice& slice = reference.instr->slice;
  std::vector<Stride> strides;
  for (size_t axis = 0; axis < slice.strides.size(); ++axis)
    strides.push_back({std::abs(slice.strides[axis]), static_cast<double>(reference.extents[axis])});
  for (const auto& [var, coefficient] : slice.offset.terms)
    strides.push_back({std::abs(coefficient), reach(var, reference.loop, stop)});
  std::erase_if(strides, [](const Stride& s) { return s.step == 0 || s.count <= 1; });
  std::sort(strides.begin(), strides.end(), [](const Stride& a, const Stride& b) { return a.step < b.step; });
  Box out;
  for (const Stride& next : strides) {
    const double step = static_cast<double>(next.step);
    if (out.rows.empty() && step < out.run + static_cast<double>(granule)) {
      out.run += (next.count - 1) * step;
    } else if (!out.rows.empty() && next.step % out.rows.back().step == 0 &&
               step <= out.rows.back().count * static_cast<double>(out.rows.back().step)) {
      out.rows.back().count += (next.count - 1) * static_cast<double>(next.step / out.rows.back().step);
    } else {
      out.rows.push_back(next);
    }
  }
  return out;
}

Touched Reuse::measure(int index, int stop) const {
  const Reference& reference = references_[index];
  const KernelBuffer& buffer = kernel_.buffers[reference.buffer];
  const double all = elements_of(buffer);
  double runs = 1;
  const auto count = [&](int64_t bytes) {
    const int64_t granule = std::max<int64_t>(1, bytes / size_of(buffer.dtype));
    const Box b = box(reference, stop, granule);
    bool aligned = reference.instr->slice.offset.base % granule == 0;
    double n = 1, apart = 1;
    for (const Stride& row : b.rows) {
      aligned = aligned && row.step % granule == 0;
      n *= row.count;
      if (row.step * size_of(buffer.dtype) > kFollowed) apart *= row.count;
    }
    if (bytes == kLineBytes) runs = apart;
    const double unit = static_cast<double>(granule);
    n *= aligned ? std::ceil(b.run / unit) : (b.run - 1) / unit + 1;
    return std::min(n, std::ceil(all / unit));
  };
  const double elements = count(1), lines = count(kLineBytes), pages = count(kPage);
  return {elements, lines, pages, std::min(runs, lines)};
}

int Reuse::meeting(int a, int b) const {
  while (a != b) (a > b ? a : b) = loops_[a > b ? a : b].parent;  // a loop's parent has a lower number than the loop
  return a;
}

bool Reuse::is_inside(int loop, int outer) const {
  while (loop > outer) loop = loops_[loop].parent;
  return loop == outer;
}

void Reuse::link() {
  for (int r = 0; r < static_cast<int>(references_.size()); ++r) {
    for (int p = r - 1; p >= 0 && references_[r].earlier < 0; --p) {
      if (references_[p].buffer != references_[r].buffer) continue;
      const int both = meeting(references_[p].loop, references_[r].loop);
      const bool scratch = kernel_.buffers[references_[r].buffer].level == Level::kShared;
      if (!scratch && references_[p].instr->slice.offset.base != references_[r].instr->slice.offset.base) continue;
      const double mine = measure(r, both).elements, theirs = measure(p, both).elements;
      if (std::min(mine, theirs) >= kAlike * std::max(mine, theirs)) references_[r].earlier = p;
    }
  }
}

double Reuse::union_bytes(int loop, int stop) const {
  std::map<BufferId, double> lines;
  for (int r = 0; r < static_cast<int>(references_.size()); ++r) {
    const Reference& reference = references_[r];
    if (!is_inside(reference.loop, loop)) continue;
    if (reference.earlier >= 0 && is_inside(references_[reference.earlier].loop, loop)) continue;
    lines[reference.buffer] += measure(r, stop).lines;
  }
  double bytes = 0;
  for (const auto& [id, n] : lines) {
    const KernelBuffer& buffer = kernel_.buffers[id];
    const double all = elements_of(buffer) * static_cast<double>(size_of(buffer.dtype));
    bytes += std::min(n * kLineBytes, std::ceil(all / kLineBytes) * kLineBytes);
  }
  return bytes;
}

// Returns the share of the cache lines of a box (what a reference touches, reuse.h) that do not fit into the cache sets
// which the box's strides reach.
double Reuse::conflicts(int index, int stop, const Cache& cache) const {
  if (cache.ways == 0) return 0;
  const Reference& reference = references_[index];
  const int64_t size = size_of(kernel_.buffers[reference.buffer].dtype);
  const Box b = box(reference, stop, kLineBytes / size);
  const double run = std::ceil(b.run * static_cast<double>(size) / kLineBytes);
  const int64_t period = cache.bytes / cache.ways;
  double lines = run, sets = run;
  for (const Stride& row : b.rows) {
    lines *= row.count;
    sets *= std::min(row.count, static_cast<double>(period / std::gcd(row.step * size, period)));
  }
  return miss_share(lines, static_cast<double>(cache.ways) * std::min(sets, static_cast<double>(period / kLineBytes)));
}

double Reuse::misses(int index, const Cache& cache, bool cold) const {
  const Reference& reference = references_[index];
  const double capacity = static_cast<double>(cache.bytes);
  double inside = measure(index, reference.loop).lines;
  // `all`: the cache lines that the reference brings into the cache. `first`: those among them that nothing in this
  // launch has touched before.
  double all = inside, first = inside;
  // The data that an earlier reference has touched is still in the cache if everything that was touched since then
  // fits too.
  const auto follow = [&](int around) {
    if (reference.earlier < 0 || meeting(references_[reference.earlier].loop, reference.loop) != around) return;
    int before = references_[reference.earlier].loop;
    while (before != around && loops_[before].parent != around) before = loops_[before].parent;
    const double share = before == around ? 0 : miss_share(run_bytes_[before], capacity);
    all -= first * (1 - share);
    first *= share;
  };
  follow(reference.loop);
  for (int loop = reference.loop; loop != kLaunchLoop; loop = loops_[loop].parent) {
    const int outer = loops_[loop].parent;
    const double touched = measure(index, outer).lines;
    const double grows = inside > 0 ? touched / inside : 1;
    const double lost = std::max(conflicts(index, loop, cache), miss_share(turn_bytes_[loop], capacity));
    all *= (1 - lost) * grows + lost * std::max(grows, loops_[loop].trips);
    first *= grows;
    inside = touched;
    follow(outer);
  }
  first = std::min(first, all);
  return cold ? all : all - first * (1 - miss_share(turn_bytes_[kLaunchLoop], capacity));
}

}  // namespace wl
