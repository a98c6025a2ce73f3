#include "server/jobs/whole.h"

#include <algorithm>

#include "compiler/base/sha256.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/model/roofline.h"
#include "server/jobs/search.h"

namespace wl {
namespace {

constexpr double kSameTime = 1.01;  // covers whose times differ by less than this factor count as equally fast
// A cover that was timed after the first part of its kernels' trials may become faster by this factor once its
// kernels have had all trials.
constexpr double kContender = 1.15;
constexpr double kLost = 1.2;  // a chain that is slower than the fastest by this factor is dropped after some rounds
// A cover's time is confirmed if kConfirm of its samples (or more than half of them, if that is fewer) are at most
// kConfirmWithin times as long as the cover's time.
constexpr size_t kConfirm = 4;
constexpr double kConfirmWithin = 1.03;
constexpr int64_t kFirstPart = 4;  // the kernels of simpler covers first get a job's trials divided by this number

// Numbers the buffers of a job result for a batch: first the inputs and outputs of the graph, then the intermediate
// values.
class ChainValues {
 public:
  ChainValues(const WholeCover& cover, std::vector<BufferSpec>* buffers) {
    const JobResult& result = cover.result;
    const std::vector<BufferSpec> named = buffers_of(cover.plan.graph);
    of_.assign(result.buffers.size(), -1);
    std::vector<BufferSpec> all;
    const auto add = [&](int buffer, const BufferSpec& spec) {
      // The buffer has a number already, since an output may also be an input or another output.
      if (of_[static_cast<size_t>(buffer)] >= 0) return;
      of_[static_cast<size_t>(buffer)] = static_cast<int>(all.size());
      all.push_back(spec);
    };
    size_t number = 0;
    for (const Binding& input : result.inputs) add(input.buffer, named[number++]);
    for (const Binding& output : result.outputs) add(output.buffer, named[number++]);
    for (size_t b = 0; b < of_.size(); ++b) {
      if (of_[b] >= 0) continue;
      const ResultBuffer& buffer = result.buffers[b];
      of_[b] = static_cast<int>(all.size() + intermediates_.size());
      intermediates_.push_back(BufferSpec{"", buffer.dtype, buffer.shape, false, {}, 0}.bytes());
    }
    *buffers = std::move(all);
  }

  int of(int buffer) const { return of_[static_cast<size_t>(buffer)]; }
  const std::vector<int64_t>& intermediates() const { return intermediates_; }

 private:
  std::vector<int> of_;  // for each buffer of the job result, its number in the batch
  std::vector<int64_t> intermediates_;
};

bool runs_the_same(const WholeCover& a, const WholeCover& b) {
  const auto key = [](const WholeCover& cover, const Step& step) { return cover.result.groups[step.group].key; };
  return std::equal(a.result.steps.begin(), a.result.steps.end(), b.result.steps.begin(), b.result.steps.end(),
                    [&](const Step& x, const Step& y) { return key(a, x) == key(b, y) && x.arguments == y.arguments; });
}

std::string key_of(const std::vector<WholeCover>& covers, const TuneOptions& options) {
  const JobPlan& plan = covers.front().plan;
  Encoder key("warploom.whole", 1);
  key.text(graph_hash(plan.graph)).text(plan.device.fingerprint()).text(environment_of(plan.device));
  key.text(options.cold ? "cold" : "warm");
  for (const WholeCover& cover : covers) {
    key.text(cover.name);
    for (const Step& step : cover.result.steps) {
      key.text(cover.result.groups[step.group].record_digest);
      for (int argument : step.arguments) key.integer(argument);
    }
  }
  return key.hash();
}

double time_of(const TimedCover& cover) {
  return undisturbed_ns(cover.samples_ns);
}

// Returns the least time of the covers; 0 if no cover has a time.
double least_time(const std::vector<TimedCover>& timed) {
  double least = 0;
  for (const TimedCover& cover : timed) {
    const double ns = time_of(cover);
    if (ns > 0 && (least == 0 || ns < least)) least = ns;
  }
  return least;
}

}  // namespace

int64_t first_trials(int64_t trials) {
  return std::min<int64_t>(trials, std::max<int64_t>(kRoundSize, trials / kFirstPart));
}

void drop_equal(std::vector<WholeCover>& covers) {
  std::vector<WholeCover> kept;
  for (WholeCover& cover : covers) {
    const auto same = [&](const WholeCover& other) { return runs_the_same(other, cover); };
    if (std::none_of(kept.begin(), kept.end(), same)) kept.push_back(std::move(cover));
  }
  covers = std::move(kept);
}

Batch chains_of(const std::vector<WholeCover>& covers, const Records& records, const TuneOptions& options) {
  Batch batch;
  batch.phase = 1;
  batch.problem.key = key_of(covers, options);
  batch.recipe.cold = options.cold;
  batch.recipe.interleave = true;
  batch.recipe.budget_ns = 1'500'000'000;
  batch.recipe.lost_factor = kLost;
  batch.recipe.deadline_ns = 60'000'000'000;
  std::map<std::string, int> kernel_of;  // index in batch.candidates of each kernel, by the digest of its record
  for (const WholeCover& cover : covers) {
    const ChainValues values(cover, &batch.problem.buffers);
    KernelChain chain;
    chain.trial = static_cast<int64_t>(batch.chains.size());
    chain.plan = cover.name;
    chain.intermediates = values.intermediates();
    for (const Step& step : cover.result.steps) {
      const std::string& key = cover.result.groups[step.group].key;
      const auto other = cover.other.find(key);
      const KernelRecord& record = other != cover.other.end() ? other->second : records.at(key);
      const auto [at, is_new] = kernel_of.try_emplace(record.digest, static_cast<int>(batch.candidates.size()));
      if (is_new) {
        // A kernel's trial number differs from the trial numbers of all chains, so that a worker that knows no chains
        // never reports a trial under a chain's number.
        const auto number = static_cast<int64_t>(covers.size() + batch.candidates.size());
        batch.candidates.push_back({number, record.plan, record.source});
      }
      ChainStep& made = chain.steps.emplace_back();
      made.kernel = at->second;
      for (int argument : step.arguments) made.arguments.push_back(values.of(argument));
    }
    batch.chains.push_back(std::move(chain));
  }
  return batch;
}

double floor_of(const std::vector<WholeCover>& covers) {
  double least = 0;
  for (const WholeCover& cover : covers) {
    double sum = 0;
    for (const GroupResult& group : cover.result.groups) {
      const auto& groups = cover.plan.groups;
      const auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.key == group.key; });
      if (at != groups.end()) sum += static_cast<double>(group.count) * floor_ns(at->graph, cover.plan.machine);
    }
    least = least > 0 ? std::min(least, sum) : sum;
  }
  return least;
}

std::vector<Trial> together(const std::vector<Trial>& trials) {
  std::vector<Trial> sums;
  for (const Trial& trial : trials) {
    const auto at = std::find_if(sums.begin(), sums.end(), [&](const Trial& sum) { return sum.plan == trial.plan; });
    if (at == sums.end()) {
      sums.push_back(trial);
    } else if (at->outcome != Outcome::kCorrect || trial.outcome != Outcome::kCorrect) {
      // A cover that failed in one batch counts as failed, so that it is not served.
      if (at->outcome == Outcome::kCorrect) *at = trial;
    } else {
      at->samples_ns.insert(at->samples_ns.end(), trial.samples_ns.begin(), trial.samples_ns.end());
    }
  }
  return sums;
}

// Whether enough samples are close to the time that counts (undisturbed_ns()). Load that comes and goes leaves some
// samples undisturbed, and such samples are close together.
bool is_confirmed(const std::vector<int64_t>& samples_ns) {
  const double ns = undisturbed_ns(samples_ns);
  const auto close = std::count_if(samples_ns.begin(), samples_ns.end(),
                                   [&](int64_t sample) { return static_cast<double>(sample) <= kConfirmWithin * ns; });
  return static_cast<size_t>(close) >= std::min(kConfirm, samples_ns.size() / 2 + 1);
}

bool were_disturbed(const std::vector<Trial>& trials) {
  std::vector<const Trial*> timed;
  const std::vector<Trial> sums = together(trials);
  double best = 0;
  for (const Trial& trial : sums) {
    if (trial.outcome != Outcome::kCorrect || trial.samples_ns.empty()) continue;
    timed.push_back(&trial);
    const double ns = undisturbed_ns(trial.samples_ns);
    best = best > 0 ? std::min(best, ns) : ns;
  }
  std::erase_if(timed, [&](const Trial* trial) { return undisturbed_ns(trial->samples_ns) > kContender * best; });
  return timed.size() > 1 &&
         !std::all_of(timed.begin(), timed.end(), [](const Trial* trial) { return is_confirmed(trial->samples_ns); });
}

double kernels_ns(const JobResult& result) {
  double sum = 0;
  for (const GroupResult& group : result.groups)
    sum += static_cast<double>(group.count) * undisturbed_ns(group.samples_ns);
  return sum;
}

std::vector<TimedCover> decide(const std::vector<WholeCover>& covers, const std::vector<Trial>& trials) {
  std::vector<TimedCover> timed;
  for (const WholeCover& cover : covers) {
    TimedCover& out = timed.emplace_back();
    out.name = cover.name;
    out.kernels = cover.result.kernels;
    out.bytes = cover.result.bytes;
    out.kernels_ns = kernels_ns(cover.result);
    const auto trial =
        std::find_if(trials.begin(), trials.end(), [&](const Trial& item) { return item.plan == cover.name; });
    if (trial == trials.end()) continue;
    if (trial->outcome != Outcome::kCorrect) {
      out.why = cat("not timed: ", kOutcomeNames[static_cast<int>(trial->outcome)], ": ", trial->message);
      continue;
    }
    out.samples_ns = trial->samples_ns;
  }
  const double least = least_time(timed);
  TimedCover* best = nullptr;
  int close = 0;
  for (TimedCover& cover : timed) {
    const double ns = time_of(cover);
    if (!(ns > 0) || ns > least * kSameTime) continue;
    ++close;
    const auto rank = [](const TimedCover& c) { return std::tuple(c.kernels, c.bytes, time_of(c)); };
    if (best == nullptr || rank(cover) < rank(*best)) best = &cover;
  }
  if (best == nullptr) {
    timed.front().chosen = true;
    append(&timed.front().why, timed.front().why.empty() ? "" : "; ", "no cover was timed");
    return timed;
  }
  best->chosen = true;
  best->why = timed.size() == 1 ? "the only one"
              : close == 1      ? "took the least time"
                                : "the fewest kernels, then bytes, of those within 1 % of the least time";
  return timed;
}

std::vector<size_t> contenders(const std::vector<TimedCover>& timed) {
  const double least = least_time(timed);
  std::vector<size_t> close;
  for (size_t i = 0; i < timed.size(); ++i)
    if (time_of(timed[i]) > 0 && time_of(timed[i]) <= least * kContender) close.push_back(i);
  return close;
}

}  // namespace wl
