#include "runtime/gpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/base/records.h"
#include "compiler/base/status.h"
#include "runtime/gpu_tables.h"

namespace wl {
namespace {

// The byte that fills red zones. It makes a NaN in every float type, so that reads beyond the data spoil the result.
constexpr unsigned char kZoneByte = 0xFF;
constexpr std::chrono::microseconds kSpin{200};  // time that a wait for the GPU spins before it sleeps

// Returns whether there are kernels for this target (compiler/base/gpus.def).
bool has_row(std::string_view target) {
#define WL_GPU(name, ...) \
  if (target == (name)) return true;
#include "compiler/base/gpus.def"
#undef WL_GPU
  return false;
}

// Returns a device's architecture, such as "sm_90a" or "gfx90a". The suffix "a" of NVIDIA's architectures permits
// instructions that are specific to one of them; it is there if kernels are made for the target that has it.
std::string architecture_of(const GpuApi& api, int device) {
  if (api.family == "cuda") {
    const int version = 10 * gpu_attribute(api, api.major, device) + gpu_attribute(api, api.minor, device);
    const std::string name = absl::StrCat("sm_", version);
    return has_row(absl::StrCat("cuda:", name, "a")) ? absl::StrCat(name, "a") : name;
  }
  // Versions of ROCm lay out the struct hipDeviceProp_t differently. In all of them, the architecture is the only
  // string that begins with "gfx", so it is found by a search through the bytes of the struct.
  std::vector<char> properties(size_t{16} << 10, '\0');
  if (api.properties(properties.data(), device) != 0) return "gfx";
  for (size_t at = 0; at + 4 < properties.size(); ++at) {
    if (std::memcmp(properties.data() + at, "gfx", 3) != 0 || std::isxdigit(properties[at + 3]) == 0) continue;
    size_t end = at + 3;
    while (end < properties.size() && std::isxdigit(static_cast<unsigned char>(properties[end])) != 0) ++end;
    return std::string(properties.data() + at, end - at);
  }
  return "gfx";
}

}  // namespace

int gpu_attribute(const GpuApi& api, int number, int device) {
  int value = 0;
  return api.device_attribute(&value, number, device) == 0 ? value : 0;
}

std::string gpu_bus(const GpuApi& api, int device) {
  char bus[32] = "";
  return api.device_bus_id(bus, sizeof bus, device) == 0 ? bus : "";
}

std::string gpu_target(const GpuApi& api, int device) {
  return absl::StrCat(api.family, ":", architecture_of(api, device));
}

bool gpu_runs(std::string_view target, std::string_view device_target) {
  if (target == device_target) return true;
  // A cubin also runs on later devices of its major version, unless it has architecture-specific instructions: then it
  // runs on its own architecture only.
  constexpr std::string_view kCuda = "cuda:sm_";
  int code = 0, device = 0;
  if (!target.starts_with(kCuda) || !device_target.starts_with(kCuda)) return false;
  device_target.remove_suffix(std::isalpha(static_cast<unsigned char>(device_target.back())) != 0 ? 1 : 0);
  return absl::SimpleAtoi(std::string(target.substr(kCuda.size())), &code) &&
         absl::SimpleAtoi(std::string(device_target.substr(kCuda.size())), &device) && code / 10 == device / 10 &&
         code <= device;
}

absl::StatusOr<std::vector<std::string>> gpu_targets(const std::string& family) {
  WL_ASSIGN_OR_RETURN(const GpuApi* api, gpu_api(family));
  int count = 0, device = 0;
  if (api->device_count(&count) != 0 || count == 0)
    return absl::FailedPreconditionError(absl::StrCat(family, ": the driver is installed but shows no device"));
  std::vector<std::string> targets;
  for (int ordinal = 0; ordinal < count; ++ordinal)
    targets.push_back(api->device_get(&device, ordinal) == 0 ? gpu_target(*api, device) : absl::StrCat(family, ":"));
  return targets;
}

bool is_gpu_name(std::string_view name) {
  return name.starts_with("cuda:") || name.starts_with("hip:");
}

absl::StatusOr<std::unique_ptr<GpuDevice>> GpuDevice::open(const std::string& name) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(name, absl::MaxSplits(':', 1));
  int ordinal = 0, count = 0, number = 0;
  if (!absl::SimpleAtoi(parts.second, &ordinal) || ordinal < 0)
    return absl::FailedPreconditionError(absl::StrCat("device ", name, ": expected a number after the colon"));
  auto device = std::make_unique<GpuDevice>();
  WL_ASSIGN_OR_RETURN(device->api_, gpu_api(parts.first));
  const GpuApi& api = *device->api_;
  WL_RETURN_IF_ERROR(device->check(api.device_count(&count), "counting devices"));
  if (ordinal >= count)
    return absl::FailedPreconditionError(absl::StrCat("device ", name, ": the driver shows ", count, " devices"));
  WL_RETURN_IF_ERROR(device->check(api.device_get(&number, ordinal), "opening the device"));
  WL_RETURN_IF_ERROR(device->check(api.context_retain(&device->context_, number), "making a context"));
  WL_RETURN_IF_ERROR(device->use());
  WL_RETURN_IF_ERROR(device->check(api.stream_create(&device->stream_, kInOrder), "making a stream"));
  device->l2_bytes_ = gpu_attribute(api, api.l2_bytes, number);
  device->clocks_ = GpuClocks::of(parts.first, gpu_bus(api, number));
  return device;
}

// The context is not released: it is the device's primary context, which other code of the process may use.
GpuDevice::~GpuDevice() {
  if (stream_ != nullptr) (void)api_->stream_destroy(stream_);
}

absl::Status GpuDevice::use() const {
  return check(api_->context_use(context_), "using the context");
}

absl::Status GpuDevice::wait(const std::function<void()>& tick, const std::string& doing) const {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t rounds = 0;; ++rounds) {
    const int result = api_->stream_query(stream_);
    if (result == 0) return absl::OkStatus();
    if (result != api_->not_ready) return check(result, doing);
    if (std::chrono::steady_clock::now() - begin < kSpin) continue;
    if (rounds % 64 == 0 && tick) tick();
    usleep(50);
  }
}

absl::StatusOr<GpuBuffer> GpuBuffer::create(const GpuDevice& device, int64_t bytes) {
  GpuBuffer buffer;
  buffer.api_ = &device.api();
  buffer.bytes_ = bytes;
  // The second red zone begins right behind the data, however many bytes these have.
  const size_t total = static_cast<size_t>(bytes) + 2 * kGpuZone;
  void* memory = nullptr;
  WL_RETURN_IF_ERROR(device.check(device.api().allocate(&memory, total), absl::StrCat("allocating ", total, " bytes")));
  buffer.base_ = static_cast<char*>(memory);
  const std::vector<unsigned char> zone(kGpuZone, kZoneByte);
  for (char* at : {buffer.base_, buffer.data() + bytes})
    WL_RETURN_IF_ERROR(device.check(device.api().to_device(at, zone.data(), kGpuZone), "writing a red zone"));
  return buffer;
}

absl::StatusOr<GpuBuffer> GpuBuffer::workspace(const GpuDevice& device, int64_t bytes) {
  WL_ASSIGN_OR_RETURN(GpuBuffer buffer, create(device, bytes));
  const std::vector<char> zeros(static_cast<size_t>(std::min(bytes, kCounterBytes)));
  if (!zeros.empty())
    WL_RETURN_IF_ERROR(
        device.check(device.api().to_device(buffer.data(), zeros.data(), zeros.size()), "zeroing counters"));
  return buffer;
}

GpuBuffer& GpuBuffer::operator=(GpuBuffer&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

GpuBuffer::~GpuBuffer() {
  if (base_ != nullptr) (void)api_->release(base_);
}

absl::Status GpuBuffer::check_red_zones(const GpuDevice& device) const {
  std::vector<unsigned char> zone(kGpuZone);
  for (const bool behind : {false, true}) {
    char* at = behind ? data() + bytes_ : base_;
    WL_RETURN_IF_ERROR(device.check(device.api().to_host(zone.data(), at, kGpuZone), "reading a red zone"));
    const auto changed = std::find_if(zone.begin(), zone.end(), [](unsigned char byte) { return byte != kZoneByte; });
    if (changed == zone.end()) continue;
    const auto place = changed - zone.begin() + (behind ? bytes_ : -static_cast<int64_t>(kGpuZone));
    return absl::DataLossError(absl::StrCat("byte ", place, " was written; the argument has ", bytes_, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace wl
