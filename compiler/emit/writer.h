// A tiny indenting printer, and the spellings that every C-family target shares: numbers, affine indices, types.
#pragma once

#include <string>
#include <string_view>

#include "compiler/lower/kernel.h"

namespace wl {

class Writer {
 public:
  void line(std::string_view text);  // one line at the current indentation
  void open(std::string_view text);  // "text {"
  void close();                      // "}"
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  int depth_ = 0;
};

// "0L + block*4096L + v3": a 64-bit expression.
std::string spell(const Affine& affine);
// The minimum of several, "(a < b ? a : b)".
std::string spell_min(const std::vector<Affine>& affines);
std::string spell_var(VarId var);
// A literal of a scalar dtype, exact; infinities and NaN by builtins.
std::string spell_constant(double value, DType dtype);
// "f32" or, with lanes, "f32v".
std::string spell_type(DType dtype, int lanes);

}  // namespace wl
