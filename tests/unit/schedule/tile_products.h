// Random products of narrow elements, large enough for tile registers (Intel AMX), with partial tiles along every axis.
#pragma once

#include <algorithm>
#include <string>

#include "compiler/base/splitmix.h"
#include "compiler/base/status.h"

namespace wl::testing {

// Draws a product. Its left operand is stored in any order of axes, or has elementwise work. The right operand is
// stored by rows, by columns or in panels of 32-bit words. Some products have a batch, several loops over k, or
// elementwise work on the result.
inline std::string tile_product(uint64_t seed) {
  uint64_t state = seed * kGolden;
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(split_mix(state) % n); };
  const bool bf16 = below(2) == 0, swapped = below(2) == 0;
  const std::string a = bf16 ? "bf16" : swapped ? "i8" : "u8", b = bf16 ? "bf16" : swapped ? "u8" : "i8";
  const std::string sum = bf16 ? "bf16" : "i32";
  const int64_t word = bf16 ? 2 : 4, m = 9 + below(60), n = 9 + below(60);
  const int64_t words = (9 + below(8)) * (1 + below(3)), k = words * word;
  const auto input = [&](int id, const std::string& dtype, const std::string& shape) {
    const char* const fill = dtype == "bf16" ? "normal(0,1)" : dtype == "u8" ? "uniform(0,255)" : "uniform(-128,127)";
    return cat("  %", id, " = input \"x", id, "\" : ", dtype, "[", shape, "] ", fill, "\n");
  };
  const auto product = [&](const std::string& inputs, const std::string& left, const std::string& einsum,
                           const std::string& shape) {
    const std::string type = cat(" : ", sum, "[", shape, "]\n");
    std::string work;
    if (below(2) == 0) work = cat("  %4 = input \"z\"", type, "  %5 = sub %3 %4", type, "  %6 = abs %5", type);
    return cat("graph {\n", inputs, "  %3 = contract ", left, " %1 \"", einsum, "\"", type, work, "  output \"y\" ",
               work.empty() ? "%3" : "%6", "\n}\n");
  };
  switch (below(7)) {
    case 0: {  // the right operand is in panels of words
      const int64_t width = 16 * (1 + below(4));
      return product(input(0, a, cat(m, ",", words, ",", word)) + input(1, b, cat("2,", words, ",", width, ",", word)),
                     "%0", "mkj,pkqj->mpq", cat(m, ",2,", width));
    }
    case 1:
      return product(input(0, a, cat(m, ",", words, ",", word)) + input(1, b, cat(words, ",", n, ",", word)), "%0",
                     "mkj,kqj->mq", cat(m, ",", n));
    case 2:
      return product(input(0, a, cat(m, ",", k)) + input(1, b, cat(n, ",", k)), "%0", "mk,nk->mn", cat(m, ",", n));
    case 3: {  // the left operand is stored transposed; the last word needs padding
      const int64_t most = k - below(word);
      return product(input(0, a, cat(most, ",", m)) + input(1, b, cat(most, ",", n)), "%0", "km,kn->mn",
                     cat(m, ",", n));
    }
    case 4:  // a batch, and two loops over k, the longer one outside
      return product(input(0, a, cat("2,", m, ",", k, ",3")) + input(1, b, cat("2,", k, ",3,", n)), "%0",
                     "bmlk,blkn->bmn", cat("2,", m, ",", n));
    case 5:  // the longer loop over k is the inner one; rows have two axes
      return product(input(0, a, cat("3,", m, ",3,", k)) + input(1, b, cat("3,", k, ",", n)), "%0", "bmlk,lkn->bmn",
                     cat("3,", m, ",", n));
    default:  // elementwise work on the left operand
      return product(
          input(0, a, cat(m, ",", k)) + cat("  %2 = abs %0 : ", a, "[", m, ",", k, "]\n") + input(1, b, cat(k, ",", n)),
          "%2", "mk,kn->mn", cat(m, ",", n));
  }
}

}  // namespace wl::testing
