// The import table: every ONNX op that Warploom knows, one row each. A row says from which opset version to which its
// function holds, and the function decomposes one node into primitive ops. To support an op, add its row to table.cpp
// and a case to tests/unit/import/cases.cpp.
#pragma once

#include <limits>
#include <span>
#include <string_view>

#include "compiler/import/call.h"

namespace wl::onnx_import {

// Of the default domain: an op that a newer opset changes may mean something else, and has no row.
inline constexpr int kNewestOpset = 28;
inline constexpr int kAnyLater = std::numeric_limits<int>::max();

struct Row {
  std::string_view op;
  int since;
  T (*build)(Call&);
  int until = kAnyLater;  // last opset version that the function holds for
  std::string_view domain = "";
};

std::span<const Row> rows();  // kRows
// Null if none; a row of the wrong version is returned in `other`, if there is one.
const Row* find_row(std::string_view domain, std::string_view op, int version, const Row** other = nullptr);

}  // namespace wl::onnx_import
