#include "runtime/gpu_kernel.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/base/records.h"
#include "compiler/base/status.h"
#include "runtime/gpu_tables.h"

namespace wl {
namespace {

constexpr int64_t kOptIn = 48 << 10;  // bytes of dynamic shared memory above which CUDA needs an explicit request

}  // namespace

absl::StatusOr<GpuKernel> GpuKernel::load(const GpuDevice& device, const std::string& image, const std::string& entry,
                                          int64_t shared_bytes) {
  GpuKernel kernel;
  kernel.device_ = &device;
  kernel.entry_ = entry;
  kernel.shared_bytes_ = shared_bytes;
  const GpuApi& api = device.api();
  const std::string doing = absl::StrCat("loading ", entry);
  WL_RETURN_IF_ERROR(device.check(api.module_load(&kernel.module_, image.data()), doing));
  WL_RETURN_IF_ERROR(device.check(api.module_function(&kernel.function_, kernel.module_, entry.c_str()), doing));
  if (shared_bytes > kOptIn && api.function_set != nullptr)
    WL_RETURN_IF_ERROR(
        device.check(api.function_set(kernel.function_, kMaxDynamicShared, static_cast<int>(shared_bytes)),
                     absl::StrCat("opting in to ", shared_bytes, " bytes of shared memory for ", entry)));
  return kernel;
}

absl::StatusOr<GpuKernel> GpuKernel::load(const GpuDevice& device, const std::string& image, const std::string& entry,
                                          int64_t shared_bytes, const std::string& library, int64_t work_bytes) {
  if (library.empty()) return load(device, image, entry, shared_bytes);
  if (work_bytes < kCounterBytes + kMatmulWorkBytes)
    return invalid("the kernel ", entry, " calls the library ", library, " with a workspace of ", work_bytes,
                   " bytes; it needs ", kCounterBytes + kMatmulWorkBytes);
  GpuKernel kernel;
  kernel.device_ = &device;
  kernel.entry_ = entry;
  absl::StatusOr<std::unique_ptr<MatmulKernel>> matmul = MatmulKernel::load(library, image);
  if (!matmul.ok())
    return absl::Status(matmul.status().code(), absl::StrCat("the kernel ", entry, " needs the library ", library, ": ",
                                                             std::string(matmul.status().message()),
                                                             "; --libraries none makes kernels without it"));
  kernel.matmul_ = *std::move(matmul);
  return kernel;
}

GpuKernel& GpuKernel::operator=(GpuKernel&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(module_, other.module_);
  std::swap(function_, other.function_);
  std::swap(entry_, other.entry_);
  std::swap(shared_bytes_, other.shared_bytes_);
  std::swap(matmul_, other.matmul_);
  return *this;
}

GpuKernel::~GpuKernel() {
  if (module_ != nullptr) (void)device_->api().module_unload(module_);
}

absl::Status GpuKernel::launch(int64_t grid, int threads, std::span<void*> arguments, void* stream) const {
  if (matmul_ != nullptr) {
    const absl::Status launched = matmul_->launch(arguments, stream);
    return launched.ok() ? launched
                         : absl::Status(launched.code(),
                                        absl::StrCat("launching ", entry_, ": ", std::string(launched.message())));
  }
  if (grid == 0) return absl::OkStatus();
  return device_->check(
      device_->api().launch(function_, static_cast<unsigned>(grid), 1, 1, static_cast<unsigned>(threads), 1, 1,
                            static_cast<unsigned>(shared_bytes_), stream, arguments.data(), nullptr),
      absl::StrCat("launching ", entry_, " (", grid, " blocks of ", threads, " threads, ", shared_bytes_,
                   " bytes of shared memory)"));
}

absl::StatusOr<GpuGraph> GpuGraph::capture(const GpuDevice& device, const std::function<absl::Status()>& launches) {
  GpuGraph graph;
  graph.device_ = &device;
  const GpuApi& api = device.api();
  void* captured = nullptr;
  if (!api.has_graphs() || api.capture_begin(device.stream(), kRelaxed) != 0) return graph;
  const absl::Status launched = launches();
  const int ended = api.capture_end(device.stream(), &captured);
  const bool whole = ended == 0 && captured != nullptr;
  if (whole && launched.ok() && api.graph_instantiate(&graph.runnable_, captured, 0) != 0) graph.runnable_ = nullptr;
  if (whole) (void)api.graph_destroy(captured);
  WL_RETURN_IF_ERROR(launched);
  return graph;
}

GpuGraph& GpuGraph::operator=(GpuGraph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(runnable_, other.runnable_);
  return *this;
}

GpuGraph::~GpuGraph() {
  if (runnable_ != nullptr) (void)device_->api().runnable_destroy(runnable_);
}

absl::Status GpuGraph::launch(const std::string& doing) const {
  return device_->check(device_->api().graph_launch(runnable_, device_->stream()), doing);
}

absl::StatusOr<GpuTimer> GpuTimer::create(const GpuDevice& device) {
  GpuTimer timer;
  timer.device_ = &device;
  for (void** event : {&timer.begin_, &timer.end_})
    WL_RETURN_IF_ERROR(device.check(device.api().event_create(event, kTimedEvent), "making an event"));
  return timer;
}

GpuTimer& GpuTimer::operator=(GpuTimer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(begin_, other.begin_);
  std::swap(end_, other.end_);
  return *this;
}

GpuTimer::~GpuTimer() {
  for (void* event : {begin_, end_})
    if (event != nullptr) (void)device_->api().event_destroy(event);
}

absl::StatusOr<int64_t> GpuTimer::time(const std::function<absl::Status()>& work, const std::function<void()>& tick,
                                       const std::string& doing) const {
  const GpuApi& api = device_->api();
  WL_RETURN_IF_ERROR(device_->check(api.event_record(begin_, device_->stream()), doing));
  WL_RETURN_IF_ERROR(work());
  WL_RETURN_IF_ERROR(device_->check(api.event_record(end_, device_->stream()), doing));
  WL_RETURN_IF_ERROR(device_->wait(tick, doing));
  float ms = 0;
  WL_RETURN_IF_ERROR(device_->check(api.event_elapsed(&ms, begin_, end_), doing));
  return std::max<int64_t>(1, std::llround(static_cast<double>(ms) * 1e6));
}

}  // namespace wl
