// The list of all goldens (golden.h).
#pragma once

#include <vector>

#include "tests/golden/loops.h"
#include "tests/golden/matrices.h"
#include "tests/golden/products.h"

namespace wl::testing {

inline const std::vector<Golden> kGoldens = [] {
  std::vector<Golden> all;
  for (const auto& [folder, table] :
       {std::pair("loops/", &kLoops), std::pair("products/", &kProducts), std::pair("products/", &kMatrixProducts)})
    for (Golden golden : *table) {
      golden.folder = folder;
      all.push_back(golden);
    }
  return all;
}();

}  // namespace wl::testing
