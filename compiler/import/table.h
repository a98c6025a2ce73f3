// The import table: one row for every ONNX op that Warploom supports. A row has the range of opset versions for which
// its function holds, and the function decomposes one node into primitive ops. To support an op, add its row to
// table.cpp and a case to tests/unit/import/cases.cpp.
#pragma once

#include <limits>
#include <span>
#include <string_view>

#include "compiler/import/call.h"

namespace wl::onnx_import {

// Newest supported version of the default domain. A newer opset may change the meaning of an op.
inline constexpr int kNewestOpset = 28;
inline constexpr int kAnyLater = std::numeric_limits<int>::max();

struct Row {
  std::string_view op;
  int since;
  T (*build)(Call&);
  int until = kAnyLater;  // last opset version for which the function holds
  std::string_view domain = "";
  // Whether known inputs are computed with while importing. Weights that stay bytes can be multiplied as bytes.
  bool folds = true;
};

std::span<const Row> rows();  // returns kRows
// Returns null if there is no row. If there is one for other versions only, `other` is set to it.
const Row* find_row(std::string_view domain, std::string_view op, int version, const Row** other = nullptr);

}  // namespace wl::onnx_import
