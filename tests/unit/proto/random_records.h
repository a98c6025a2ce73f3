// Random records whose names are legal, so that they survive conversion.
#pragma once

#include <cmath>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire.h"

namespace wl::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool flip() { return below(2) == 0; }
  double real() {
    return std::ldexp(static_cast<double>(below(1 << 30)) - (1 << 29), static_cast<int>(below(60)) - 30);
  }
  double amount() { return std::fabs(real()); }
  double seconds() { return static_cast<double>(below(1 << 30)) / 1024; }
  uint64_t bits() { return engine_(); }
  std::string text() {
    std::string out;
    for (int64_t i = below(20); i > 0; --i) out.push_back(static_cast<char>(' ' + below(95)));
    return out;
  }
  std::string some(std::string_view alphabet, int64_t length) {
    std::string out;
    for (int64_t i = 0; i < length; ++i) out.push_back(alphabet[static_cast<size_t>(below(std::ssize(alphabet)))]);
    return out;
  }
  std::string digest() { return some("0123456789abcdef", 64); }
  std::string word() { return some("abcxyzABC019_.:+-/", 1 + below(20)); }
  std::string identifier() { return "k" + some("abcxyzABC019_", below(20)); }
  template <typename Make>
  auto list(Make make) {
    std::vector<decltype(make())> out;
    for (int64_t i = below(5); i > 0; --i) out.push_back(make());
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

inline Fill random_fill(Random& r) {
  return {r.real(), r.real(), r.below(100), r.below(100), r.list([&] { return r.real(); })};
}
inline BufferSpec random_buffer(Random& r) {
  return {
      r.text(), static_cast<DType>(r.below(kDTypeCount)), r.list([&] { return r.below(9); }), r.flip(), random_fill(r),
      r.bits()};
}
inline Problem random_problem(Random& r) {
  return {r.digest(), r.list([&] { return random_buffer(r); })};
}
inline Source random_source(Random& r) {
  return {r.word(),
          r.word(),
          r.text(),
          r.text(),
          r.identifier(),
          r.below(1000),
          static_cast<int>(r.below(64)),
          r.below(1 << 20),
          static_cast<int>(r.below(17)),
          static_cast<int>(r.below(17)),
          1,
          0,
          r.flip() ? r.word() : ""};
}
inline Device random_device(Random& r) {
  return {"cpu" + r.word(),
          r.text(),
          1 + static_cast<int>(r.below(64)),
          r.below(1 << 20),
          r.below(1 << 20),
          r.below(1 << 20),
          r.list([&] { return r.word(); }),
          r.text(),
          r.text(),
          r.flip() ? r.text() : ""};
}
inline CodeFacts random_code(Random& r) {
  const auto small = [&] { return static_cast<int>(r.below(100)); };
  return {1 + small(),
          r.below(1 << 20),
          r.below(1 << 20),
          r.below(1 << 20),
          r.below(1 << 20),
          small(),
          small(),
          small(),
          small(),
          r.flip(),
          static_cast<double>(r.below(9)) / 8};
}
inline Trial random_trial(Random& r) {
  return {r.below(100),
          r.text(),
          static_cast<Outcome>(r.below(kOutcomeCount)),
          r.list([&] { return r.below(1 << 30); }),
          r.flip(),
          r.amount(),
          r.amount(),
          r.text(),
          r.seconds(),
          r.seconds(),
          r.seconds(),
          r.flip() ? r.digest() : "",
          r.flip() ? random_code(r) : CodeFacts{},
          static_cast<int>(r.below(2000)),
          r.list([&] { return r.below(2000); })};
}
inline Recipe random_recipe(Random& r) {
  const int least = 1 + static_cast<int>(r.below(9));
  return {r.flip(),
          least,
          least + static_cast<int>(r.below(9)),
          r.below(1 << 30),
          1 + r.below(1 << 30),
          r.amount(),
          r.below(1 << 30),
          r.flip(),
          static_cast<int>(r.below(9)),
          r.amount()};
}
inline Batch random_batch(Random& r) {
  Batch batch;
  batch.id = r.text();
  batch.problem = random_problem(r);
  batch.problem.buffers.push_back({"y", DType::f32, {7, 9}, true, {}, 0});
  const int last = static_cast<int>(batch.problem.buffers.size()) - 1;
  batch.checks = r.list([&] {
    return Check{r.bits(), r.list([&] { return Check::Sample{last, r.below(63), r.real(), r.amount()}; })};
  });
  batch.recipe = random_recipe(r);
  batch.candidates = r.list([&] { return Candidate{r.below(100), r.text(), random_source(r)}; });
  if (!batch.candidates.empty() && r.flip()) {
    batch.chains = r.list([&] {
      KernelChain chain{r.below(100), r.word(), r.list([&] { return r.below(1 << 30); }), {}};
      const auto values = static_cast<int64_t>(batch.problem.buffers.size() + chain.intermediates.size());
      chain.steps.push_back({static_cast<int>(r.below(std::ssize(batch.candidates))),
                             r.list([&] { return static_cast<int>(r.below(values)); })});
      return chain;
    });
  }
  batch.keep_objects = r.flip();
  batch.phase = r.below(5);
  if (r.flip()) batch.limits = {32, 1024, 2048, 32, 255, 65536, r.below(1 << 20), r.below(1 << 20)};
  return batch;
}
inline OutcomeCounts random_counts(Random& r) {
  OutcomeCounts out{};
  for (int64_t& count : out) count = r.below(5);
  return out;
}
inline KernelRecord random_record(Random& r) {
  KernelRecord out;
  out.key = r.digest();
  out.environment = r.text();
  out.device = random_device(r);
  out.graph = r.text();
  out.plan = r.text();
  out.default_plan = r.text();
  out.problem = random_problem(r);
  out.source = random_source(r);
  out.object_sha256 = r.flip() ? r.digest() : "";
  out.samples_ns = r.list([&] { return r.below(1 << 30); });
  out.default_samples_ns = r.list([&] { return r.below(1 << 30); });
  out.max_error = r.amount();
  out.bound = r.amount();
  out.check_seeds = r.list([&] { return r.bits(); });
  out.strategy = r.word();
  out.trials_asked = r.below(1000);
  out.budget_s = r.amount();
  out.outcomes = random_counts(r);
  out.bytes = r.below(1 << 30);
  out.ops = r.below(99);
  out.flops = r.amount();
  out.compile_s = r.seconds();
  out.check_s = r.seconds();
  out.measure_s = r.seconds();
  out.digest = record_digest(out);
  return out;
}
inline TuneOptions random_options(Random& r) {
  TuneOptions out;
  // This structured binding names every field of TuneOptions, so it does not compile when another field is added.
  auto& [target, trials, budget_s, seed, strategy, effort, cover, cold, require_cached, retune, at_once, kernels_alone,
         background, libraries, device] = out;
  target = "cpu" + r.word();
  trials = r.below(1000);
  budget_s = static_cast<double>(r.below(1000)) / 8;
  seed = r.bits();
  strategy = "s" + r.word();
  effort = r.flip() ? "quick" : "thorough";
  cover = "c" + r.word();
  cold = r.flip();
  retune = r.flip();
  require_cached = !retune && r.flip();
  at_once = r.below(1025);
  kernels_alone = r.flip();
  background = r.flip();
  libraries = r.flip() ? "onednn" : "none";
  if (r.flip()) device = random_device(r);
  return out;
}
inline JobResult random_result(Random& r) {
  JobResult out;
  out.groups = r.list([&] {
    return GroupResult{r.digest(),       r.text(),
                       r.below(9),       r.below(9),
                       r.word(),         r.below(9),
                       r.below(9),       r.below(1 << 30),
                       r.below(1 << 30), r.amount(),
                       r.amount(),       r.amount(),
                       r.flip(),         r.list([&] { return r.below(1 << 30); }),
                       random_counts(r), r.amount(),
                       r.amount(),       r.text(),
                       r.digest()};
  });
  out.groups.emplace_back();
  out.buffers = r.list([&] {
    return ResultBuffer{r.text(), static_cast<DType>(r.below(kDTypeCount)), r.list([&] { return r.below(9); }),
                        static_cast<ResultBuffer::Kind>(r.below(3))};
  });
  out.buffers.emplace_back();
  const auto buffer = [&] { return static_cast<int>(r.below(static_cast<int64_t>(out.buffers.size()))); };
  out.steps = r.list([&] {
    return Step{static_cast<int>(r.below(static_cast<int64_t>(out.groups.size()))), r.list(buffer)};
  });
  out.inputs = r.list([&] { return Binding{r.text(), buffer()}; });
  out.outputs = r.list([&] { return Binding{r.text(), buffer()}; });
  out.graph_hash = r.digest();
  out.kernels_default = r.below(99);
  out.kernels = r.below(99);
  out.bytes_default = r.below(1 << 30);
  out.bytes = r.below(1 << 30);
  out.default_ns = r.amount();
  out.default_estimated = r.flip();
  out.best_ns = r.amount();
  out.trials = r.below(999);
  out.enumerate_s = r.amount();
  out.compile_s = r.seconds();
  out.check_s = r.seconds();
  out.measure_s = r.seconds();
  out.total_s = r.amount();
  out.device = random_device(r);
  out.environment = r.text();
  out.warploom_version = r.word();
  out.cover_rounds = r.below(9);
  out.cover_certified = r.below(2) == 1;
  out.covers = r.list([&] {
    return TimedCover{r.word(), r.below(99), r.below(1 << 30), r.amount(), r.list([&] { return r.below(1 << 30); }),
                      r.flip(), r.text()};
  });
  return out;
}
inline JobProgress random_progress(Random& r) {
  JobProgress out;
  out.groups = r.list([&] {
    return GroupProgress{r.digest(), r.text(),         r.below(99), r.below(99), r.below(9), r.amount(),
                         r.amount(), random_counts(r), r.flip(),    r.flip(),    r.flip()};
  });
  out.trials_done = r.below(999);
  out.trials_total = r.below(999);
  out.elapsed_s = r.amount();
  out.left_s = r.amount();
  out.workers = static_cast<int>(r.below(9));
  out.phase = r.word();
  return out;
}

// Replaces, inserts and removes bytes of a text. The new bytes are often illegal in names.
inline std::string mutated(std::string bytes, Random& r) {
  static constexpr std::string_view kNasty("\0/.\x1b\n\xff\x80\\\"", 9);
  for (int64_t n = 1 + r.below(4); n > 0 && !bytes.empty(); --n) {
    const auto at = static_cast<size_t>(r.below(std::ssize(bytes)));
    const char byte = r.flip() ? kNasty[static_cast<size_t>(r.below(std::ssize(kNasty)))] : static_cast<char>(r.bits());
    switch (r.below(4)) {
      case 0:
        bytes.insert(at, 1, byte);
        break;
      case 1:
        bytes.erase(at, 1 + static_cast<size_t>(r.below(4)));
        break;
      default:
        bytes[at] = byte;
    }
  }
  return bytes;
}

}  // namespace wl::testing
