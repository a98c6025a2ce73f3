// Compares the tables of runtime/gpu_tables.h with NVIDIA's header. driver_headers_test.py compiles this file and never
// runs it.
#include <cuda.h>

#include "tests/conformance/driver_shapes.h"

#define WL_FUNCTION(member, cuda, hip, needed) WL_SAME_SHAPE(member, cuda)
WL_GPU_FUNCTIONS(WL_FUNCTION)
WL_CUDA_FUNCTIONS(WL_SAME_SHAPE)
#define WL_NUMBER(member, number, name, hip_number, hip_name) WL_SAME_NUMBER(number, name)
WL_GPU_NUMBERS(WL_NUMBER)
#define WL_MODE(constant, number, name, hip_name) WL_SAME_NUMBER(wl::constant, name)
WL_GPU_MODES(WL_MODE)
WL_SAME_NUMBER(wl::kMaxDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
#define WL_ERROR(number, name, hip_name, meaning) WL_SAME_NUMBER(number, name)
WL_GPU_ERRORS(WL_ERROR)
#define WL_ERROR_OF_CUDA(number, name, meaning) WL_SAME_NUMBER(number, name)
WL_CUDA_ERRORS(WL_ERROR_OF_CUDA)
