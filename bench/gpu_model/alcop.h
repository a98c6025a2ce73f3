// The products for which G. Huang et al., "ALCOP" (MLSys 2023) measured pipelining, and bars of speed-ups, for the
// benches that compare with the paper.
#pragma once

#include <cstdio>
#include <string>

#include "compiler/base/status.h"

namespace wl {

struct AlcopProduct {
  const char* name;
  int batch, rows, columns, depth;

  // Returns the text of the product's graph. Operands and result have the type `dtype`, for example "f16".
  std::string graph(const char* dtype) const {
    const auto matrix = [&](int m, int n) { return cat(dtype, "[", batch, ",", m, ",", n, "]"); };
    return cat("graph {\n  %0 = input \"a\" : ", matrix(rows, depth),
               " normal(0,1)\n  %1 = input \"b\" : ", matrix(depth, columns),
               " normal(0,1)\n  %2 = contract %0 %1 \"bmk,bkn->bmn\" : ", matrix(rows, columns),
               "\n  output \"y\" %2\n}\n");
  }
};
constexpr AlcopProduct kAlcopProducts[] = {
    {"1024^3", 1, 1024, 1024, 1024},
    {"2048^3", 1, 2048, 2048, 2048},
    {"4096^3", 1, 4096, 4096, 4096},
    {"BERT projection", 1, 512, 768, 768},
    {"BERT feed-forward 1", 1, 512, 3072, 768},
    {"BERT feed-forward 2", 1, 512, 768, 3072},
    {"BERT-large projection", 1, 512, 1024, 1024},
    {"BERT-large feed-forward 1", 1, 512, 4096, 1024},
    {"BERT-large feed-forward 2", 1, 512, 1024, 4096},
    {"12 x q k", 12, 512, 512, 64},
    {"12 x s v", 12, 512, 64, 512},
    {"16 x q k", 16, 512, 512, 64},
    {"16 x s v", 16, 512, 64, 512},
};

// The paper's speed-ups by pipelining on an A100, over TVM without pipelining. Geometric means: with two buffers, with
// more stages in shared memory, and with stages in registers as well. With all of these: the speed-up of the best
// product, and that of the worst one.
constexpr double kAlcopBuffers = 1.01, kAlcopStages = 1.13, kAlcopRegisters = 1.23, kAlcopBest = 1.73,
                 kAlcopWorst = 0.95;

// Returns one line of a bar chart in plain text. A speed-up of 1 is 30 characters long.
inline std::string speedup_bar(const char* name, double speedup) {
  char line[64];
  std::snprintf(line, sizeof line, "  %-28s %5.2f ", name, speedup);
  return line + std::string(static_cast<size_t>(speedup * 30), '#') + "\n";
}

}  // namespace wl
