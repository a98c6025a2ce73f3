// The limits of this machine, by which every figure of the benchmarks is divided: copying memory with plain and with
// non-temporal vector stores, reading it, and, in registers and the first-level cache, fused multiply-adds, exp and
// erf. bench/run.py builds it with -O3 -march=native.
//
//   machine_limit THREADS SECONDS    then one request per line of stdin, one JSON object per line of stdout:
//   copy BYTES   -> {"plain": [ns...], "nt": [ns...]}   one sample per copy that reads BYTES/2 and writes BYTES/2
//   read BYTES   -> {"read": [ns...]}                   one sample per sum over BYTES
//   fma          -> {"gflops": [...]}                   one sample per few milliseconds
//   bf16         -> {"gflops": [...]}                   of pairs of bf16; without AVX512-BF16, of floats
//   tiles        -> {"gflops": [...]}                   of bf16 in tile registers (AMX); without them, as bf16
//   exp, erf     -> {"gelements": [...]}                10^9 floats per second, to about single precision
//
// Every thread works on its own contiguous part, as in a kernel. THREADS includes the calling thread.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__AMX_BF16__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#define WL_TILES 1
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Stores a vector past the caches, by a non-temporal store where the machine has one.
void store_nt(Vector* to, Vector value) {
#if defined(__AVX512F__)
  _mm512_stream_ps(reinterpret_cast<float*>(to), reinterpret_cast<__m512>(value));
#elif defined(__AVX__)
  _mm256_stream_ps(reinterpret_cast<float*>(to), reinterpret_cast<__m256>(value));
#else
  *to = value;
#endif
}

void fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// noinline hides from the compiler that the same copy is repeated; otherwise it might make the copy only once.
__attribute__((noinline)) void copy_plain(const Vector* __restrict from, Vector* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; i += 4) {
    for (int64_t k = 0; k < 4; ++k) to[i + k] = from[i + k];
    asm volatile("" ::: "memory");  // keeps the compiler from calling memcpy, which would choose its own kind of stores
  }
}

__attribute__((noinline)) void copy_nt(const Vector* __restrict from, Vector* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; i += 4) {
    for (int64_t k = 0; k < 4; ++k) store_nt(to + i + k, from[i + k]);
  }
  fence();
}

// One iteration is a multiply-add in every lane of kChains vectors. These chains are independent, which hides the
// latency of a multiply-add, and all fit in registers: 16 with AVX, 32 with AVX-512 or on other machines.
#if defined(__x86_64__) && !defined(__AVX512F__)
constexpr int kChains = 12;
#else
constexpr int kChains = 20;
#endif
__attribute__((noinline)) float multiply_add(int64_t turns, float seed) {
  Vector chain[kChains];
  for (int c = 0; c < kChains; ++c) chain[c] = Vector{} + (seed + static_cast<float>(c));
  const Vector a = Vector{} + (1.0f - 1e-7f * seed);
  const Vector b = Vector{} + 1e-7f * seed;
  for (int64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 20
    for (int c = 0; c < kChains; ++c) chain[c] = chain[c] * a + b;
  }
  Vector sum{};
  for (int c = 0; c < kChains; ++c) sum += chain[c];
  return sum[0];
}

// Like multiply_add(), but multiplies pairs of bf16: a pair counts as two multiply-adds in its lane.
#if defined(__AVX512BF16__)
constexpr int kHalvesPerLane = 2;
__attribute__((noinline)) float multiply_add_bf16(int64_t turns, float seed) {
  __m512 chain[kChains];
  for (int c = 0; c < kChains; ++c) chain[c] = _mm512_set1_ps(seed + static_cast<float>(c));
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(seed), _mm512_set1_ps(-seed));
  for (int64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 20
    for (int c = 0; c < kChains; ++c) chain[c] = _mm512_dpbf16_ps(chain[c], a, a);
  }
  __m512 sum = chain[0];
  for (int c = 1; c < kChains; ++c) sum += chain[c];
  return sum[0];
}
#else
constexpr int kHalvesPerLane = 1;
float multiply_add_bf16(int64_t turns, float seed) {
  return multiply_add(turns, seed);
}
#endif

#if defined(WL_TILES)
// One iteration multiplies 2 x 2 pairs of tile registers. Each product adds 32 terms to 16 x 16 sums in its own
// register.
constexpr int64_t kTileFlopsPerTurn = int64_t{4} * 2 * 16 * 16 * 32;

// Asks Linux for permission to use tile registers; later threads inherit it. Returns false if Linux refuses.
bool have_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // Linux's ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA
  static const bool have = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return have;
}

void multiply_add_tiles(int64_t turns) {
  alignas(64) uint8_t shape[64] = {1};  // AMX's palette 1 has eight tile registers of 16 rows of 64 bytes
  for (int tile = 0; tile < 8; ++tile) {
    shape[16 + 2 * tile] = 64;
    shape[48 + tile] = 16;
  }
  asm volatile("" : : "r"(shape) : "memory");  // g++ 12 assumes that the next call reads only 8 bytes; keeps all stores
  _tile_loadconfig(shape);
  _tile_zero(0);  // tile registers 0 to 3 are the sums; the values of the factors do not matter
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t i = 0; i < turns; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}
#else
constexpr int64_t kTileFlopsPerTurn = 0;
bool have_tiles() {
  return false;
}
void multiply_add_tiles(int64_t) {}
#endif

__attribute__((noinline)) float sum_of(const Vector* from, int64_t n) {
  Vector sums[8] = {};
  for (int64_t i = 0; i < n; i += 8)
    for (int64_t k = 0; k < 8; ++k) sums[k] += from[i + k];
  Vector sum{};
  for (const Vector& part : sums) sum += part;
  return sum[0];
}

using Integers = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

// Returns exp(x) = 2^k * e^r, where |r| <= ln 2 / 2 and e^r is a polynomial of degree 6.
inline Vector exp_of(Vector x) {
  const Vector magic = Vector{} + 12582912.0f;  // 1.5 * 2^23: a small float plus this is rounded to an integer
  const Vector shifted = x * 1.44269504f + magic;
  const Vector k = shifted - magic;
  const Vector r = x - k * 0.693147181f;
  Vector p = r * 1.388889e-3f + 8.333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return reinterpret_cast<Vector>(reinterpret_cast<Integers>(p) + (reinterpret_cast<Integers>(shifted) << 23));
}

// Returns erf(x) for x >= 0 by Abramowitz and Stegun 7.1.26, whose error is 1.5e-7.
inline Vector erf_of(Vector x) {
  const Vector t = 1.0f / (x * 0.3275911f + 1.0f);
  Vector p = t * 1.061405429f - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  return 1.0f - p * t * exp_of(-x * x);
}

template <Vector (*F)(Vector)>
__attribute__((noinline)) void apply(const Vector* __restrict from, Vector* __restrict to, int64_t n) {
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; ++i) to[i] = F(from[i]);
}

// Threads that are started once and then wait for work, so that no sample includes the time of starting threads.
class Team {
 public:
  explicit Team(int threads) : threads_(threads) {
    for (int t = 1; t < threads; ++t) members_.emplace_back([this, t] { serve(t); });
  }
  ~Team() {
    run([](int) {}, true);
    for (std::thread& member : members_) member.join();
  }
  int size() const { return threads_; }

  // Calls work(t) on every thread and returns when all are done.
  void run(std::function<void(int)> work, bool last = false) {
    {
      std::lock_guard lock(mutex_);
      work_ = std::move(work);
      last_ = last;
      pending_ = threads_ - 1;
      ++turn_;
    }
    start_.notify_all();
    work_(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
  }

 private:
  void serve(int t) {
    for (int64_t turn = 1;; ++turn) {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return turn_ >= turn; });
      const bool last = last_;
      lock.unlock();
      work_(t);
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
      if (last) return;
    }
  }

  const int threads_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  std::function<void(int)> work_;
  bool last_ = false;
  int pending_ = 0;
  int64_t turn_ = 0;
  std::vector<std::thread> members_;
};

// Calls `sample` for about `seconds`, at least five times, and returns its results.
std::vector<double> repeat(double seconds, const std::function<double()>& sample) {
  sample();  // an untimed call, which touches the pages and wakes the vector units
  std::vector<double> samples;
  const int64_t end = now_ns() + static_cast<int64_t>(seconds * 1e9);
  while (samples.size() < 5 || (now_ns() < end && samples.size() < 500)) samples.push_back(sample());
  return samples;
}

std::vector<double> time_copy(Team& team, double seconds, int64_t bytes, bool nt) {
  const int64_t block = 4;  // number of vectors that one iteration of the copy loop copies
  const int64_t per_thread = bytes / 2 / team.size() / static_cast<int64_t>(sizeof(Vector)) / block * block;
  if (per_thread == 0) return {};
  const size_t size = static_cast<size_t>(per_thread) * sizeof(Vector) * static_cast<size_t>(team.size());
  std::unique_ptr<void, decltype(&std::free)> from(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096), &std::free);
  std::unique_ptr<void, decltype(&std::free)> to(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096), &std::free);
  if (from == nullptr || to == nullptr) return {};
  std::memset(from.get(), 1, size);
  std::memset(to.get(), 2, size);
  // A sample of a short copy makes several copies, so that the time of waking the threads hardly counts.
  const int64_t inner = std::max<int64_t>(1, 20'000'000 / std::max<int64_t>(bytes, 1));
  return repeat(seconds, [&] {
    const int64_t start = now_ns();
    team.run([&](int t) {
      const Vector* source = static_cast<const Vector*>(from.get()) + t * per_thread;
      Vector* target = static_cast<Vector*>(to.get()) + t * per_thread;
      for (int64_t i = 0; i < inner; ++i)
        nt ? copy_nt(source, target, per_thread) : copy_plain(source, target, per_thread);
    });
    return static_cast<double>(now_ns() - start) / static_cast<double>(inner);
  });
}

// Returns rates in Gflop/s. Each iteration of the loop in `chains` makes `multiply_adds` multiply-adds in every lane of
// every chain.
std::vector<double> rate_of_chains(Team& team, double seconds, float (*chains)(int64_t, float), int multiply_adds) {
  const int64_t turns = 2'000'000;
  std::vector<float> sink(static_cast<size_t>(team.size()) * 64);
  return repeat(seconds, [&] {
    const int64_t start = now_ns();
    team.run([&](int t) { sink[static_cast<size_t>(t) * 64] = chains(turns, 1.0f); });
    const double flops = 2.0 * multiply_adds * kLanes * kChains * static_cast<double>(turns) * team.size();
    return flops / static_cast<double>(now_ns() - start);
  });
}

// Returns rates in Gflop/s of bf16 in tile registers, or in vectors if the machine has no tile registers.
std::vector<double> rate_of_tiles(Team& team, double seconds) {
  if (!have_tiles()) return rate_of_chains(team, seconds, multiply_add_bf16, kHalvesPerLane);
  constexpr int64_t kTurns = 100'000;
  return repeat(seconds, [&] {
    const int64_t start = now_ns();
    team.run([&](int) { multiply_add_tiles(kTurns); });
    return static_cast<double>(kTileFlopsPerTurn * kTurns * team.size()) / static_cast<double>(now_ns() - start);
  });
}

std::vector<double> time_read(Team& team, double seconds, int64_t bytes) {
  const int64_t per_thread = bytes / team.size() / static_cast<int64_t>(sizeof(Vector)) / 8 * 8;
  if (per_thread == 0) return {};
  const size_t size = static_cast<size_t>(per_thread) * sizeof(Vector) * static_cast<size_t>(team.size());
  std::unique_ptr<void, decltype(&std::free)> from(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096), &std::free);
  if (from == nullptr) return {};
  std::memset(from.get(), 0, size);
  std::vector<float> sink(static_cast<size_t>(team.size()) * 64);
  return repeat(seconds, [&] {
    const int64_t start = now_ns();
    team.run([&](int t) {
      sink[static_cast<size_t>(t) * 64] = sum_of(static_cast<const Vector*>(from.get()) + t * per_thread, per_thread);
    });
    return static_cast<double>(now_ns() - start);
  });
}

// Returns rates of computing F, in 10^9 elements per second, on data in the first-level cache.
template <Vector (*F)(Vector)>
std::vector<double> rate_of(Team& team, double seconds) {
  constexpr int64_t kVectors = 4096 / sizeof(Vector), kTurns = 2000;
  return repeat(seconds, [&] {
    const int64_t start = now_ns();
    team.run([&](int) {
      alignas(64) Vector from[kVectors], to[kVectors];
      for (Vector& value : from) value = Vector{} + 0.5f;
      for (int64_t turn = 0; turn < kTurns; ++turn) {
        apply<F>(from, to, kVectors);
        asm volatile("" : : "r"(to) : "memory");
      }
    });
    const double elements = static_cast<double>(kLanes * kVectors * kTurns) * team.size();
    return elements / static_cast<double>(now_ns() - start);
  });
}

std::string list(const std::vector<double>& values) {
  std::ostringstream text;
  text << "[";
  for (size_t i = 0; i < values.size(); ++i) text << (i == 0 ? "" : ", ") << values[i];
  text << "]";
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: machine_limit THREADS SECONDS < requests\n";
    return 1;
  }
  have_tiles();  // asks for permission to use tile registers, which the team's threads inherit when they start
  Team team(std::max(1, std::atoi(argv[1])));
  const double seconds = std::atof(argv[2]);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string request;
    int64_t bytes = 0;
    words >> request >> bytes;
    if (request == "copy") {
      const std::vector<double> plain = time_copy(team, seconds, bytes, false);
      std::cout << "{\"plain\": " << list(plain) << ", \"nt\": " << list(time_copy(team, seconds, bytes, true)) << "}"
                << std::endl;
    } else if (request == "read") {
      std::cout << "{\"read\": " << list(time_read(team, seconds, bytes)) << "}" << std::endl;
    } else if (request == "fma") {
      std::cout << "{\"gflops\": " << list(rate_of_chains(team, seconds, multiply_add, 1)) << "}" << std::endl;
    } else if (request == "bf16") {
      std::cout << "{\"gflops\": " << list(rate_of_chains(team, seconds, multiply_add_bf16, kHalvesPerLane)) << "}"
                << std::endl;
    } else if (request == "tiles") {
      std::cout << "{\"gflops\": " << list(rate_of_tiles(team, seconds)) << "}" << std::endl;
    } else if (request == "exp" || request == "erf") {
      const std::vector<double> rates =
          request == "exp" ? rate_of<exp_of>(team, seconds) : rate_of<erf_of>(team, seconds);
      std::cout << "{\"gelements\": " << list(rates) << "}" << std::endl;
    } else {
      std::cerr << "machine_limit: expected 'copy BYTES', 'read BYTES', 'fma', 'bf16', 'tiles', 'exp' or 'erf', found '"
                << line << "'\n";
      return 1;
    }
  }
}
