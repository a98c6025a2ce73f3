// The driver interfaces of NVIDIA (libcuda) and AMD (libamdhip64) as one table: both have the same functions with the
// same arguments under different names. The libraries are opened at run time, so that one binary runs on every machine.
// To add a function, add a member here and a row in gpu_tables.h.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace wl {

struct GpuApi {
  std::string family;   // name of the GPU family: "cuda" or "hip"
  std::string library;  // file name of the driver library that was opened

  // Every function returns 0 or the number of an error. Handles are opaque; addresses of device memory are void*.
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char*, int bytes, int device) = nullptr;
  int (*device_memory)(size_t*, int device) = nullptr;
  int (*device_attribute)(int*, int attribute, int device) = nullptr;
  int (*device_bus_id)(char*, int bytes, int device) = nullptr;
  int (*context_retain)(void**, int device) = nullptr;
  int (*context_use)(void*) = nullptr;
  int (*memory_left)(size_t* left, size_t* total) = nullptr;
  int (*allocate)(void**, size_t) = nullptr;
  int (*release)(void*) = nullptr;
  // to_device copies bytes from host memory to the device, to_host from the device to host memory; both wait for the
  // end of the copy.
  int (*to_device)(void* to, const void* from, size_t) = nullptr;
  int (*to_host)(void* to, void* from, size_t) = nullptr;
  int (*copy)(void* to, void* from, size_t, void* stream) = nullptr;
  int (*fill)(void* to, unsigned word, size_t words, void* stream) = nullptr;
  int (*stream_create)(void**, unsigned flags) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*stream_query)(void*) = nullptr;  // returns `not_ready` while work in the stream is pending
  int (*module_load)(void**, const void* image) = nullptr;
  int (*module_unload)(void*) = nullptr;
  int (*module_function)(void**, void* module, const char* name) = nullptr;
  int (*function_attribute)(int*, int attribute, void* function) = nullptr;
  // Sets an attribute of a kernel; null for HIP.
  int (*function_set)(void* function, int attribute, int value) = nullptr;
  int (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                void* stream, void** arguments, void** extra) = nullptr;
  int (*event_create)(void**, unsigned flags) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*event_record)(void*, void* stream) = nullptr;
  int (*event_query)(void*) = nullptr;
  int (*event_elapsed)(float* ms, void* from, void* to) = nullptr;
  // Functions that capture launches into a graph and launch the graph. They are null if the driver is too old for them.
  int (*capture_begin)(void* stream, int mode) = nullptr;
  int (*capture_end)(void* stream, void** graph) = nullptr;
  int (*graph_instantiate)(void** runnable, void* graph, unsigned long long flags) = nullptr;
  int (*graph_launch)(void* runnable, void* stream) = nullptr;
  int (*graph_destroy)(void*) = nullptr;
  int (*runnable_destroy)(void*) = nullptr;
  // Functions for the name of an error: CUDA's stores it in its second argument, HIP's returns it. The function of the
  // other API is null.
  int (*error_name_into)(int, const char**) = nullptr;
  const char* (*error_name_of)(int) = nullptr;
  // Gets a device's properties, a struct of more than 2 KiB; null for CUDA.
  int (*properties)(void*, int device) = nullptr;

  // The API's numbers of device attributes, and of the error of a query while work is pending (not_ready).
  int units, l2_bytes, clock_khz, memory_clock_khz, bus_bits, major, minor, unit_shared;
  int not_ready;

  bool has_graphs() const;
  std::string error_name(int error) const;
};

// Returns the API of a family, which is opened once. The error says which library is missing and which package has it.
absl::StatusOr<const GpuApi*> gpu_api(const std::string& family);

// Converts an error number to a status: ResourceExhausted if memory is short, otherwise Internal. After an Internal
// error from a kernel, such as an illegal address, the process cannot use the device any more. The message is "CUDA
// error 700 (CUDA_ERROR_ILLEGAL_ADDRESS: ...) ", followed by `doing`.
absl::Status gpu_error(const GpuApi& api, int error, const std::string& doing);

}  // namespace wl
