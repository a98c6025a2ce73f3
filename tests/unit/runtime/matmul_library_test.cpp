// The real cuBLASLt, where installed, accepts every description of a product, even without a GPU. tests/conformance
// compares the constants and sizes of runtime/matmul_library.h with the header of cuBLASLt.
#include "runtime/matmul_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wl {
namespace {

using ::testing::HasSubstr;

TEST(MatmulLibrary, TakesEveryDescription) {
  const auto api = matmul_api("cublaslt");
  if (!api.ok()) GTEST_SKIP() << api.status().message();
  EXPECT_EQ(matmul_library_for("cuda"), "cublaslt=" + (*api)->version);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const MatmulFunction function : {MatmulFunction::kNone, MatmulFunction::kRelu, MatmulFunction::kGeluTanh})
      for (int with = 0; with < 16; ++with) {
        MatmulCall call;
        call.factors = dtype;
        call.result = (with & 8) != 0 ? DType::f32 : dtype;
        call.a = {0, 4, 24, 40, 24, 960};
        call.b = {1, 0, 16, 40, 16, 640};
        call.b_transposed = true;
        call.d = {4, 0, 24, 16, 24, 384};
        call.function = function;
        if ((with & 1) != 0) call.batch = 3;
        if ((with & 2) != 0) call.bias = MatmulMatrix{2, 0, 24, 1, 24, 0};
        if ((with & 4) != 0) call.c = call.d;
        const auto product = MatmulProduct::describe(**api, call);
        EXPECT_TRUE(product.ok()) << product.status();
      }
}

TEST(MatmulLibrary, AMissingOneIsNamed) {
  EXPECT_FALSE(matmul_api("onednn").ok());
  std::string why;
  if (matmul_library_for("hip", &why).empty()) {
    EXPECT_THAT(why, HasSubstr("hipBLASLt of AMD's ROCm"));
  }
  EXPECT_EQ(matmul_library_for("cpu", &why), "");
  EXPECT_FALSE(MatmulKernel::load("cublaslt", "{}").ok());
}

}  // namespace
}  // namespace wl
