#include "compiler/kernel/pipeline/pipeline.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/kernel/pipeline/groups.h"
#include "compiler/kernel/pipeline/producers.h"
#include "compiler/kernel/pipeline/rewrite.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

constexpr int64_t kAnyTrips = int64_t{1} << 40;  // an upper bound of the iterations of every loop

void append(std::vector<Instr>& to, std::vector<Instr> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// The number of a loop's iterations; nullopt if this number is not constant.
std::optional<int64_t> known_trips(const Instr& loop) {
  int64_t trips = kAnyTrips;
  for (const Affine& one : loop.trips) {
    if (!one.terms.empty()) return std::nullopt;
    trips = std::min(trips, one.base);
  }
  return trips;
}

class Pipeliner {
 public:
  Pipeliner(Kernel& kernel, const Pipeline& how) : kernel_(kernel), how_(how), rewrite_(kernel) {}

  absl::Status run() {
    if (!find(kernel_.body)) return invalid("kernel ", kernel_.name, " has no loop of variable ", how_.loop);
    loop_ = (*around_)[at_];
    trips_ = known_trips(loop_);
    stages_ = std::max<int64_t>(1, std::min(how_.stages, trips_.value_or(how_.stages)));
    if (stages_ == 1 && how_.registers == 1 && !how_.alongside) return absl::OkStatus();
    if (stages_ == 1)
      for (Pipeline::Ring& ring : how_.rings) ring.copied = false;
    WL_ASSIGN_OR_RETURN(parts_, producers_of(kernel_, loop_, how_));
    WL_RETURN_IF_ERROR(check_outside());
    WL_RETURN_IF_ERROR(check_memory());
    if (how_.alongside) return alongside();
    if (how_.registers > 1) {
      WL_ASSIGN_OR_RETURN(groups_, groups_of(kernel_, rewrite_, parts_.uses, how_.rings));
    }
    make_rings();
    std::vector<Instr> whole = first_iterations();
    if (carries()) append(whole, first_reads());
    whole.push_back(steady_loop());
    // Copies that are still under way after the loop must be waited for. With two stages and reads that run ahead there
    // are none, because the reads at the end of the last iteration have waited for all copies.
    if (!parts_.copies.empty() && (!carries() || stages_ > 2)) whole.push_back(wait_instr(0));
    const auto place = around_->erase(around_->begin() + static_cast<int64_t>(at_));
    around_->insert(place, std::make_move_iterator(whole.begin()), std::make_move_iterator(whole.end()));
    rewrite_.finish();
    return absl::OkStatus();
  }

 private:
  bool find(std::vector<Instr>& body) {
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i].op != InstrOp::kLoop) continue;
      if (find(body[i].body)) return true;
      around_ = &body;
      at_ = i;
      if (body[i].var == how_.loop && uses_rings(body[i].body)) return true;
    }
    return false;
  }

  // Whether a loop body uses the ring buffers. This tells the loop to be pipelined from other loops with the same
  // variable.
  bool uses_rings(const std::vector<Instr>& body) const {
    bool uses = false;
    each_instr(body, [&](const Instr& instr) {
      for (const Pipeline::Ring& ring : how_.rings) uses = uses || instr.slice.buffer == ring.buffer;
    });
    return uses;
  }

  // Checks that no instruction outside the loop reads what the loop leaves in a buffer. Instructions before the loop
  // are checked as well, because a loop around both may run them again after it.
  absl::Status check_outside() const {
    std::vector<const Instr*> before, after;
    bool passed = false;
    note_outside(kernel_.body, passed, before, after);
    after.insert(after.end(), before.begin(), before.end());
    for (const Pipeline::Ring& ring : how_.rings) {
      const auto first = std::find_if(after.begin(), after.end(),
                                      [&](const Instr* instr) { return instr->slice.buffer == ring.buffer; });
      if (first != after.end() && !info((*first)->op).stores())
        return invalid("kernel ", kernel_.name, " is not pipelined: what the loop leaves is read by ",
                       print(kernel_, **first));
    }
    return absl::OkStatus();
  }
  void note_outside(const std::vector<Instr>& body, bool& passed, std::vector<const Instr*>& before,
                    std::vector<const Instr*>& after) const {
    for (const Instr& instr : body) {
      if (instr.op != InstrOp::kLoop) {
        (passed ? after : before).push_back(&instr);
      } else if (&instr == &(*around_)[at_]) {
        passed = true;
      } else {
        note_outside(instr.body, passed, before, after);
      }
    }
  }

  absl::Status check_memory() const {
    for (const Pipeline::Ring& ring : how_.rings)
      for (size_t other = 0; other < kernel_.buffers.size(); ++other)
        if (kernel_.overlap(ring.buffer, static_cast<BufferId>(other)))
          return invalid("kernel ", kernel_.name, " is not pipelined: ", kernel_.buffers[ring.buffer].name,
                         " shares its memory with ", kernel_.buffers[other].name);
    return absl::OkStatus();
  }

  // Turns every buffer into a ring with one slot per stage, and moves the buffers that follow it to higher addresses.
  void make_rings() {
    if (stages_ == 1) return;
    for (const Pipeline::Ring& ring : how_.rings) {
      KernelBuffer& buffer = kernel_.buffers[ring.buffer];
      slots_[ring.buffer] = elements(buffer.shape);
      const auto padded = [&] { return (kernel_.bytes_of(buffer) + 63) / 64 * 64; };
      const int64_t before = padded();
      if (buffer.shape.empty() || buffer.shape[0] != 1) buffer.shape.insert(buffer.shape.begin(), 1);
      buffer.shape[0] = stages_;
      const int64_t growth = padded() - before;
      for (KernelBuffer& other : kernel_.buffers)
        if ((other.level == Level::kShared || other.level == Level::kCluster) && other.byte_offset > buffer.byte_offset)
          other.byte_offset += growth;
    }
  }

  Slice in_slot(Slice slice, const Affine& slot) const {
    const auto size = slots_.find(slice.buffer);
    if (size == slots_.end()) return slice;
    Affine offset = sum(fixed(slice.offset.base), slot, size->second);
    slice.offset = sum(std::move(offset), {0, slice.offset.terms});
    return slice;
  }
  std::vector<Instr> in_slot(std::vector<Instr> instrs, const Affine& slot) const {
    each_instr(instrs, [&](Instr& instr) {
      instr.slice = in_slot(std::move(instr.slice), slot);
      instr.into = in_slot(std::move(instr.into), slot);
    });
    return instrs;
  }

  // The slot of the ring buffers that an iteration uses.
  Affine slot_of(const char* name, const Affine& iteration) {
    if (stages_ == 1) return fixed(0);
    return rewrite_.derived(name, {iteration}, 1, stages_, how_.loop);
  }

  std::vector<Instr> moved(const std::vector<Instr>& instrs, const Affine& iteration, const Affine& slot) {
    std::vector<Instr> out;
    for (const Instr& instr : instrs) out.push_back(rewrite_.moved(instr, {how_.loop, iteration}));
    return in_slot(std::move(out), slot);
  }

  // The asynchronous copies of an iteration. If the loop has no such iteration, they write zeros.
  std::vector<Instr> copies(const Affine& iteration, const Affine& slot) {
    std::vector<Instr> out = moved(parts_.copies, iteration, slot);
    const bool has = trips_ && iteration.terms.empty() && iteration.base < *trips_;
    for (Instr& copy : out) {
      if (has) continue;
      const std::vector<int64_t> all(copy.slice.strides.size(), 0);
      for (const Affine& trips : loop_.trips) {
        if (trips.terms.empty())
          copy.guards.push_back({iteration, all, trips.base});
        else
          copy.guards.push_back({sum(sum(trips, fixed(-1)), iteration, -1), all, kAnyTrips});
      }
    }
    out.push_back(commit_instr());
    return out;
  }

  // The producers of the first stages - 1 iterations, placed before the loop with tiles of their own. If the loop has
  // no such iteration, copies write zeros, and loads and stores do not run. But reads that run ahead may read the slot
  // of an iteration that the loop does not have; stores then fill that slot with what the last iteration produces.
  std::vector<Instr> first_iterations() {
    std::vector<Instr> out;
    for (int64_t i = 0; i + 1 < stages_; ++i) {
      std::vector<Instr> one;
      if (!parts_.copies.empty()) one = copies(fixed(i), fixed(i));
      const bool always = i > 0 && carries() && !trips_ && !parts_.stores.empty();
      const Affine iteration = always ? or_last(fixed(i), "early") : fixed(i);
      std::vector<Instr> through = moved(parts_.loads, iteration, fixed(i));
      append(through, moved(parts_.stores, iteration, fixed(i)));
      append(one, where_there_is(always ? 0 : i, std::move(through)));
      append(out, own_tiles(std::move(one), iteration));
    }
    return out;
  }

  // Returns `iteration` or the last iteration of the loop, whichever is earlier.
  Affine or_last(const Affine& iteration, const char* name) {
    std::vector<Affine> of = {iteration};
    for (const Affine& trips : loop_.trips) of.push_back(sum(trips, fixed(-1)));
    return rewrite_.derived(name, std::move(of), 1, 0, how_.loop);
  }

  // Makes instructions conditional: they run only if the loop has iteration number `iteration`.
  std::vector<Instr> where_there_is(int64_t iteration, std::vector<Instr> instrs) {
    if (instrs.empty() || trips_) return instrs;
    Instr maybe;
    maybe.op = InstrOp::kLoop;
    maybe.var = rewrite_.loop_var("first", how_.loop);
    maybe.trips = {fixed(1)};
    for (const Affine& trips : loop_.trips) maybe.trips.push_back(sum(trips, fixed(-iteration)));
    maybe.body = std::move(instrs);
    std::vector<Instr> out;
    out.push_back(std::move(maybe));
    return out;
  }

  std::vector<Instr> own_tiles(std::vector<Instr> instrs, const Affine& iteration) {
    std::map<TileId, TileId> tiles;
    const auto own = [&](TileId& tile) {
      if (!parts_.tiles.contains(tile)) return;
      const auto [known, is_new] = tiles.try_emplace(tile, -1);
      if (is_new) {
        known->second = rewrite_.like(tile, *parts_.tiles.begin());
        kernel_.tiles[known->second] = rewrite_.moved(kernel_.tiles[tile], {how_.loop, iteration});
      }
      tile = known->second;
    };
    each_instr(instrs, [&](Instr& instr) {
      for (TileId& arg : instr.args) own(arg);
      own(instr.result);
    });
    return instrs;
  }

  // The pipelined loop: each iteration uses its own slot and fills the slot of the iteration stages - 1 later.
  Instr steady_loop() {
    const Affine now = affine(how_.loop), later = affine(how_.loop, 1, stages_ - 1);
    const bool copies_any = !parts_.copies.empty(), loads_any = !parts_.stores.empty();
    // For iterations beyond the end of the loop, the values of the last iteration are loaded again and not used.
    const Affine next = loads_any ? or_last(later, "next") : later;
    const Affine slot = slot_of("slot", now), next_slot = slot_of("next_slot", later);
    const int pending = static_cast<int>(stages_) - (parts_.own ? 1 : 2);
    const bool waits = copies_any && !carries();
    std::vector<Instr> body;
    if (waits && !parts_.own) body.push_back(wait_instr(pending));
    // If the uses end with a wait for matrix products, the copies start before that wait, so that both overlap.
    const bool beside = copies_any && !parts_.uses.empty() && parts_.uses.back().op == InstrOp::kMmaWait;
    if (copies_any && !beside) append(body, copies(later, next_slot));
    if (waits && parts_.own) body.push_back(wait_instr(pending));
    append(body, moved(parts_.loads, next, next_slot));
    std::vector<Instr> stores = moved(parts_.stores, next, next_slot);
    if (stages_ == 1) append(body, std::exchange(stores, {}));
    append(body, groups_ ? uses_ahead(slot, std::exchange(stores, {})) : in_slot(parts_.uses, slot));
    if (beside) {
      std::vector<Instr> started = copies(later, next_slot);
      body.insert(body.end() - 1, std::make_move_iterator(started.begin()), std::make_move_iterator(started.end()));
    }
    append(body, std::move(stores));
    std::set<TileId> copied;
    for (const Instr& copy : parts_.copies) copied.insert(copy.args[0]);
    for (TileId tile : parts_.tiles)
      kernel_.tiles[tile] = rewrite_.moved(kernel_.tiles[tile], {how_.loop, copied.contains(tile) ? later : next});
    Instr loop = loop_;
    loop.body = std::move(body);
    return loop;
  }

  // The pipelined loop of a kernel with copier threads. The copiers fill a slot and arrive at its phase in `filled`;
  // the teams use the slot and arrive at its phase in `used`.
  absl::Status alongside() {
    if (!parts_.stores.empty() || parts_.copies.empty() || !trips_ || stages_ < 2 || how_.registers > 1)
      return invalid("kernel ", kernel_.name,
                     " has no copiers: they copy all that a loop of known length uses, stages"
                     " ahead, and registers are filled where it is used");
    make_rings();
    const BufferId filled = phases("filled", kernel_.copiers);
    const BufferId used = phases("used", kernel_.team * kernel_.teams / kernel_.wave);
    const Affine now = sum(how_.before, affine(how_.loop));
    const Affine slot = rewrite_.derived("slot", {now}, 1, stages_, how_.loop);
    const Affine round = rewrite_.derived("round", {now}, stages_, 2, how_.loop);
    const Affine last_round = rewrite_.derived("last_round", {sum(now, fixed(stages_))}, stages_, 2, how_.loop);
    Instr copiers;
    copiers.op = InstrOp::kLoop;
    copiers.role = Role::kCopiers;
    copiers.var = rewrite_.loop_var("alongside", how_.loop);
    copiers.trips = {fixed(1)};
    copiers.body.push_back(phase_instr(InstrOp::kAwait, used, slot, last_round));
    append(copiers.body, in_slot(parts_.copies, slot));
    copiers.body.push_back(phase_instr(InstrOp::kArriveCopied, filled, slot));
    Instr& loop = (*around_)[at_];
    loop.body.clear();
    loop.body.push_back(std::move(copiers));
    loop.body.push_back(phase_instr(InstrOp::kAwait, filled, slot, round));
    append(loop.body, in_slot(parts_.uses, slot));
    loop.body.push_back(phase_instr(InstrOp::kArrive, used, slot));
    rewrite_.finish();
    return absl::OkStatus();
  }

  // Adds a buffer of phases, one for every slot of the rings, behind all other scratch.
  BufferId phases(const char* name, int arrivals) {
    KernelBuffer buffer{name, DType::i64, {stages_}, Level::kShared};
    buffer.byte_offset = (kernel_.scratch_bytes() + 63) / 64 * 64;
    buffer.arrivals = arrivals;
    kernel_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(kernel_.buffers.size()) - 1;
  }

  // Whether the first reads of an iteration run in the iteration before it.
  bool carries() const { return groups_ && stages_ > 1; }

  std::vector<Instr> reads(size_t group, const Affine& turn, const Affine& slot) {
    return in_slot(groups_->reads(rewrite_, group, turn), slot);
  }

  std::vector<Instr> first_reads() {
    std::vector<Instr> out;
    if (!parts_.copies.empty()) out.push_back(wait_instr(static_cast<int>(stages_) - 2));
    std::vector<Instr> first = reads(0, fixed(0), fixed(0));
    if (!trips_)  // a loop without iterations fills no buffer that could be read, so the tiles are zero
      for (const Instr& read : first) out.push_back(fill_instr(read.result, 0));
    append(out, where_there_is(0, std::move(first)));
    return out;
  }

  // The uses of an iteration, with the reads of every group placed before the uses of the preceding group. If the
  // groups are in an inner loop, a turn is one iteration of it. The last turn is placed after the inner loop, because
  // its last reads belong to the next iteration of the outer loop and so to another slot. Before these last reads,
  // `stores` must be done and copies must have arrived.
  std::vector<Instr> uses_ahead(const Affine& slot, std::vector<Instr> stores) {
    std::vector<Instr> out;
    const auto turn = [&](const Affine& at, std::vector<Instr> after) {
      std::vector<Instr> one;
      const size_t n = groups_->groups.size();
      for (size_t group = 0; group < n; ++group) {
        append(one, group + 1 < n ? reads(group + 1, at, slot) : std::exchange(after, {}));
        append(one, groups_->uses(rewrite_, group, at));
      }
      return one;
    };
    if (!carries()) append(out, reads(0, fixed(0), slot));
    if (groups_->turns > 1) {
      Instr loop = groups_->inner;
      loop.trips = {fixed(groups_->turns - 1)};
      loop.body = turn(affine(loop.var), reads(0, affine(loop.var, 1, 1), slot));
      out.push_back(std::move(loop));
    }
    std::vector<Instr> last = std::move(stores);
    if (carries()) {
      if (!parts_.copies.empty()) last.push_back(wait_instr(static_cast<int>(stages_) - 2));
      append(last, reads(0, fixed(0), slot_of("ahead", affine(how_.loop, 1, 1))));
    }
    append(out, turn(fixed(groups_->turns - 1), std::move(last)));
    return out;
  }

  Kernel& kernel_;
  Pipeline how_;
  Rewrite rewrite_;
  std::vector<Instr>* around_ = nullptr;  // the instruction list that contains the pipelined loop, at index at_
  size_t at_ = 0;
  Instr loop_;
  std::optional<int64_t> trips_;
  int64_t stages_ = 1;
  Producers parts_;
  std::optional<Groups> groups_;       // if reads run ahead: the reads of the buffers and their uses, in groups
  std::map<BufferId, int64_t> slots_;  // for each ring buffer: number of elements of a slot
};

}  // namespace

absl::Status pipeline(Kernel& kernel, const Pipeline& how) {
  return Pipeliner(kernel, how).run();
}

}  // namespace wl
