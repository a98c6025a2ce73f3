// Compares the tables of runtime/matmul_tables.h with AMD's header. driver_headers_test.py compiles this file and never
// runs it.
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <hipblaslt/hipblaslt.h>

#include "runtime/matmul_library.h"
#include "runtime/matmul_tables.h"
#include "tests/conformance/driver_shapes.h"

#define WL_FUNCTION(member, cuda, hip) WL_SAME_SHAPE_OF(wl::MatmulApi, member, hip)
WL_MATMUL_FUNCTIONS(WL_FUNCTION)
#define WL_NUMBER(member, cuda_number, cuda_name, number, name) WL_SAME_NUMBER(number, name)
WL_MATMUL_NUMBERS(WL_NUMBER)
#define WL_SAME_PLACE(ours, theirs) \
  static_assert(offsetof(wl::ProposedByHipblasLt, ours) == offsetof(hipblasLtMatmulHeuristicResult_t, theirs), #theirs);
WL_SAME_PLACE(algorithm, algo)
WL_SAME_PLACE(work_bytes, workspaceSize)
WL_SAME_PLACE(state, state)
static_assert(sizeof(wl::ProposedByHipblasLt) == sizeof(hipblasLtMatmulHeuristicResult_t));
static_assert(sizeof(hipblasLtMatmulAlgo_t) == sizeof(wl::ProposedByHipblasLt::algorithm));
