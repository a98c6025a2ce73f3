#include "worker/drivers/timing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace wl {
namespace {

constexpr int64_t kShort = 20'000;    // ns; a shorter single call is disturbed by the clock and the launch
constexpr int64_t kSample = 60'000;   // ns that an inner loop should take
constexpr int64_t kWarm = 2'000'000;  // ns of warming up, unless one call takes longer
constexpr double kMedianKnown = 0.015;
constexpr double kClockMoved = 0.05;

// A candidate has lost when all of so many samples exceed the best time by so much: other load makes some samples
// longer but not all of them, and the finalists are timed again side by side.
constexpr struct {
  size_t samples;
  double factor;
} kLost[] = {{2, 1.5}, {3, 1.25}, {5, 1.1}};

// Warms the slot up and returns the number of calls per sample.
int64_t warm_up(int slot, const TimedRun& run) {
  int64_t spent = 0, fastest = INT64_MAX;
  int runs = 0;
  do {
    const int64_t ns = std::max<int64_t>(run(slot, 1), 1);
    spent += ns;
    fastest = std::min(fastest, ns);
    ++runs;
  } while (spent < kWarm && runs < 200);
  return fastest < kShort ? (kSample + fastest - 1) / fastest : 1;
}

struct Slot {
  int64_t calls = 1;
  int64_t spent = 0;
  Samples result;
};

// Runs timed calls and reads the machine's clock after each. 0, or no way to read it, means not known.
struct Clocked {
  const TimedRun& run;
  const std::function<int()>& clock_mhz;
};

void add_sample(int64_t ns, Slot& slot, const Clocked& timed) {
  slot.spent += ns;
  slot.result.samples_ns.push_back((ns + slot.calls / 2) / slot.calls);
  if (timed.clock_mhz) slot.result.clocks_mhz.push_back(timed.clock_mhz());
}

void take_sample(int index, Slot& slot, const Clocked& timed) {
  add_sample(timed.run(index, slot.calls), slot, timed);
}

// Makes a slot that is timed alone ready. It has just run for its check, so a first call that takes as long as warming
// up is a sample already.
void begin_alone(Slot& slot, const Clocked& timed) {
  const int64_t first = std::max<int64_t>(timed.run(0, 1), 1);
  if (first >= kWarm) return add_sample(first, slot, timed);
  slot.calls = warm_up(0, timed.run);
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
    Slot again{slot.calls, 0, {}};
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
  std::vector<int> order;
  for (int i = 0; i < slots; ++i) {
    order.push_back(i);
    if (slots > 1) state[static_cast<size_t>(i)].calls = warm_up(i, run);
  }
  if (slots == 1) {
    begin_alone(state[0], timed);
    while (state[0].result.samples_ns.empty() || !finished(recipe, state[0])) take_sample(0, state[0], timed);
  } else {
    // All slots get the same number of rounds: a median over fewer rounds would describe other conditions.
    for (int64_t spent = 0, round = 0;; ++round) {
      for (int i : order) {
        Slot& slot = state[static_cast<size_t>(i)];
        if (!recipe.cold) (void)run(i, 1);  // other slots may have evicted its data from the cache
        const int64_t before = slot.spent;
        take_sample(i, slot, timed);
        spent += slot.spent - before;
      }
      std::reverse(order.begin(), order.end());
      if (round + 1 < std::max(1, recipe.min_repeats)) continue;
      if (round + 1 >= recipe.max_repeats || spent >= recipe.budget_ns * slots) break;
    }
  }
  std::vector<Samples> results;
  for (int i : order) repeat_at_median_clock(i, state[static_cast<size_t>(i)], timed);
  for (Slot& slot : state) results.push_back(std::move(slot.result));
  return results;
}

}  // namespace wl
