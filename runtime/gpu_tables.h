// Names and numbers in the driver interfaces of NVIDIA (libcuda) and AMD (libamdhip64), as far as Warploom uses them:
// functions, attributes, modes and errors. Numbers have their names beside them, so that
// tests/conformance/driver_headers_test.py can compare each row with the vendors' headers where these are installed. To
// add a function, add a row here and a member to GpuApi (gpu_api.h).
#pragma once

// X(member of GpuApi, CUDA's name, HIP's name, needed): a driver that lacks a needed function is too old.
#define WL_GPU_FUNCTIONS(X)                                                              \
  X(init, cuInit, hipInit, true)                                                         \
  X(driver_version, cuDriverGetVersion, hipDriverGetVersion, true)                       \
  X(device_count, cuDeviceGetCount, hipGetDeviceCount, true)                             \
  X(device_get, cuDeviceGet, hipDeviceGet, true)                                         \
  X(device_name, cuDeviceGetName, hipDeviceGetName, true)                                \
  X(device_memory, cuDeviceTotalMem_v2, hipDeviceTotalMem, true)                         \
  X(device_attribute, cuDeviceGetAttribute, hipDeviceGetAttribute, true)                 \
  X(device_bus_id, cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, true)                      \
  X(context_retain, cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain, true)           \
  X(context_use, cuCtxSetCurrent, hipCtxSetCurrent, true)                                \
  X(memory_left, cuMemGetInfo_v2, hipMemGetInfo, true)                                   \
  X(allocate, cuMemAlloc_v2, hipMalloc, true)                                            \
  X(release, cuMemFree_v2, hipFree, true)                                                \
  X(to_device, cuMemcpyHtoD_v2, hipMemcpyHtoD, true)                                     \
  X(to_host, cuMemcpyDtoH_v2, hipMemcpyDtoH, true)                                       \
  X(copy, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, true)                                \
  X(fill, cuMemsetD32Async, hipMemsetD32Async, true)                                     \
  X(stream_create, cuStreamCreate, hipStreamCreateWithFlags, true)                       \
  X(stream_destroy, cuStreamDestroy_v2, hipStreamDestroy, true)                          \
  X(stream_query, cuStreamQuery, hipStreamQuery, true)                                   \
  X(module_load, cuModuleLoadData, hipModuleLoadData, true)                              \
  X(module_unload, cuModuleUnload, hipModuleUnload, true)                                \
  X(module_function, cuModuleGetFunction, hipModuleGetFunction, true)                    \
  X(function_attribute, cuFuncGetAttribute, hipFuncGetAttribute, true)                   \
  X(launch, cuLaunchKernel, hipModuleLaunchKernel, true)                                 \
  X(event_create, cuEventCreate, hipEventCreateWithFlags, true)                          \
  X(event_destroy, cuEventDestroy_v2, hipEventDestroy, true)                             \
  X(event_record, cuEventRecord, hipEventRecord, true)                                   \
  X(event_query, cuEventQuery, hipEventQuery, true)                                      \
  X(event_elapsed, cuEventElapsedTime, hipEventElapsedTime, true)                        \
  X(capture_begin, cuStreamBeginCapture_v2, hipStreamBeginCapture, false)                \
  X(capture_end, cuStreamEndCapture, hipStreamEndCapture, false)                         \
  X(graph_instantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags, false) \
  X(graph_launch, cuGraphLaunch, hipGraphLaunch, false)                                  \
  X(graph_destroy, cuGraphDestroy, hipGraphDestroy, false)                               \
  X(runnable_destroy, cuGraphExecDestroy, hipGraphExecDestroy, false)

// X(member of GpuApi, name): functions that only one of the two APIs has; all are needed.
#define WL_CUDA_FUNCTIONS(X)          \
  X(function_set, cuFuncSetAttribute) \
  X(error_name_into, cuGetErrorName)
#define WL_HIP_FUNCTIONS(X)         \
  X(error_name_of, hipGetErrorName) \
  X(properties, hipGetDeviceProperties)

// X(member of GpuApi, CUDA's number, CUDA's name, HIP's number, HIP's name): attributes of devices, and an error.
#define WL_GPU_NUMBERS(X)                                                                                  \
  X(units, 16, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 63, hipDeviceAttributeMultiprocessorCount)        \
  X(l2_bytes, 38, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 19, hipDeviceAttributeL2CacheSize)                    \
  X(clock_khz, 13, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 5, hipDeviceAttributeClockRate)                         \
  X(memory_clock_khz, 36, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 60, hipDeviceAttributeMemoryClockRate)    \
  X(bus_bits, 37, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 59, hipDeviceAttributeMemoryBusWidth)       \
  X(major, 75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 23, hipDeviceAttributeComputeCapabilityMajor) \
  X(minor, 76, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 61, hipDeviceAttributeComputeCapabilityMinor) \
  X(unit_shared, 81, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 10002,                      \
    hipDeviceAttributeMaxSharedMemoryPerMultiprocessor)                                                    \
  X(not_ready, 600, CUDA_ERROR_NOT_READY, 600, hipErrorNotReady)

// X(constant, number in both APIs, CUDA's name, HIP's name): flags and modes.
#define WL_GPU_MODES(X)                                                                                        \
  X(kInOrder, 0, CU_STREAM_DEFAULT, hipStreamDefault) /* a stream that is ordered with copies from the host */ \
  X(kTimedEvent, 0, CU_EVENT_DEFAULT, hipEventDefault)                                                         \
  X(kRelaxed, 2, CU_STREAM_CAPTURE_MODE_RELAXED, hipStreamCaptureModeRelaxed) /* other threads may use the driver */

// X(number in both APIs, CUDA's name, HIP's name, meaning): errors.
#define WL_GPU_ERRORS(X)                                                                                               \
  X(1, CUDA_ERROR_INVALID_VALUE, hipErrorInvalidValue, "an argument of the launch is not valid")                       \
  X(2, CUDA_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory, "out of memory")                                                 \
  X(200, CUDA_ERROR_INVALID_IMAGE, hipErrorInvalidImage, "the image is not valid")                                     \
  X(209, CUDA_ERROR_NO_BINARY_FOR_GPU, hipErrorNoBinaryForGpu, "the code is for another architecture")                 \
  X(500, CUDA_ERROR_NOT_FOUND, hipErrorNotFound, "the module has no such kernel")                                      \
  X(700, CUDA_ERROR_ILLEGAL_ADDRESS, hipErrorIllegalAddress, "illegal address")                                        \
  X(701, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, hipErrorLaunchOutOfResources, "the launch asks for more than a unit has") \
  X(702, CUDA_ERROR_LAUNCH_TIMEOUT, hipErrorLaunchTimeOut, "the launch timed out")                                     \
  X(710, CUDA_ERROR_ASSERT, hipErrorAssert, "an assertion failed")                                                     \
  X(719, CUDA_ERROR_LAUNCH_FAILED, hipErrorLaunchFailure, "the launch failed")

// X(number, CUDA's name, meaning): errors for which HIP defines no name.
#define WL_CUDA_ERRORS(X)                                                     \
  X(714, CUDA_ERROR_HARDWARE_STACK_ERROR, "stack error")                      \
  X(715, CUDA_ERROR_ILLEGAL_INSTRUCTION, "illegal instruction")               \
  X(716, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address")                 \
  X(717, CUDA_ERROR_INVALID_ADDRESS_SPACE, "address of another memory space") \
  X(718, CUDA_ERROR_INVALID_PC, "the program counter left the code")

namespace wl {

// File names of the driver libraries, in the order in which they are tried.
inline constexpr const char* kCudaDrivers[] = {"libcuda.so.1", "libcuda.so"};
inline constexpr const char* kHipDrivers[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                              "/opt/rocm/lib/libamdhip64.so"};

#define WL_CONSTANT(constant, number, ...) inline constexpr int constant = number;
WL_GPU_MODES(WL_CONSTANT)
#undef WL_CONSTANT
// The function attribute CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES of CUDA: how much shared memory a launch may
// request.
inline constexpr int kMaxDynamicShared = 8;

}  // namespace wl
