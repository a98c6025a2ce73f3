// Random products with one operand computed from narrower elements: converted, or dequantised by column.
#pragma once

#include <string>

#include "compiler/base/splitmix.h"
#include "compiler/base/status.h"

namespace wl::testing {

// Draws a product with one operand of narrow elements: the left or the right one, in one to three panels, stored along
// rows or along k, with any number of columns.
inline std::string random_narrow_product(uint64_t seed) {
  uint64_t state = seed * kGolden + 3;
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(split_mix(state) % n); };
  static constexpr const char* kNarrow[] = {"f16", "bf16", "i8", "u8"};
  const std::string narrow = kNarrow[below(4)];
  const std::string wide = below(3) == 0 && narrow.ends_with("8") ? "f16" : "f32";
  const std::string fill = narrow == "u8" ? "uniform(0,255)" : narrow == "i8" ? "uniform(-128,127)" : "normal(0,1)";
  const int64_t m = 2 + below(20), k = 1 + below(90), columns = below(2) == 0 ? 32 : 3 + below(80),
                panels = 1 + below(3);
  const bool swapped = below(3) == 0, across = below(5) == 0;
  const std::string q = cat(columns), p = cat(panels);
  const std::string shape = across ? cat("[", p, ",", q, ",", k, "]") : cat("[", p, ",", k, ",", q, "]");
  const std::string dims = across ? "[0,1]" : "[0,2]", letters = across ? "pqk" : "pkq";
  std::string text =
      cat("graph {\n  %0 = input \"x\" : ", wide, "[", m, ",", k, "] normal(0,1)\n  %1 = input \"w\" : ", narrow, shape,
          " ", fill, "\n  %2 = cast %1 : ", wide, shape, "\n");
  int value = 2;
  // For each column, a zero point may be subtracted and a scale may be multiplied.
  for (const char* op : {"sub", "mul"}) {
    if (below(3) != 0) continue;
    append(&text, "  %", value + 1, " = input \"", op, "\" : ", wide, "[", p, ",", q, "] normal(0,1)\n  %", value + 2,
           " = broadcast %", value + 1, " dims=", dims, " : ", wide, shape, "\n  %", value + 3, " = ", op, " %", value,
           " %", value + 2, " : ", wide, shape, "\n");
    value += 3;
  }
  const std::string einsum =
      swapped ? cat("%", value, " %0 \"", letters, ",mk->mpq\"") : cat("%0 %", value, " \"mk,", letters, "->mpq\"");
  append(&text, "  %", value + 1, " = contract ", einsum, " : ", wide, "[", m, ",", p, ",", q, "]\n  output \"y\" %",
         value + 1, "\n}\n");
  return text;
}

}  // namespace wl::testing
