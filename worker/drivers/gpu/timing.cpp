// The part of a GPU's session that takes times: of CUDA or HIP graphs of launches between two events, after raising the
// GPU's clock, and of the canary.
#include "worker/drivers/timing.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"
#include "worker/drivers/gpu/session.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

constexpr int64_t kMaxGraphCalls = 200;
constexpr int64_t kRamp = 200'000'000;  // ns of work that bring an idle GPU to about its full clock
constexpr int64_t kCanaryBytes = int64_t{64} << 20;
constexpr unsigned kWord = 0x3f800000;  // the bit pattern of the float 1.0
constexpr int kCanarySteps = 1 << 16;
constexpr int kCanaryBlocks = 64, kCanaryThreads = 128;

// The canary for CUDA: a kernel with a known result in PTX, which the driver compiles for every GPU from sm_70 on.
// out[i] = i after a long chain of multiply-adds with 1 and 0, values that a compiler cannot know.
constexpr char kCanaryPtx[] = R"(.version 6.4
.target sm_70
.address_size 64
.visible .entry wl_canary(.param .u64 out, .param .f32 one, .param .f32 zero, .param .u32 steps) {
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [out];
  ld.param.f32 %f1, [one];
  ld.param.f32 %f2, [zero];
  ld.param.u32 %r4, [steps];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2;
  cvt.rn.f32.u32 %f0, %r3;
LOOP:
  fma.rn.f32 %f0, %f0, %f1, %f2;
  add.u32 %r4, %r4, -1;
  setp.ne.u32 %p, %r4, 0;
  @%p bra LOOP;
  cvta.to.global.u64 %d1, %d0;
  mul.wide.u32 %d2, %r3, 4;
  add.u64 %d3, %d1, %d2;
  st.global.f32 [%d3], %f0;
  ret;
}
)";

}  // namespace

absl::Status GpuSession::launches(const Candidate& candidate, int64_t calls) {
  for (int64_t call = 0; call < calls; ++call)
    WL_RETURN_IF_ERROR(launch(candidate, static_cast<size_t>(call) % clones_.size()));
  return absl::OkStatus();
}

// Captures `calls` launches in a CUDA or HIP graph. If the driver cannot capture, plain launches are used from then
// on.
absl::Status GpuSession::make_graph(Candidate& candidate, int64_t calls) {
  if (candidate.graph_calls == -1 || candidate.graph_calls == calls) return absl::OkStatus();
  candidate.graph = {};
  WL_ASSIGN_OR_RETURN(candidate.graph, GpuGraph::capture(*device_, [&] { return launches(candidate, calls); }));
  candidate.graph_calls = candidate.graph.empty() ? -1 : calls;
  return absl::OkStatus();
}

// If runs are cold, launches use the copies of the arguments in turn, so that a copy is used again only after all
// others. That may need a few more calls than `calls`; the time is scaled down to `calls`.
absl::StatusOr<int64_t> GpuSession::timed(Candidate& candidate, int64_t calls) {
  const auto clones = static_cast<int64_t>(clones_.size());
  const int64_t made = (calls + clones - 1) / clones * clones;
  const int64_t length = std::min(made, std::max(clones, kMaxGraphCalls / clones * clones));
  WL_RETURN_IF_ERROR(make_graph(candidate, length));
  const int64_t repeats = (made + length - 1) / length;
  const std::string doing = absl::StrCat("timing ", candidate.kernel.entry());
  const auto once = [&] {
    return candidate.graph.empty() ? launches(candidate, length) : candidate.graph.launch(doing);
  };
  // The first run is not timed. The timed runs are submitted while the device is busy with the first one, so that no
  // launch waits for the host.
  WL_RETURN_IF_ERROR(once());
  const auto all = [&]() -> absl::Status {
    for (int64_t i = 0; i < repeats; ++i) WL_RETURN_IF_ERROR(once());
    return absl::OkStatus();
  };
  WL_ASSIGN_OR_RETURN(const int64_t ns, timer_.time(
                                            all, [&] { alive_(-1); }, doing));
  const double each = static_cast<double>(ns) / static_cast<double>(repeats * length);
  return std::max<int64_t>(1, std::llround(each * static_cast<double>(calls)));
}

absl::Status GpuSession::ramp_clock() {
  if (ramped_) return absl::OkStatus();
  ramped_ = true;
  for (const int64_t until = monotonic_ns() + kRamp; monotonic_ns() < until;) WL_RETURN_IF_ERROR(canary().status());
  return absl::OkStatus();
}

absl::StatusOr<TimeAnswer> GpuSession::time(const TimeCommand& command) {
  std::vector<Candidate*> candidates;
  for (int64_t number : command.slots) {
    WL_ASSIGN_OR_RETURN(Candidate * candidate, slot(number));
    candidates.push_back(candidate);
  }
  WL_RETURN_IF_ERROR(ramp_clock());
  // The worker judges the values of a timed run. So the results of the check are erased: the outputs are filled with
  // the poison pattern again.
  WL_RETURN_IF_ERROR(poison_outputs());
  TimeAnswer answer;
  absl::Status failure;
  const TimedRun run = [&](int index, int64_t calls) {
    const auto i = static_cast<size_t>(index);
    // After the first failure, nothing is launched any more. The returned time of 1 s makes time_slots() stop soon.
    if (!failure.ok()) return int64_t{1'000'000'000};
    alive_(command.slots[i]);
    const absl::StatusOr<int64_t> ns = timed(*candidates[i], calls);
    if (!ns.ok()) failure = ns.status();
    return ns.ok() ? *ns : int64_t{1'000'000'000};
  };
  const std::function<int()> clock = [&] { return device_->clock_mhz(); };
  const bool has_clock = device_->clock_mhz() > 0;
  answer.slots = time_slots(command.recipe, static_cast<int>(candidates.size()), run, has_clock ? clock : nullptr);
  WL_RETURN_IF_ERROR(failure);
  WL_ASSIGN_OR_RETURN(answer.damage, damage());
  return answer;
}

absl::Status GpuSession::compute_canary() {
  if (canary_kernel_.entry().empty()) {
    WL_ASSIGN_OR_RETURN(canary_kernel_, GpuKernel::load(*device_, kCanaryPtx, "wl_canary", 0));
  }
  void* out = canary_.data();
  float one = 1, zero = 0;
  int steps = kCanarySteps;
  void* arguments[] = {&out, &one, &zero, &steps};
  return canary_kernel_.launch(kCanaryBlocks, kCanaryThreads, arguments);
}

// HIP has no code that the driver of every device can compile, so for HIP a fill of memory is timed and checked in
// place of the kernel.
absl::StatusOr<CanaryAnswer> GpuSession::canary() {
  const GpuApi& api = device_->api();
  if (canary_.bytes() == 0) {
    WL_ASSIGN_OR_RETURN(canary_, GpuBuffer::create(*device_, kCanaryBytes));
  }
  constexpr int64_t kHalf = kCanaryBytes / 2;
  constexpr int kElements = kCanaryBlocks * kCanaryThreads;
  CanaryAnswer answer{INT64_MAX, INT64_MAX};
  const bool kernel = api.family == "cuda";
  const auto elapsed = [&](auto&& work) {
    return timer_.time(
        work, [&] { alive_(-1); }, "timing the canary");
  };
  for (int round = 0; round < 3; ++round) {
    alive_(-1);
    WL_ASSIGN_OR_RETURN(const int64_t compute, elapsed([&] {
                          return kernel ? compute_canary()
                                        : device_->check(api.fill(canary_.data(), kWord, kHalf / 4, device_->stream()),
                                                         "filling");
                        }));
    WL_ASSIGN_OR_RETURN(const int64_t copy, elapsed([&] {
                          return device_->check(
                              api.copy(canary_.data() + kHalf, canary_.data(), kHalf, device_->stream()), "copying");
                        }));
    answer.compute_ns = std::min(answer.compute_ns, compute);
    answer.copy_ns = std::min(answer.copy_ns, copy);
  }
  // The values that the copy has written show whether both the kernel (or fill) and the copy worked.
  std::vector<float> got(kElements);
  WL_RETURN_IF_ERROR(read(canary_, kHalf, kElements * int64_t{4}, got.data()));
  for (int i = 0; i < kElements; ++i) {
    const float want = kernel ? static_cast<float>(i) : 1.0f;
    if (got[static_cast<size_t>(i)] != want)
      return absl::InternalError(absl::StrCat("the canary's element ", i, " is ", got[static_cast<size_t>(i)],
                                              ", expected ", want, "; this GPU computes wrong results"));
  }
  return answer;
}

}  // namespace wl
