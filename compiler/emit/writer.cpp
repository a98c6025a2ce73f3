#include "compiler/emit/writer.h"

#include <cmath>
#include <limits>

namespace wl {

void Writer::line(std::string_view text) {
  out_.append(2 * static_cast<size_t>(depth_), ' ');
  out_.append(text);
  out_.push_back('\n');
}

void Writer::open(std::string_view text) {
  line(text.empty() ? "{" : cat(text, " {"));
  ++depth_;
}

void Writer::close() {
  --depth_;
  line("}");
}

std::string spell_var(VarId var) {
  return var == 0 ? "block" : cat("v", var);
}

std::string spell(const Affine& affine) {
  std::string out;
  for (const auto& [var, coefficient] : affine.terms) {
    if (coefficient == 0) continue;
    if (!out.empty()) out += " + ";
    out += spell_var(var);
    if (coefficient != 1) append(&out, "*", coefficient, "L");
  }
  if (affine.base != 0 || out.empty()) append(&out, out.empty() ? "" : " + ", affine.base, "L");
  return out;
}

std::string spell_min(const std::vector<Affine>& affines) {
  std::string out = spell(affines[0]);
  for (size_t i = 1; i < affines.size(); ++i) out = cat("wl_lmin(", out, ", ", spell(affines[i]), ")");
  return out;
}

std::string spell_constant(double value, DType dtype) {
  if (!is_float(dtype)) {
    if (dtype == DType::i64 && value <= static_cast<double>(std::numeric_limits<int64_t>::min()))
      return "(-9223372036854775807LL - 1)";
    return cat("((", spell_type(dtype, 1), ")", static_cast<int64_t>(value), "LL)");
  }
  const bool wide = dtype == DType::f64;
  if (std::isnan(value)) return wide ? "__builtin_nan(\"\")" : "__builtin_nanf(\"\")";
  if (std::isinf(value)) return cat(value < 0 ? "-" : "", wide ? "__builtin_inf()" : "__builtin_inff()");
  if (wide) return absl::StrFormat("%a", value);
  return absl::StrFormat("%af", static_cast<double>(static_cast<float>(value)));
}

std::string spell_type(DType dtype, int lanes) {
  if (lanes == 1) return std::string(name_of(dtype));
  return dtype == DType::b1 ? "u8v" : cat(name_of(dtype), "v");
}

}  // namespace wl
