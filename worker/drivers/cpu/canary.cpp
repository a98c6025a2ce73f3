#include <algorithm>
#include <cstring>

#include "compiler/base/status.h"
#include "worker/drivers/cpu/session.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

constexpr int kRepeats = 3;
constexpr int64_t kSteps = 100'000;  // iterations of multiply_add_chain(), which take about half a millisecond
// Bytes that each thread copies; larger than the private caches of any core.
constexpr size_t kCopyBytes = size_t{16} << 20;

double multiply_add_chain(double x) {
  double a[8] = {x, x, x, x, x, x, x, x};
  for (int64_t i = 0; i < kSteps; ++i)
    for (double& v : a) v = v * 0.999999 + 1e-6;
  double sum = 0;
  for (double v : a) sum += v;
  return sum;
}

}  // namespace

absl::StatusOr<CanaryAnswer> CpuSession::canary() {
  if (!pool_) return absl::FailedPreconditionError("canary before setup");
  const auto threads = static_cast<size_t>(pool_->threads());
  if (canary_.empty()) canary_.resize(2 * kCopyBytes * threads, 1);
  CanaryAnswer answer{INT64_MAX, INT64_MAX};
  for (int r = 0; r < kRepeats; ++r) {
    alive_(-1);
    int64_t begin = monotonic_ns();
    pool_->each(pool_->threads(), [](int thread) {
      volatile double sink = multiply_add_chain(1 + thread);
      (void)sink;
    });
    answer.compute_ns = std::min(answer.compute_ns, monotonic_ns() - begin);
    begin = monotonic_ns();
    pool_->each(pool_->threads(), [&](int thread) {
      char* mine = canary_.data() + 2 * kCopyBytes * static_cast<size_t>(thread);
      std::memcpy(mine + kCopyBytes, mine, kCopyBytes);
    });
    answer.copy_ns = std::min(answer.copy_ns, monotonic_ns() - begin);
  }
  return answer;
}

}  // namespace wl
