// Short ways to write the inputs of a case.
#pragma once

#include <utility>
#include <vector>

#include "tests/unit/import/cases.h"

namespace wl::testing {

using onnx::TensorProto;
using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

inline constexpr const char* kMicrosoft = "com.microsoft";

inline CaseInput f(Ints shape) {
  return {.type = TensorProto::FLOAT, .shape = std::move(shape)};
}
inline CaseInput f(Ints shape, double mean, double stddev) {
  return {.type = TensorProto::FLOAT, .shape = std::move(shape), .mean = mean, .stddev = stddev};
}
inline CaseInput positive(Ints shape) {
  return f(std::move(shape), 2, 0.4);
}
inline CaseInput f64(Ints shape) {
  return {.type = TensorProto::DOUBLE, .shape = std::move(shape)};
}
inline CaseInput f16(Ints shape) {
  return {.type = TensorProto::FLOAT16, .shape = std::move(shape)};
}
inline CaseInput ints(Ints shape, int64_t low, int64_t high, int type = TensorProto::INT64) {
  return {.type = type, .shape = std::move(shape), .low = low, .high = high};
}
inline CaseInput bools(Ints shape) {
  return {.type = TensorProto::BOOL, .shape = std::move(shape)};
}
inline CaseInput list(Ints values) {
  const auto count = static_cast<int64_t>(values.size());
  return {.type = TensorProto::INT64, .shape = {count}, .values = {values.begin(), values.end()}};
}
inline CaseInput number(double value, int type = TensorProto::FLOAT) {
  return {.type = type, .values = {value}};
}
inline CaseInput floats(Ints shape, Reals values) {
  return {.type = TensorProto::FLOAT, .shape = std::move(shape), .values = std::move(values)};
}
inline const CaseInput kNone;

// Lists of cases that import_cases() in cases.cpp joins with its own ones.
std::vector<Case> attention_cases();
std::vector<Case> signal_cases();
std::vector<Case> sampling_cases();
std::vector<Case> scatter_cases();
std::vector<Case> quantised_cases();
std::vector<Case> fused_cases();
std::vector<Case> block_cases();

}  // namespace wl::testing
