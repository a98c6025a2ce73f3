// The import table has one row for every ONNX op that Warploom supports. A row has a function that decomposes one node
// into primitive ops, and the range of opset versions for which the function holds. To support an op, add its row to
// table.cpp and a case to tests/unit/import/cases.cpp.
#pragma once

#include <limits>
#include <span>
#include <string_view>

#include "compiler/import/call.h"

namespace wl::onnx_import {

// Newest opset version of the default domain that the rows follow. If a newer version redefines an op, the op has no
// row from that version on, since its meaning may have changed.
inline constexpr int kNewestOpset = 28;
inline constexpr int kAnyLater = std::numeric_limits<int>::max();

struct Row {
  std::string_view op;
  int since;
  T (*build)(Call&);
  int until = kAnyLater;  // the last opset version for which `build` holds
  std::string_view domain = "";
  // Whether the node is computed while importing if all its inputs are known. This is false for DequantizeLinear, so
  // that weights stay eight-bit integers, which can be multiplied as such.
  bool folds = true;
};

std::span<const Row> rows();
// Returns the row of an op at an opset version, or null if there is none. If the op has rows for other versions only,
// `*other` is set to one of them.
const Row* find_row(std::string_view domain, std::string_view op, int version, const Row** other = nullptr);

}  // namespace wl::onnx_import
