// Names and numbers in the matrix product libraries of NVIDIA (cuBLASLt) and AMD (hipBLASLt), in tables like those of
// gpu_tables.h. tests/conformance/driver_headers_test.py compares them with the vendors' headers where these are
// installed.
#pragma once

#include <cstddef>
#include <cstdint>

// X(member of MatmulApi, cuBLASLt's name, hipBLASLt's name): functions.
#define WL_MATMUL_FUNCTIONS(X)                                                             \
  X(create, cublasLtCreate, hipblasLtCreate)                                               \
  X(destroy, cublasLtDestroy, hipblasLtDestroy)                                            \
  X(layout_create, cublasLtMatrixLayoutCreate, hipblasLtMatrixLayoutCreate)                \
  X(layout_set, cublasLtMatrixLayoutSetAttribute, hipblasLtMatrixLayoutSetAttribute)       \
  X(layout_destroy, cublasLtMatrixLayoutDestroy, hipblasLtMatrixLayoutDestroy)             \
  X(product_create, cublasLtMatmulDescCreate, hipblasLtMatmulDescCreate)                   \
  X(product_set, cublasLtMatmulDescSetAttribute, hipblasLtMatmulDescSetAttribute)          \
  X(product_destroy, cublasLtMatmulDescDestroy, hipblasLtMatmulDescDestroy)                \
  X(wish_create, cublasLtMatmulPreferenceCreate, hipblasLtMatmulPreferenceCreate)          \
  X(wish_set, cublasLtMatmulPreferenceSetAttribute, hipblasLtMatmulPreferenceSetAttribute) \
  X(wish_destroy, cublasLtMatmulPreferenceDestroy, hipblasLtMatmulPreferenceDestroy)       \
  X(propose, cublasLtMatmulAlgoGetHeuristic, hipblasLtMatmulAlgoGetHeuristic)              \
  X(multiply, cublasLtMatmul, hipblasLtMatmul)

// X(member of MatmulApi, cuBLASLt's number, its name, hipBLASLt's number, its name): attributes, types and epilogues.
#define WL_MATMUL_NUMBERS(X)                                                                                     \
  X(batch_count, 5, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 0, HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT)                  \
  X(batch_step, 6, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 1, HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) \
  X(transpose_a, 3, CUBLASLT_MATMUL_DESC_TRANSA, 0, HIPBLASLT_MATMUL_DESC_TRANSA)                                \
  X(transpose_b, 4, CUBLASLT_MATMUL_DESC_TRANSB, 1, HIPBLASLT_MATMUL_DESC_TRANSB)                                \
  X(epilogue, 7, CUBLASLT_MATMUL_DESC_EPILOGUE, 2, HIPBLASLT_MATMUL_DESC_EPILOGUE)                               \
  X(bias_pointer, 8, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 3, HIPBLASLT_MATMUL_DESC_BIAS_POINTER)                   \
  X(bias_dtype, 26, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 4, HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)                \
  X(work_bytes, 1, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)       \
  X(compute_f32, 68, CUBLAS_COMPUTE_32F, 2, HIPBLAS_COMPUTE_32F)                                                 \
  X(compute_tf32, 77, CUBLAS_COMPUTE_32F_FAST_TF32, 6, HIPBLAS_COMPUTE_32F_FAST_TF32)                            \
  X(transposed, 1, CUBLAS_OP_T, 112, HIPBLAS_OP_T)                                                               \
  X(f32, 0, CUDA_R_32F, 0, HIP_R_32F)                                                                            \
  X(f16, 2, CUDA_R_16F, 2, HIP_R_16F)                                                                            \
  X(bf16, 14, CUDA_R_16BF, 14, HIP_R_16BF)                                                                       \
  X(relu, 2, CUBLASLT_EPILOGUE_RELU, 2, HIPBLASLT_EPILOGUE_RELU)                                                 \
  X(gelu, 32, CUBLASLT_EPILOGUE_GELU, 32, HIPBLASLT_EPILOGUE_GELU) /* the approximation by tanh */               \
  X(bias, 4, CUBLASLT_EPILOGUE_BIAS, 4, HIPBLASLT_EPILOGUE_BIAS)                                                 \
  X(plain, 1, CUBLASLT_EPILOGUE_DEFAULT, 1, HIPBLASLT_EPILOGUE_DEFAULT)

// X(constant, number, cuBLASLt's name): preferences that promise the alignment of a matrix in bytes. hipBLASLt does not
// have them.
#define WL_MATMUL_ALIGNMENTS(X)                                   \
  X(kAlignmentOfA, 5, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) \
  X(kAlignmentOfB, 6, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) \
  X(kAlignmentOfC, 7, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) \
  X(kAlignmentOfD, 8, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)

namespace wl {

#define WL_CONSTANT(constant, number, name) inline constexpr int constant = number;
WL_MATMUL_ALIGNMENTS(WL_CONSTANT)
#undef WL_CONSTANT

// A proposed algorithm, with the layout of cublasLtMatmulHeuristicResult_t and hipblasLtMatmulHeuristicResult_t. Only
// `algorithm`, which is opaque, is passed back to the library.
struct ProposedByCublasLt {
  uint64_t algorithm[8];
  size_t work_bytes;
  int state;  // the library's status for this algorithm; 0: the algorithm can be used
  float waves;
  int reserved[4];
};
struct ProposedByHipblasLt {
  uint64_t algorithm[3];
  size_t work_bytes;
  int state;
  float waves;
  int reserved[4];
};

}  // namespace wl
