#include "runtime/gpu_api.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

// Looks up a function by its name; null: the API does not have it. `needed`: the library is unusable without it.
template <typename F>
void resolve(void* library, const char* name, F& function, bool needed, const char** missing) {
  if (name == nullptr) return;
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr && needed && *missing == nullptr) *missing = name;
}

// Rows of the table: X(member, CUDA's name, HIP's name, needed)
#define WL_GPU_FUNCTIONS(X)                                                                  \
  X(init, "cuInit", "hipInit", true)                                                         \
  X(driver_version, "cuDriverGetVersion", "hipDriverGetVersion", true)                       \
  X(device_count, "cuDeviceGetCount", "hipGetDeviceCount", true)                             \
  X(device_get, "cuDeviceGet", "hipDeviceGet", true)                                         \
  X(device_name, "cuDeviceGetName", "hipDeviceGetName", true)                                \
  X(device_memory, "cuDeviceTotalMem_v2", "hipDeviceTotalMem", true)                         \
  X(device_attribute, "cuDeviceGetAttribute", "hipDeviceGetAttribute", true)                 \
  X(device_bus_id, "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId", true)                      \
  X(context_retain, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", true)           \
  X(context_use, "cuCtxSetCurrent", "hipCtxSetCurrent", true)                                \
  X(memory_left, "cuMemGetInfo_v2", "hipMemGetInfo", true)                                   \
  X(allocate, "cuMemAlloc_v2", "hipMalloc", true)                                            \
  X(release, "cuMemFree_v2", "hipFree", true)                                                \
  X(to_device, "cuMemcpyHtoD_v2", "hipMemcpyHtoD", true)                                     \
  X(to_host, "cuMemcpyDtoH_v2", "hipMemcpyDtoH", true)                                       \
  X(copy, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", true)                                \
  X(fill, "cuMemsetD32Async", "hipMemsetD32Async", true)                                     \
  X(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags", true)                       \
  X(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy", true)                          \
  X(stream_query, "cuStreamQuery", "hipStreamQuery", true)                                   \
  X(module_load, "cuModuleLoadData", "hipModuleLoadData", true)                              \
  X(module_unload, "cuModuleUnload", "hipModuleUnload", true)                                \
  X(module_function, "cuModuleGetFunction", "hipModuleGetFunction", true)                    \
  X(function_attribute, "cuFuncGetAttribute", "hipFuncGetAttribute", true)                   \
  X(function_set, "cuFuncSetAttribute", nullptr, true)                                       \
  X(launch, "cuLaunchKernel", "hipModuleLaunchKernel", true)                                 \
  X(event_create, "cuEventCreate", "hipEventCreateWithFlags", true)                          \
  X(event_destroy, "cuEventDestroy_v2", "hipEventDestroy", true)                             \
  X(event_record, "cuEventRecord", "hipEventRecord", true)                                   \
  X(event_query, "cuEventQuery", "hipEventQuery", true)                                      \
  X(event_elapsed, "cuEventElapsedTime", "hipEventElapsedTime", true)                        \
  X(capture_begin, "cuStreamBeginCapture_v2", "hipStreamBeginCapture", false)                \
  X(capture_end, "cuStreamEndCapture", "hipStreamEndCapture", false)                         \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags", false) \
  X(graph_launch, "cuGraphLaunch", "hipGraphLaunch", false)                                  \
  X(graph_destroy, "cuGraphDestroy", "hipGraphDestroy", false)                               \
  X(runnable_destroy, "cuGraphExecDestroy", "hipGraphExecDestroy", false)                    \
  X(error_name_into, "cuGetErrorName", nullptr, true)                                        \
  X(error_name_of, nullptr, "hipGetErrorName", true)                                         \
  X(properties, nullptr, "hipGetDeviceProperties", true)

struct ApiRow {
  const char* family;
  const char* provider;  // name of the package to install
  const char* libraries[4];
  // numbers of attributes, in the order units, l2_bytes, clock_khz, memory_clock_khz, bus_bits, major, minor,
  // unit_shared, and of the error not_ready
  int numbers[9];
};
constexpr ApiRow kApis[] = {
    {"cuda", "NVIDIA's driver", {"libcuda.so.1", "libcuda.so"}, {16, 38, 13, 36, 37, 75, 76, 81, 600}},
    {"hip",
     "ROCm",
     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so"},
     {63, 19, 5, 60, 59, 23, 61, 74, 600}},
};

// Both APIs use the same error numbers.
struct ErrorRow {
  int error;
  const char* meaning;
};
constexpr ErrorRow kErrors[] = {
    {1, "an argument of the launch is not valid"},
    {2, "out of memory"},
    {200, "the image is not valid"},
    {209, "the code is for another architecture"},
    {500, "the module has no such kernel"},
    {700, "illegal address"},
    {701, "the launch asks for more than a unit has"},
    {702, "the launch timed out"},
    {710, "an assertion failed"},
    {714, "stack error"},
    {715, "illegal instruction"},
    {716, "misaligned address"},
    {717, "address of another memory space"},
    {718, "the program counter left the code"},
    {719, "the launch failed"},
};

absl::StatusOr<const GpuApi*> open_api(const ApiRow& row) {
  void* library = nullptr;
  auto api = std::make_unique<GpuApi>();
  for (const char* name : row.libraries) {
    if (library != nullptr || name == nullptr) continue;
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) api->library = name;
  }
  const std::string upper = absl::AsciiStrToUpper(row.family);
  if (library == nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat(upper, ": no ", row.libraries[0], " here; ", row.provider, " has it"));
  const char* missing = nullptr;
  const bool cuda = std::strcmp(row.family, "cuda") == 0;
#define WL_RESOLVE(member, cuda_name, hip_name, needed) \
  resolve(library, cuda ? cuda_name : hip_name, api->member, needed, &missing);
  WL_GPU_FUNCTIONS(WL_RESOLVE)
#undef WL_RESOLVE
  if (missing != nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat(upper, ": ", api->library, " has no ", missing, "; it is too old for this Warploom"));
  api->family = row.family;
  int* const numbers[] = {&api->units, &api->l2_bytes, &api->clock_khz,   &api->memory_clock_khz, &api->bus_bits,
                          &api->major, &api->minor,    &api->unit_shared, &api->not_ready};
  for (size_t i = 0; i < std::size(numbers); ++i) *numbers[i] = row.numbers[i];
  if (const int error = api->init(0); error != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(upper, ": ", api->library, " finds no device (error ", error, ", ", api->error_name(error), ")"));
  return api.release();  // the table is kept for the life of the process
}

}  // namespace

bool GpuApi::has_graphs() const {
  return capture_begin != nullptr && capture_end != nullptr && graph_instantiate != nullptr &&
         graph_launch != nullptr && graph_destroy != nullptr && runnable_destroy != nullptr;
}

std::string GpuApi::error_name(int error) const {
  const char* name = nullptr;
  if (error_name_of != nullptr) name = error_name_of(error);
  if (error_name_into != nullptr && error_name_into(error, &name) != 0) name = nullptr;
  return name != nullptr ? name : "unknown";
}

absl::StatusOr<const GpuApi*> gpu_api(const std::string& family) {
  static const auto* const kCuda = new absl::StatusOr<const GpuApi*>(open_api(kApis[0]));
  static const auto* const kHip = new absl::StatusOr<const GpuApi*>(open_api(kApis[1]));
  if (family != "cuda" && family != "hip") return invalid("no GPU family ", family, "; expected cuda or hip");
  return family == "cuda" ? *kCuda : *kHip;
}

absl::Status gpu_error(const GpuApi& api, int error, const std::string& doing) {
  if (error == 0) return absl::OkStatus();
  const auto* row =
      std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorRow& r) { return r.error == error; });
  const std::string text =
      absl::StrCat(absl::AsciiStrToUpper(api.family), " error ", error, " (", api.error_name(error),
                   row != std::end(kErrors) ? absl::StrCat(": ", row->meaning) : "", ") ", doing);
  return error == 2 ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

}  // namespace wl
