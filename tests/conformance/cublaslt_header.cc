// Compares the tables of runtime/matmul_tables.h with NVIDIA's header. driver_headers_test.py compiles this file and
// never runs it.
#include <cublasLt.h>

#include "runtime/matmul_library.h"
#include "runtime/matmul_tables.h"
#include "tests/conformance/driver_shapes.h"

#define WL_FUNCTION(member, cuda, hip) WL_SAME_SHAPE_OF(wl::MatmulApi, member, cuda)
WL_MATMUL_FUNCTIONS(WL_FUNCTION)
#define WL_NUMBER(member, number, name, hip_number, hip_name) WL_SAME_NUMBER(number, name)
WL_MATMUL_NUMBERS(WL_NUMBER)
#define WL_ALIGNMENT(constant, number, name) WL_SAME_NUMBER(wl::constant, name)
WL_MATMUL_ALIGNMENTS(WL_ALIGNMENT)
#define WL_SAME_PLACE(ours, theirs) \
  static_assert(offsetof(wl::ProposedByCublasLt, ours) == offsetof(cublasLtMatmulHeuristicResult_t, theirs), #theirs);
WL_SAME_PLACE(algorithm, algo)
WL_SAME_PLACE(work_bytes, workspaceSize)
WL_SAME_PLACE(state, state)
static_assert(sizeof(wl::ProposedByCublasLt) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(wl::ProposedByCublasLt::algorithm));
