#include "worker/drivers/gpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "worker/drivers/gpu_code.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

constexpr unsigned kInOrder = 0;           // with copies from the host, which go through the default stream
constexpr unsigned char kZoneByte = 0xFF;  // a NaN in every float type: a read past the end spoils the result too
constexpr int64_t kSpin = 200'000;         // ns; what takes longer is waited for asleep

int attribute(const GpuApi& api, int number, int device) {
  int value = 0;
  return api.device_attribute(&value, number, device) == 0 ? value : 0;
}

// "sm_90a", "gfx90a". Hopper's and Blackwell's own instructions need the architecture's full name.
std::string architecture_of(const GpuApi& api, int device) {
  if (api.family == "cuda") {
    const int version = 10 * attribute(api, api.major, device) + attribute(api, api.minor, device);
    return absl::StrCat("sm_", version, version == 90 || version == 100 ? "a" : "");
  }
  // The struct differs between versions of ROCm; the one string in it that starts so is the architecture.
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

std::string bus_of(const GpuApi& api, int device) {
  char bus[32] = "";
  return api.device_bus_id(bus, sizeof bus, device) == 0 ? bus : "";
}

Device describe(const GpuApi& api, int device) {
  Device out;
  out.target = absl::StrCat(api.family, ":", architecture_of(api, device));
  char name[256] = "";
  (void)api.device_name(name, sizeof name, device);
  out.name = name;
  out.threads = std::max(1, attribute(api, api.units, device));
  out.l1_bytes = attribute(api, api.unit_shared, device);
  out.l2_bytes = attribute(api, api.l2_bytes, device);
  out.l3_bytes = 0;
  const std::string compiler = gpu_compiler_version(api.family);
  if (gpu_compiler_missing(out.target).empty()) out.compilers.emplace_back(compiler.substr(0, compiler.find('=')));
  int driver = 0;
  (void)api.driver_version(&driver);
  // The driver's major version only: it may change what code does, its minor one is provenance.
  const int major = api.family == "cuda" ? driver / 1000 : driver / 10'000'000;
  out.compiler_versions = absl::StrCat(compiler, "; ", api.family, "=", major);
  size_t memory = 0;
  (void)api.device_memory(&memory, device);
  out.details = absl::StrCat("memory_mib=", memory >> 20, " api=", driver,
                             " clock_rated_mhz=", attribute(api, api.clock_khz, device) / 1000,
                             " memory_rated_mhz=", attribute(api, api.memory_clock_khz, device) / 1000,
                             " bus_bits=", attribute(api, api.bus_bits, device));
  if (const std::string more = GpuClocks::of(api.family, bus_of(api, device)).details(); !more.empty())
    absl::StrAppend(&out.details, " ", more);
  return out;
}

}  // namespace

bool is_gpu_name(std::string_view name) {
  return name.starts_with("cuda:") || name.starts_with("hip:");
}

DescribeAnswer describe_gpus() {
  DescribeAnswer answer;
  for (const char* family : {"cuda", "hip"}) {
    const absl::StatusOr<const GpuApi*> api = gpu_api(family);
    if (!api.ok()) {
      answer.missing.emplace_back(api.status().message());
      continue;
    }
    int count = 0, device = 0;
    if ((*api)->device_count(&count) != 0 || count == 0) {
      answer.missing.push_back(absl::StrCat(family, ": the driver is here and shows no device"));
      continue;
    }
    for (int ordinal = 0; ordinal < count; ++ordinal)
      if ((*api)->device_get(&device, ordinal) == 0)
        answer.found.push_back({absl::StrCat(family, ":", ordinal), describe(**api, device)});
  }
  return answer;
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
  void* context = nullptr;
  WL_RETURN_IF_ERROR(device->check(api.context_retain(&context, number), "making a context"));
  WL_RETURN_IF_ERROR(device->check(api.context_use(context), "using the context"));
  WL_RETURN_IF_ERROR(device->check(api.stream_create(&device->stream_, kInOrder), "making a stream"));
  device->l2_bytes_ = attribute(api, api.l2_bytes, number);
  device->clocks_ = GpuClocks::of(parts.first, bus_of(api, number));
  return device;
}

absl::Status GpuDevice::wait(const std::function<void()>& tick, const std::string& doing) const {
  const int64_t begin = monotonic_ns();
  for (int64_t rounds = 0;; ++rounds) {
    const int result = api_->stream_query(stream_);
    if (result == 0) return absl::OkStatus();
    if (result != api_->not_ready) return check(result, doing);
    if (monotonic_ns() - begin < kSpin) continue;
    if (rounds % 64 == 0 && tick) tick();
    usleep(50);
  }
}

absl::StatusOr<GpuBuffer> GpuBuffer::create(const GpuDevice& device, int64_t bytes) {
  GpuBuffer buffer;
  buffer.api_ = &device.api();
  buffer.bytes_ = bytes;
  // The second zone starts right behind the data, whatever its size.
  const size_t total = static_cast<size_t>(bytes) + 2 * kGpuZone;
  void* memory = nullptr;
  WL_RETURN_IF_ERROR(device.check(device.api().allocate(&memory, total), absl::StrCat("allocating ", total, " bytes")));
  buffer.base_ = static_cast<char*>(memory);
  const std::vector<unsigned char> zone(kGpuZone, kZoneByte);
  for (char* at : {buffer.base_, buffer.data() + bytes})
    WL_RETURN_IF_ERROR(device.check(device.api().to_device(at, zone.data(), kGpuZone), "writing a red zone"));
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
