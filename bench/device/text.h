// Graph text of the device check's workloads.
#pragma once

#include <string>
#include <utility>

#include "compiler/base/status.h"

namespace wl {

// Builds graph text line by line. Functions that add a value return its number.
class Text {
 public:
  Text(int64_t rows, int64_t columns, std::string dtype)
      : rows_(rows), columns_(columns), dtype_(std::move(dtype)), full_(cat("[", rows, ",", columns, "]")) {}

  int add(const std::string& what, const std::string& type) {
    append(&text_, "  %", next_, " = ", what, " : ", type, "\n");
    return next_++;
  }
  // Adds an input of the constructor's dtype and, unless that is f32, its cast to f32: all arithmetic is in f32.
  int input(const std::string& name, const std::string& shape) {
    const int at = stored(name, shape);
    return dtype_ == "f32" ? at : add(cat("cast %", at), cat("f32", shape));
  }
  // Adds an input of the constructor's dtype without a cast.
  int stored(const std::string& name, const std::string& shape) {
    return add(cat("input \"", name, "\""), cat(dtype_, shape, " normal(0,1)"));
  }
  int full(const std::string& op, int a, int b) { return add(cat(op, " %", a, " %", b), cat("f32", full_)); }
  int full(const std::string& op, int a) { return add(cat(op, " %", a), cat("f32", full_)); }
  int row(const std::string& op, int a) { return add(cat(op, " %", a, " axes=[1]"), cat("f32[", rows_, "]")); }
  int row_constant(double value) {
    return add(cat("constant ", absl::StrFormat("%.9g", value)), cat("f32[", rows_, "]"));
  }
  int constant(double value) { return add(cat("constant ", absl::StrFormat("%.9g", value)), cat("f32", full_)); }
  int of_rows(const std::string& op, int a, int b) { return add(cat(op, " %", a, " %", b), cat("f32[", rows_, "]")); }
  // Adds a broadcast over the columns, of a value with one element per row.
  int spread(int a) { return add(cat("broadcast %", a, " dims=[0]"), cat("f32", full_)); }
  // Adds a broadcast over the rows, of a value with one element per column.
  int columns(int a) { return add(cat("broadcast %", a, " dims=[1]"), cat("f32", full_)); }
  // Adds GELU(x) = x Phi(x), by erf.
  int gelu(int x) {
    const int e = full("erf", full("mul", x, constant(0.70710678)));
    return full("mul", full("mul", x, constant(0.5)), full("add", e, constant(1)));
  }
  std::string done(int value) {
    if (dtype_ != "f32") value = add(cat("cast %", value), cat(dtype_, full_));
    return done_with(value);
  }
  // Returns the graph whose output is `value`, which already has the constructor's dtype; done() casts it first.
  std::string done_with(int value) const { return cat("graph {\n", text_, "  output \"y\" %", value, "\n}\n"); }
  int mean(int a) { return of_rows("mul", row("reduce_sum", a), row_constant(1.0 / static_cast<double>(columns_))); }
  const std::string& shape() const { return full_; }
  std::string vector() const { return cat("[", columns_, "]"); }

 private:
  int64_t rows_, columns_;
  std::string dtype_, full_, text_;
  int next_ = 0;
};

}  // namespace wl
