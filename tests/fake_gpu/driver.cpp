// A GPU driver for machines without a GPU. It exports the functions of libcuda and libamdhip64 that Warploom loads,
// keeps device memory in host memory, and runs a kernel at its launch, block after block, by the shared object in the
// kernel's image (image.h). The field FAULT of a kernel makes it fail as on a GPU: an error that persists in the
// process, an error of only this launch, a kernel or a driver call that never returns, a crash. "wedge" creates a file
// in the folder WARPLOOM_FAKE_STATE; until it is deleted, the kernels of every process fail. This file is built as both
// libraries.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/fake_gpu/facts.h"
#include "tests/fake_gpu/image.h"

namespace {

using namespace fake_gpu;

using Block = void (*)(long, void* const*, char*);

struct Kernel {
  Block run = nullptr;  // code of the kernel; null for the canary kernel and for kernels with a fault
  int arguments = 0;
  bool numbered = false;
  std::string fault;
};
struct Module {
  void* library = nullptr;
  std::map<std::string, Kernel> kernels;
};
struct Event {
  std::chrono::steady_clock::time_point at;
};
struct Graph {
  std::vector<std::function<int()>> launches;
};

// A stream of a program that uses the C library. The stream's work is executed when the program queries the stream.
// Warploom's own streams, which are made without flags, execute their work at once.
struct Stream {
  std::vector<std::function<int()>> waiting;
};

int sticky = kOk;
bool hung = false;
size_t allocated = 0;
std::map<void*, size_t> memory;
std::map<void*, Stream> streams;
Graph* capturing = nullptr;
std::vector<char> arena(size_t{2} << 20);

const std::map<std::string, int> kSticky = {{"illegal_address", kIllegalAddress},
                                            {"misaligned", kMisaligned},
                                            {"assert", kAssert},
                                            {"stack_overflow", kStack},
                                            {"illegal_instruction", kIllegalInstruction},
                                            {"trap", kLaunchFailed}};
const std::map<std::string, int> kAtLaunch = {
    {"launch_too_large", kInvalidValue}, {"out_of_resources", kOutOfResources}, {"out_of_memory", kOutOfMemory}};

size_t capacity() {
  const char* bytes = std::getenv("WARPLOOM_FAKE_MEMORY");
  return bytes != nullptr ? std::strtoull(bytes, nullptr, 10) : size_t{2} << 30;
}

std::string mark() {
  const char* folder = std::getenv("WARPLOOM_FAKE_STATE");
  return folder != nullptr ? std::string(folder) + "/wedged" : "";
}

bool wedged() {
  return !mark().empty() && access(mark().c_str(), F_OK) == 0;
}

int run_kernel(const Kernel& kernel, unsigned grid, unsigned threads, int pass, const std::vector<void*>& values) {
  if (wedged()) return sticky = kLaunchFailed;
  if (kernel.run == nullptr && kernel.fault.empty()) {
    auto* out = static_cast<float*>(values[0]);
    for (unsigned i = 0; i < grid * threads; ++i) out[i] = static_cast<float>(i);
    return kOk;
  }
  if (const auto row = kSticky.find(kernel.fault); row != kSticky.end()) {
    sticky = row->second;  // the next synchronisation reports the error, as on a GPU
    return kOk;
  }
  if (kernel.fault == "hang") {
    hung = true;
    return kOk;
  }
  if (kernel.fault == "wedge") {
    if (std::FILE* file = std::fopen(mark().c_str(), "w")) std::fclose(file);
    return sticky = kLaunchFailed;
  }
  // The driver makes these wrong writes itself, because the simulator would detect them in a kernel.
  if (kernel.fault == "write_past_the_end") static_cast<float*>(values.back())[1025] = 1;
  if (kernel.fault == "write_to_an_input") static_cast<float*>(values.front())[7] = 1;
  if (kernel.run == nullptr) return kOk;
  for (unsigned block = 0; block < grid; ++block)
    kernel.run(static_cast<long>(grid) * pass + block, values.data(), arena.data());
  return kOk;
}

int put(void* stream, const std::function<int()>& work) {
  if (capturing != nullptr) {
    capturing->launches.emplace_back(work);
    return kOk;
  }
  const auto lazy = streams.find(stream);
  if (lazy == streams.end()) return work();
  lazy->second.waiting.push_back(work);
  return kOk;
}

int launch(void* function, unsigned grid, unsigned gy, unsigned gz, unsigned threads, unsigned by, unsigned bz,
           unsigned shared, void* stream, void** arguments, void**) {
  if (sticky != kOk) return sticky;
  const Kernel& kernel = *static_cast<Kernel*>(function);
  if (gy != 1 || gz != 1 || by != 1 || bz != 1 || grid == 0 || threads == 0 || threads > 1024 || shared > 232448)
    return kInvalidValue;
  if (const auto row = kAtLaunch.find(kernel.fault); row != kAtLaunch.end()) return row->second;
  if (kernel.fault == "crash") std::abort();
  while (kernel.fault == "driver_hang") usleep(10'000);
  std::vector<void*> values;
  for (int i = 0; i < kernel.arguments; ++i) values.push_back(*static_cast<void**>(arguments[i]));
  const int pass = kernel.numbered ? *static_cast<int*>(arguments[kernel.arguments]) : 0;
  return put(stream,
             [&kernel, grid, threads, pass, values] { return run_kernel(kernel, grid, threads, pass, values); });
}

int load(void** out, const void* image) {
  if (sticky != kOk) return sticky;
  auto module = std::make_unique<Module>();
  const char* bytes = static_cast<const char*>(image);
  if (std::strncmp(bytes, ".version", 8) == 0) {
    module->kernels["wl_canary"] = {nullptr, 1, false, ""};
    *out = module.release();
    return kOk;
  }
  const std::string kernels = fake_gpu::section_of(bytes, ".wl.kernels");
  const std::string object = fake_gpu::section_of(bytes, ".wl.object");
  if (kernels.empty()) return kInvalidImage;
  const int file = memfd_create("kernel", 0);
  if (file < 0 || write(file, object.data(), object.size()) != static_cast<ssize_t>(object.size())) return kOutOfMemory;
  module->library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  // The descriptor stays open. Otherwise the object of another module could get the same path, and the loader would
  // take it for the object that it has loaded already.
  std::istringstream lines(kernels);
  for (std::string entry, fault; lines >> entry;) {
    Kernel& kernel = module->kernels[entry];
    lines >> kernel.arguments >> kernel.numbered >> fault;
    kernel.fault = fault == "-" ? "" : fault;
    if (module->library != nullptr) kernel.run = reinterpret_cast<Block>(dlsym(module->library, entry.c_str()));
    if (kernel.run == nullptr && kernel.fault.empty()) return kInvalidImage;
  }
  *out = module.release();
  return kOk;
}

int allocate(void** out, size_t bytes) {
  if (sticky != kOk) return sticky;
  if (allocated + bytes > capacity()) return kOutOfMemory;
  *out = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (*out == nullptr) return kOutOfMemory;
  memory[*out] = bytes;
  allocated += bytes;
  return kOk;
}

int release(void* at) {
  const auto row = memory.find(at);
  if (row == memory.end()) return kInvalidValue;
  allocated -= row->second;
  memory.erase(row);
  std::free(at);
  return kOk;
}

int query() {
  return hung ? kNotReady : sticky;
}
int count_devices(int* count) {
  const char* text = std::getenv("WARPLOOM_FAKE_DEVICES");
  *count = text != nullptr ? std::atoi(text) : 1;
  return kOk;
}

// Listens on a local socket, as NVIDIA's driver does to share memory with other processes. A runner's sandbox must
// allow this.
int listen_locally() {
  static const int socket = [] {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const sockaddr_un any = {AF_UNIX, {}};  // the system chooses the socket's name
    const auto* address = reinterpret_cast<const sockaddr*>(&any);
    return fd >= 0 && bind(fd, address, sizeof any.sun_family) == 0 && listen(fd, 16) == 0 ? fd : -1;
  }();
  return socket < 0 ? kOperatingSystem : kOk;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): names of the drivers
// WL_BOTH(CUDA's name, HIP's name, parameters, body): defines a function that is the same in both APIs.
#define WL_BOTH(cuda, hip, parameters, ...) \
  extern "C" int cuda parameters __VA_ARGS__ extern "C" int hip parameters __VA_ARGS__

WL_BOTH(cuInit, hipInit, (unsigned), {
  const char* absent = std::getenv("WARPLOOM_FAKE_ABSENT");
  return absent != nullptr ? 100 : listen_locally();
})
WL_BOTH(cuDeviceGetCount, hipGetDeviceCount, (int* count), { return count_devices(count); })
WL_BOTH(cuDeviceGet, hipDeviceGet, (int* device, int ordinal), {
  *device = ordinal;
  return 0;
})
WL_BOTH(cuDeviceGetName, hipDeviceGetName, (char* name, int bytes, int), {
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return 0;
})
WL_BOTH(cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t * bytes, int), {
  *bytes = capacity();
  return 0;
})
WL_BOTH(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, (char* bus, int bytes, int), {
  std::snprintf(bus, static_cast<size_t>(bytes), "ffff:00:00.0");
  return 0;
})
WL_BOTH(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain, (void** context, int), {
  *context = &memory;
  return 0;
})
WL_BOTH(cuCtxSetCurrent, hipCtxSetCurrent, (void*), { return 0; })
WL_BOTH(cuMemGetInfo_v2, hipMemGetInfo, (size_t * left, size_t* total), {
  *left = capacity() - allocated;
  *total = capacity();
  return sticky;
})
WL_BOTH(cuMemAlloc_v2, hipMalloc, (void** out, size_t bytes), { return allocate(out, bytes); })
WL_BOTH(cuMemFree_v2, hipFree, (void* at), { return release(at); })
WL_BOTH(cuMemcpyHtoD_v2, hipMemcpyHtoD, (void* to, const void* from, size_t bytes), {
  if (query() == 0) std::memcpy(to, from, bytes);
  return query();
})
WL_BOTH(cuMemcpyDtoH_v2, hipMemcpyDtoH, (void* to, void* from, size_t bytes), {
  if (query() == 0) std::memcpy(to, from, bytes);
  return query();
})
WL_BOTH(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, (void* to, void* from, size_t bytes, void* stream), {
  const auto copy = [=] {
    if (query() == 0) std::memcpy(to, from, bytes);
    return query();
  };
  return streams.contains(stream) ? put(stream, copy) : copy();
})
WL_BOTH(cuMemsetD32Async, hipMemsetD32Async, (void* to, unsigned word, size_t words, void*), {
  // While the device is wedged (fault "wedge"), filling memory writes wrong values.
  const unsigned value = wedged() ? ~word : word;
  std::fill_n(static_cast<unsigned*>(to), words, value);
  return query();
})
WL_BOTH(cuStreamCreate, hipStreamCreateWithFlags, (void** stream, unsigned flags), {
  static std::vector<std::unique_ptr<char>> handles;
  *stream = &memory;
  if (flags == 0) return 0;
  *stream = handles.emplace_back(new char).get();
  streams[*stream];
  return 0;
})
WL_BOTH(cuStreamDestroy_v2, hipStreamDestroy, (void*), { return 0; })
WL_BOTH(cuStreamQuery, hipStreamQuery, (void* stream), {
  if (const auto lazy = streams.find(stream); lazy != streams.end())
    for (const auto& work : std::exchange(lazy->second.waiting, {}))
      if (const int error = work(); error != kOk) return error;
  return query();
})
WL_BOTH(cuModuleLoadData, hipModuleLoadData, (void** module, const void* image), { return load(module, image); })
WL_BOTH(cuModuleUnload, hipModuleUnload, (void* module), {
  delete static_cast<Module*>(module);
  return sticky;
})
WL_BOTH(cuModuleGetFunction, hipModuleGetFunction, (void** function, void* module, const char* name), {
  auto& kernels = static_cast<Module*>(module)->kernels;
  const auto row = kernels.find(name);
  if (row == kernels.end()) return kNotFound;
  *function = &row->second;
  return 0;
})
WL_BOTH(cuFuncGetAttribute, hipFuncGetAttribute, (int* value, int, void*), {
  *value = 0;
  return 0;
})
WL_BOTH(cuLaunchKernel, hipModuleLaunchKernel,
        (void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
         void* stream, void** arguments, void** extra),
        { return launch(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra); })
WL_BOTH(cuEventCreate, hipEventCreateWithFlags, (void** event, unsigned), {
  *event = new Event;
  return 0;
})
WL_BOTH(cuEventDestroy_v2, hipEventDestroy, (void* event), {
  delete static_cast<Event*>(event);
  return 0;
})
WL_BOTH(cuEventRecord, hipEventRecord, (void* event, void*), {
  static_cast<Event*>(event)->at = std::chrono::steady_clock::now();
  return sticky;
})
WL_BOTH(cuEventQuery, hipEventQuery, (void*), { return query(); })
WL_BOTH(cuEventElapsedTime, hipEventElapsedTime, (float* ms, void* from, void* to), {
  *ms = std::chrono::duration<float, std::milli>(static_cast<Event*>(to)->at - static_cast<Event*>(from)->at).count();
  return sticky;
})
WL_BOTH(cuStreamBeginCapture_v2, hipStreamBeginCapture, (void*, int), {
  capturing = new Graph;
  return sticky;
})
WL_BOTH(cuStreamEndCapture, hipStreamEndCapture, (void*, void** graph), {
  *graph = std::exchange(capturing, nullptr);
  return sticky;
})
WL_BOTH(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags, (void** out, void* graph, unsigned long long), {
  *out = new Graph(*static_cast<Graph*>(graph));
  return sticky;
})
WL_BOTH(cuGraphLaunch, hipGraphLaunch, (void* graph, void*), {
  for (const auto& call : static_cast<Graph*>(graph)->launches)
    if (const int error = call(); error != 0) return error;
  return sticky;
})
WL_BOTH(cuGraphDestroy, hipGraphDestroy, (void* graph), {
  delete static_cast<Graph*>(graph);
  return 0;
})
WL_BOTH(cuGraphExecDestroy, hipGraphExecDestroy, (void* graph), {
  delete static_cast<Graph*>(graph);
  return 0;
})

// Functions that are not the same in both APIs. The first one is no function of a driver: with it the fake libraries
// (blas.cpp) put work into a stream, as a launch does.
extern "C" int fake_gpu_put(void* stream, const std::function<int()>& work) {
  return sticky != kOk ? sticky : put(stream, work);
}
extern "C" int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
extern "C" int hipDriverGetVersion(int* version) {
  *version = 60'200'000;
  return 0;
}
extern "C" int cuDeviceGetAttribute(int* value, int number, int) {
  return attribute(value, number, true);
}
extern "C" int hipDeviceGetAttribute(int* value, int number, int) {
  return attribute(value, number, false);
}
extern "C" int cuFuncSetAttribute(void*, int, int bytes) {
  return bytes > 227 << 10 ? kInvalidValue : kOk;
}
extern "C" int cuGetErrorName(int error, const char** name) {
  *name = name_of(error);
  return 0;
}
extern "C" const char* hipGetErrorName(int error) {
  return name_of(error);
}
extern "C" int hipGetDeviceProperties(void* out, int) {
  std::memcpy(out, "Fake GPU", 9);
  std::memcpy(static_cast<char*>(out) + 1160, "gfx90a:sramecc+:xnack-", 23);
  return 0;
}
// NOLINTEND(readability-identifier-naming)
