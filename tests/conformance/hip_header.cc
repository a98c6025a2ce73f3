// Compares the tables of runtime/gpu_tables.h with AMD's header. driver_headers_test.py compiles this file and never
// runs it.
#define __HIP_PLATFORM_AMD__
#define __HIP_DISABLE_CPP_FUNCTIONS__  // leaves out the C++ overloads of HIP's functions
#include <hip/hip_runtime_api.h>

#include "tests/conformance/driver_shapes.h"

#define WL_FUNCTION(member, cuda, hip, needed) WL_SAME_SHAPE(member, hip)
WL_GPU_FUNCTIONS(WL_FUNCTION)
WL_HIP_FUNCTIONS(WL_SAME_SHAPE)
#define WL_NUMBER(member, cuda_number, cuda_name, number, name) WL_SAME_NUMBER(number, name)
WL_GPU_NUMBERS(WL_NUMBER)
#define WL_MODE(constant, number, cuda_name, name) WL_SAME_NUMBER(wl::constant, name)
WL_GPU_MODES(WL_MODE)
#define WL_ERROR(number, cuda_name, name, meaning) WL_SAME_NUMBER(number, name)
WL_GPU_ERRORS(WL_ERROR)
