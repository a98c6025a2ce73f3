#include "worker/drivers/timing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace wl {
namespace {

constexpr int64_t kShort = 20'000;   // ns; in a shorter call, the overhead of clock and launch distorts the time
constexpr int64_t kSample = 60'000;  // ns that one sample should take if it consists of several calls
// ns for which a slot is warmed up. If a slot is timed alone and its first call takes at least this long, the call
// counts as a sample.
constexpr int64_t kWarm = 2'000'000;
// A call of this many ns fills the caches with its own data, so it does not matter what ran before it.
constexpr int64_t kLong = 10'000'000;
// If the mean call takes this many ns, kRoundsOfVeryLong (three) rounds are enough, since short disturbances average
// out within a call.
constexpr int64_t kVeryLong = 500'000'000;
constexpr int kRoundsOfVeryLong = 3;
constexpr double kMedianKnown = 0.015;
constexpr double kClockMoved = 0.05;

constexpr int kRoundsToLose = 8;  // number of rounds after which slots that are too slow get no more samples

// A candidate that is timed alone has lost if, for at least one row of this table, it has `samples` or more samples and
// all of them exceed `factor` times the best known time (Recipe::best_ns). Other load on the machine lengthens some
// samples but rarely all of them, and the finalists of a search are timed again side by side.
constexpr struct {
  size_t samples;
  double factor;
} kLost[] = {{2, 1.5}, {3, 1.25}, {5, 1.1}};

// Continues to warm up a slot whose first call took `ns`, and returns how many calls of it one sample should have.
int64_t warm_up(int slot, int64_t ns, const TimedRun& run) {
  int64_t spent = ns, fastest = ns;
  for (int runs = 1; spent < kWarm && runs < 200; ++runs) {
    ns = std::max<int64_t>(run(slot, 1), 1);
    spent += ns;
    fastest = std::min(fastest, ns);
  }
  return fastest < kShort ? (kSample + fastest - 1) / fastest : 1;
}

struct Slot {
  int64_t calls = 1;
  int64_t spent = 0;
  int64_t last_ns = 0;  // ns per call in the slot's latest warm-up call or sample
  Samples result = {};
};

// How calls are run, and how the clock of the machine is read after them, in MHz. If `clock_mhz` is missing or returns
// 0, the clock is not known.
struct Clocked {
  const TimedRun& run;
  const std::function<int()>& clock_mhz;
};

void add_sample(int64_t ns, Slot& slot, const Clocked& timed) {
  slot.spent += ns;
  slot.last_ns = ns / slot.calls;
  slot.result.samples_ns.push_back((ns + slot.calls / 2) / slot.calls);
  if (timed.clock_mhz) slot.result.clocks_mhz.push_back(timed.clock_mhz());
}

void take_sample(int index, Slot& slot, const Clocked& timed) {
  add_sample(timed.run(index, slot.calls), slot, timed);
}

// Makes a slot ready to be timed. The first call of the slot already counts as a sample if it takes `is_sample` ns or
// more.
void begin(int index, Slot& slot, int64_t is_sample, const Clocked& timed) {
  const int64_t first = std::max<int64_t>(timed.run(index, 1), 1);
  if (first >= is_sample) return add_sample(first, slot, timed);
  slot.last_ns = first;
  slot.calls = warm_up(index, first, timed.run);
}

// Takes one sample of every slot, in `order`. Other slots may have evicted a slot's data from the caches, so each
// sample begins with an untimed call, unless the recipe wants cold caches or the slot's calls are long.
void time_round(const Recipe& recipe, const std::vector<int>& order, std::vector<Slot>& slots, const Clocked& timed) {
  for (int i : order) {
    Slot& slot = slots[static_cast<size_t>(i)];
    if (!recipe.cold && slot.last_ns < kLong) (void)timed.run(i, 1);
    take_sample(i, slot, timed);
  }
}

// Removes from `order` the slots whose time exceeds `lost_factor` (at least 1) times the time of the fastest slot.
void drop_lost(double lost_factor, const std::vector<Slot>& slots, std::vector<int>& order) {
  const auto ns = [&](int i) { return undisturbed_ns(slots[static_cast<size_t>(i)].result.samples_ns); };
  double best = ns(order.front());
  for (int i : order) best = std::min(best, ns(i));
  std::erase_if(order, [&](int i) { return ns(i) > std::max(1.0, lost_factor) * best; });
}

// All slots get the same number of rounds, since a median over fewer rounds would describe other conditions. If the
// recipe has a lost_factor, slots that have lost get fewer rounds, and their medians are not comparable.
void time_in_rounds(const Recipe& recipe, std::vector<int> order, std::vector<Slot>& slots, const Clocked& timed) {
  for (int i : order) begin(i, slots[static_cast<size_t>(i)], INT64_MAX, timed);
  for (int rounds = 1;; ++rounds) {
    time_round(recipe, order, slots, timed);
    std::reverse(order.begin(), order.end());
    if (recipe.lost_factor > 0 && rounds >= kRoundsToLose) drop_lost(recipe.lost_factor, slots, order);
    int64_t spent = 0;
    for (int i : order) spent += slots[static_cast<size_t>(i)].spent;
    const auto n = static_cast<int64_t>(order.size());
    const bool very_long = spent >= kVeryLong * n * rounds;
    if (rounds < (very_long ? std::min(recipe.min_repeats, kRoundsOfVeryLong) : recipe.min_repeats)) continue;
    if (rounds >= recipe.max_repeats || spent >= recipe.budget_ns * n || very_long) break;
  }
}

bool is_moved(int clock, int median) {
  return std::abs(clock - median) > kClockMoved * median;
}

void repeat_at_median_clock(int index, Slot& slot, const Clocked& timed) {
  Samples& all = slot.result;
  const int moved = clock_moved(all);
  if (moved == 0 || moved * 4 > static_cast<int>(all.samples_ns.size())) return;
  const int median = median_clock(all);
  for (size_t i = 0; i < all.samples_ns.size(); ++i) {
    if (!is_moved(all.clocks_mhz[i], median)) continue;
    Slot again{.calls = slot.calls};
    take_sample(index, again, timed);
    all.samples_ns[i] = again.result.samples_ns[0];
    all.clocks_mhz[i] = again.result.clocks_mhz[0];
  }
}

bool finished(const Recipe& recipe, Slot& slot) {
  const std::vector<int64_t>& samples = slot.result.samples_ns;
  const auto n = static_cast<int>(samples.size());
  if (recipe.best_ns > 0) {
    const double behind =
        static_cast<double>(*std::min_element(samples.begin(), samples.end())) / static_cast<double>(recipe.best_ns);
    if (n >= 2 && behind > recipe.hopeless_factor) slot.result.hopeless = true;
    if (slot.result.hopeless) return true;
    for (const auto& lost : kLost)
      if (samples.size() >= lost.samples && behind > lost.factor) return true;
  }
  if (n < std::max(1, recipe.min_repeats)) return false;
  return n >= recipe.max_repeats || slot.spent >= recipe.budget_ns || median_is_known(samples, kMedianKnown);
}

}  // namespace

bool median_is_known(std::vector<int64_t> samples, double relative) {
  const auto n = static_cast<double>(samples.size());
  if (n < 7) return false;
  std::sort(samples.begin(), samples.end());
  const double half = 0.98 * std::sqrt(n);
  const auto low = static_cast<size_t>(std::max(0.0, std::floor(n / 2 - half)));
  const auto high = static_cast<size_t>(std::min(n - 1, std::ceil(n / 2 + half)));
  return static_cast<double>(samples[high] - samples[low]) <= relative * median_of(samples);
}

int median_clock(const Samples& samples) {
  return static_cast<int>(median_of({samples.clocks_mhz.begin(), samples.clocks_mhz.end()}));
}

int clock_moved(const Samples& samples) {
  const int median = median_clock(samples);
  return static_cast<int>(std::count_if(samples.clocks_mhz.begin(), samples.clocks_mhz.end(),
                                        [&](int clock) { return is_moved(clock, median); }));
}

std::vector<Samples> time_slots(const Recipe& recipe, int slots, const TimedRun& run,
                                const std::function<int()>& clock_mhz) {
  const Clocked timed{run, clock_mhz};
  std::vector<Slot> state(static_cast<size_t>(slots));
  if (slots == 1) {
    // The slot needs no warming up, since its check has just run it.
    begin(0, state[0], kWarm, timed);
    while (state[0].result.samples_ns.empty() || !finished(recipe, state[0])) take_sample(0, state[0], timed);
  } else {
    std::vector<int> order(state.size());
    std::iota(order.begin(), order.end(), 0);
    time_in_rounds(recipe, std::move(order), state, timed);
  }
  std::vector<Samples> results;
  for (int i = 0; i < slots; ++i) {
    Slot& slot = state[static_cast<size_t>(i)];
    repeat_at_median_clock(i, slot, timed);
    results.push_back(std::move(slot.result));
  }
  return results;
}

}  // namespace wl
