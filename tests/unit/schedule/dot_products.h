// Random products of narrow elements, which machines with dot-product instructions multiply as words of 32 bits.
#pragma once

#include <string>

#include "compiler/base/splitmix.h"
#include "compiler/base/status.h"

namespace wl::testing {

// Draws a product whose operands are stored in any order of axes, with elementwise work on one operand, with a batch,
// or with panels of words.
inline std::string random_product(uint64_t seed) {
  uint64_t state = seed * kGolden;
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(split_mix(state) % n); };
  const bool bf16 = below(2) == 0, swapped = below(2) == 0;
  const std::string a = bf16 ? "bf16" : swapped ? "i8" : "u8", b = bf16 ? "bf16" : swapped ? "u8" : "i8";
  const auto fill = [](const std::string& dtype) {
    return dtype == "bf16" ? "normal(0,1)" : dtype == "u8" ? "uniform(0,255)" : "uniform(-128,127)";
  };
  const std::string sum = bf16 ? "bf16" : "i32";
  const int64_t m = 2 + below(20), n = 2 + below(70), k = 1 + below(40), word = bf16 ? 2 : 4;
  const auto input = [&](int id, const std::string& dtype, const std::string& shape) {
    return cat("  %", id, " = input \"x", id, "\" : ", dtype, "[", shape, "] ", fill(dtype), "\n");
  };
  const auto product = [&](const std::string& inputs, const std::string& left, const std::string& einsum,
                           const std::string& shape) {
    return cat("graph {\n", inputs, "  %3 = contract ", left, " %1 \"", einsum, "\" : ", sum, "[", shape,
               "]\n  output \"y\" %3\n}\n");
  };
  switch (below(5)) {
    case 0:  // the right operand is in words, in one panel or two
      if (below(2) == 0)
        return product(input(0, a, cat(m, ",", k, ",", word)) + input(1, b, cat(k, ",", n, ",", word)), "%0",
                       "mkj,kqj->mq", cat(m, ",", n));
      return product(input(0, a, cat(m, ",", k, ",", word)) + input(1, b, cat("2,", k, ",32,", word)), "%0",
                     "mkj,pkqj->mpq", cat(m, ",2,32"));
    case 1:
      return product(input(0, a, cat(m, ",", k)) + input(1, b, cat(n, ",", k)), "%0", "mk,nk->mn", cat(m, ",", n));
    case 2:  // the left operand is stored transposed
      return product(input(0, a, cat(k, ",", m)) + input(1, b, cat(k, ",", n)), "%0", "km,kn->mn", cat(m, ",", n));
    case 3:  // a batch, and two loops over k
      return product(input(0, a, cat("2,", m, ",3,", k)) + input(1, b, cat("2,3,", k, ",", n)), "%0", "bmlk,blkn->bmn",
                     cat("2,", m, ",", n));
    default:  // elementwise work on the left operand
      return product(
          input(0, a, cat(m, ",", k)) + cat("  %2 = abs %0 : ", a, "[", m, ",", k, "]\n") + input(1, b, cat(k, ",", n)),
          "%2", "mk,kn->mn", cat(m, ",", n));
  }
}

}  // namespace wl::testing
