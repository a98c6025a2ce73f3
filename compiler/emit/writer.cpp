#include "compiler/emit/writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

namespace wl {
namespace {

// `count` neighbouring bits of a variable, from bit `from` on, which become neighbouring bits of the result, from bit
// `to` on.
struct Run {
  int from = 0, to = 0, count = 1;
  uint64_t mask() const { return ((uint64_t{1} << count) - 1) << to; }
};

std::vector<Run> runs_of(const std::vector<uint64_t>& moves) {
  std::vector<Run> out;
  for (int from = 0; from < static_cast<int>(moves.size()); ++from)
    for (uint64_t rest = moves[from]; rest != 0; rest &= rest - 1) {
      const int to = std::countr_zero(rest);
      const auto before = std::find_if(out.begin(), out.end(), [&](const Run& run) {
        return run.from + run.count == from && run.to + run.count == to;
      });
      if (before == out.end()) {
        out.push_back({from, to, 1});
      } else {
        ++before->count;
      }
    }
  return out;
}

// One term, or several of which each has bits in common with another one. `mask` has the bits of all these terms.
struct Overlap {
  uint64_t mask = 0;
  std::vector<std::string> terms;
};

void add_term(std::vector<Overlap>& overlaps, Overlap term) {
  for (auto it = overlaps.begin(); it != overlaps.end();) {
    if ((it->mask & term.mask) == 0) {
      ++it;
      continue;
    }
    term.mask |= it->mask;
    term.terms.insert(term.terms.begin(), it->terms.begin(), it->terms.end());
    it = overlaps.erase(it);
  }
  overlaps.push_back(std::move(term));
}

}  // namespace

std::string spell_bits(const std::string& variable, const std::vector<uint64_t>& moves, uint64_t constant,
                       int64_t* added) {
  std::vector<Overlap> overlaps;
  for (const Run& run : runs_of(moves)) {
    std::string text = run.from == 0 ? variable : cat("(", variable, " >> ", run.from, ")");
    if (run.from + run.count < static_cast<int>(moves.size()))
      text = cat("(", text, " & ", (uint64_t{1} << run.count) - 1, ")");
    if (run.to != 0) text = cat(text, "*", uint64_t{1} << run.to);
    add_term(overlaps, {run.mask(), {text}});
  }
  std::vector<std::string> sum;
  for (Overlap& overlap : overlaps) {
    if (const uint64_t part = constant & overlap.mask; part != 0) overlap.terms.push_back(cat(part));
    constant &= ~overlap.mask;
    sum.push_back(overlap.terms.size() == 1 ? overlap.terms[0] : cat("(", absl::StrJoin(overlap.terms, " ^ "), ")"));
  }
  if (added != nullptr)
    *added = static_cast<int64_t>(constant);
  else if (constant != 0)
    sum.push_back(cat(constant));
  if (sum.empty()) return "0";
  return sum.size() == 1 ? sum[0] : cat("(", absl::StrJoin(sum, " + "), ")");
}

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

namespace {

std::string note_of(std::string_view text) {
  std::string note = cat("// ", text);
  for (char& c : note)
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)) || c == '\\' || c == '?') c = '_';
  return note;
}

}  // namespace

void Writer::note(std::string_view text) {
  if (!out_.empty()) notes_.emplace_back(out_.size() - 1, cat("  ", note_of(text)));
}

void Writer::note_line(std::string_view text) {
  notes_.emplace_back(out_.size(), cat(std::string(2 * static_cast<size_t>(depth_), ' '), note_of(text), "\n"));
}

std::string Writer::with_notes(std::string_view text) const {
  std::string out;
  size_t from = 0;
  for (const auto& [at, note] : notes_) {
    append(&out, text.substr(from, at - from), note);
    from = at;
  }
  return cat(out, text.substr(from));
}

std::string comment_of(std::string name) {
  for (char& c : name)
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  return name;
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
  if (dtype == DType::u64) {
    const double clamped = std::clamp(value, 0.0, 0x1p64);
    return cat("((u64)", clamped >= 0x1p64 ? ~uint64_t{0} : static_cast<uint64_t>(clamped), "ULL)");
  }
  if (!is_float(dtype)) {
    // A value beyond the range of i64 becomes the nearest i64. For example, the identity of a minimum of i64 is 2^63 as
    // a double.
    constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
    const int64_t exact = value >= 0x1p63 ? kHigh : value <= -0x1p63 ? kLow : static_cast<int64_t>(value);
    if (exact == kLow) return "(-9223372036854775807LL - 1)";
    return cat("((", spell_type(dtype, 1), ")", exact, "LL)");
  }
  const bool wide = dtype == DType::f64;
  if (std::isnan(value)) return wide ? "__builtin_nan(\"\")" : "__builtin_nanf(\"\")";
  if (std::isinf(value)) return cat(value < 0 ? "-" : "", wide ? "__builtin_inf()" : "__builtin_inff()");
  if (wide) return absl::StrFormat("%a", value);
  return absl::StrFormat("%af", static_cast<double>(static_cast<float>(value)));
}

bool is_small_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 4;
}

bool is_narrow(DType dtype) {
  return dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i16 || dtype == DType::u16;
}

std::string spell_type(DType dtype, int lanes, int named) {
  return spell_memory(is_small_float(dtype) ? DType::f32 : is_narrow(dtype) ? DType::i32 : dtype, lanes, named);
}

std::string spell_memory(DType dtype, int lanes, int named) {
  if (is_small_float(dtype)) dtype = size_of(dtype) == 2 ? DType::u16 : DType::u8;
  if (lanes == 1) return std::string(name_of(dtype));
  if (named != 0 && lanes != named) return cat("wl_v<", name_of(dtype), ", ", lanes, ">");
  return dtype == DType::b1 ? "u8v" : cat(name_of(dtype), "v");
}

std::string spell_load(DType dtype, int lanes, std::string bits, int named) {
  const std::string type = spell_type(dtype, lanes, named);
  if (is_small_float(dtype)) return cat("wl_from_", name_of(dtype), "<", type, ">(", bits, ")");
  return is_narrow(dtype) ? cat("wl_cast<", type, ">(", bits, ")") : bits;
}

std::string spell_store(DType dtype, int lanes, std::string value, int named) {
  if (is_small_float(dtype)) return cat("wl_to_", name_of(dtype), "(", value, ")");
  if (is_narrow(dtype)) return cat("wl_narrow<", spell_memory(dtype, lanes, named), ">(", value, ")");
  return dtype == DType::b1 ? cat("wl_cast<", spell_type(dtype, lanes, named), ">(", value, ")") : value;
}

std::string spell_horizontal(Op combine) {
  constexpr std::string_view kReduce = "reduce_";
  for (const OpInfo& row : ops())
    if (row.cls == OpClass::kReduce && row.combine == combine) return cat("wl_h", row.name.substr(kReduce.size()));
  WL_CHECK(false, "no reduction combines by ", name_of(combine));
}

std::string fill_fields(std::string_view pattern, const std::function<std::string(std::string_view field)>& fill) {
  std::string out;
  for (size_t open = pattern.find('{'); open != std::string_view::npos; open = pattern.find('{')) {
    const size_t close = pattern.find('}', open);
    WL_CHECK(close != std::string_view::npos, "an open field in ", pattern);
    append(&out, pattern.substr(0, open), fill(pattern.substr(open + 1, close - open - 1)));
    pattern.remove_prefix(close + 1);
  }
  return cat(out, pattern);
}

std::string spell_op(const ExprNode& node, DType from, int lanes, std::span<const std::string> list, int named) {
  const std::string operands = absl::StrJoin(list, ", ");
  const std::string type = spell_type(node.dtype, lanes, named);
  const auto rounded = [&](const std::string& value) {
    return spell_load(node.dtype, lanes, spell_store(node.dtype, lanes, value, named), named);
  };
  if (node.op != Op::cast) {
    const std::string_view spelling = info(node.op).spelling;
    const std::string value = spelling.empty()
                                  ? cat("wl_", name_of(node.op), node.rounded ? "_rounded(" : "(", operands, ")")
                                  : fill_fields(spelling, [&](std::string_view field) {
                                      return field == "type" ? type : list[static_cast<size_t>(field[0] - '0')];
                                    });
    // Narrow integers wrap after every op. Small floats may keep the precision of f32 until a cast rounds them
    // (docs/numerics.md).
    return is_narrow(node.dtype) ? rounded(value) : value;
  }
  if (is_float(from) && !is_float(node.dtype) && node.dtype != DType::b1) {
    const double bits = 8.0 * size_of(node.dtype);
    const bool is_signed = name_of(node.dtype)[0] == 'i';
    const double high = is_signed ? std::exp2(bits - 1) - 1 : std::exp2(bits) - 1;
    return cat("wl_to_int<", type, ">(", operands, ", ",
               spell_constant(is_signed ? -std::exp2(bits - 1) : 0, node.dtype), ", ", spell_constant(high, node.dtype),
               ")");
  }
  const std::string value = cat("wl_cast<", type, ">(", operands, ")");
  if (!is_small_float(node.dtype) && !is_narrow(node.dtype)) return value;
  return rounded(value);
}

}  // namespace wl
