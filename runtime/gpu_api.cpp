#include "runtime/gpu_api.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"
#include "runtime/gpu_tables.h"

namespace wl {
namespace {

// Looks up a function of a library by its name. If the library lacks a `needed` function, sets *missing to the name of
// the first such function.
template <typename F>
void resolve(void* library, const char* name, F& function, bool needed, const char** missing) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr && needed && *missing == nullptr) *missing = name;
}

// Sets the functions of `api` that `library` has. Returns the name of the first needed function that it lacks, or null.
const char* resolve_cuda(void* library, GpuApi& api) {
  const char* missing = nullptr;
#define WL_BOTH(member, cuda, hip, needed) resolve(library, #cuda, api.member, needed, &missing);
#define WL_ONE(member, name) resolve(library, #name, api.member, true, &missing);
#define WL_NUMBER(member, cuda, cuda_name, hip, hip_name) api.member = cuda;
  WL_GPU_FUNCTIONS(WL_BOTH)
  WL_CUDA_FUNCTIONS(WL_ONE)
  WL_GPU_NUMBERS(WL_NUMBER)
#undef WL_NUMBER
#undef WL_BOTH
  return missing;
}

const char* resolve_hip(void* library, GpuApi& api) {
  const char* missing = nullptr;
#define WL_BOTH(member, cuda, hip, needed) resolve(library, #hip, api.member, needed, &missing);
#define WL_NUMBER(member, cuda, cuda_name, hip, hip_name) api.member = hip;
  WL_GPU_FUNCTIONS(WL_BOTH)
  WL_HIP_FUNCTIONS(WL_ONE)
  WL_GPU_NUMBERS(WL_NUMBER)
#undef WL_NUMBER
#undef WL_ONE
#undef WL_BOTH
  return missing;
}

struct ApiRow {
  const char* family;
  const char* provider;  // name of the package that installs the driver library
  std::span<const char* const> libraries;
  const char* (*resolve)(void* library, GpuApi& api);
};
constexpr ApiRow kApis[] = {
    {"cuda", "NVIDIA's driver", kCudaDrivers, resolve_cuda},
    {"hip", "ROCm", kHipDrivers, resolve_hip},
};

// Errors of the driver APIs of CUDA and HIP, which use the same numbers.
struct ErrorRow {
  int error;
  const char* meaning;
};
#define WL_BOTH(number, cuda, hip, meaning) {number, meaning},
#define WL_ONE(number, name, meaning) {number, meaning},
constexpr ErrorRow kErrors[] = {WL_GPU_ERRORS(WL_BOTH) WL_CUDA_ERRORS(WL_ONE)};
#undef WL_ONE
#undef WL_BOTH

absl::StatusOr<const GpuApi*> open_api(const ApiRow& row) {
  void* library = nullptr;
  auto api = std::make_unique<GpuApi>();
  for (const char* name : row.libraries) {
    if (library != nullptr) continue;
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) api->library = name;
  }
  const std::string upper = absl::AsciiStrToUpper(row.family);
  if (library == nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat(upper, ": no ", row.libraries[0], " here; ", row.provider, " has it"));
  if (const char* const missing = row.resolve(library, *api); missing != nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat(upper, ": ", api->library, " has no ", missing, "; it is too old for this Warploom"));
  api->family = row.family;
  if (const int error = api->init(0); error != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(upper, ": ", api->library, " finds no device (error ", error, ", ", api->error_name(error), ")"));
  return api.release();  // the table is never freed, since it is used until the process ends
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
