// A tiny indenting printer, and the spellings that every C-family target shares: numbers, affine indices, types.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "compiler/kernel/kernel.h"

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
// A name as a comment: nothing in it may end the line or go on to the next.
std::string comment_of(std::string name);
// The minimum of several, "(a < b ? a : b)".
std::string spell_min(const std::vector<Affine>& affines);
std::string spell_var(VarId var);
// `constant` XOR, for each bit i of an int variable that is set, moves[i]. The variable has no other bits. Parts
// without common bits are added up, so that compilers can join constants with other offsets: "((v & 3)*4 + (v >> 2))",
// "(((v & 7) ^ (v >> 3)) + 8)". One that is not a single term is in parentheses. `added`, if not null, gets the
// constant that is added to what is returned.
std::string spell_bits(const std::string& variable, const std::vector<uint64_t>& moves, uint64_t constant,
                       int64_t* added = nullptr);
// A literal of a scalar dtype, exact; infinities and NaN by builtins.
std::string spell_constant(double value, DType dtype);
// Dtypes that live in memory only: floats narrower than f32 are f32 in registers, 8- and 16-bit integers i32.
bool is_small_float(DType dtype);
bool is_narrow(DType dtype);
// The type of a value in registers: "f32" or, with lanes, "f32v"; and in memory. `named`: how many lanes the vectors
// have that the text calls so, where there are others too, which are spelled "wl_v<f32, 2>"; 0: all have as many.
std::string spell_type(DType dtype, int lanes, int named = 0);
std::string spell_memory(DType dtype, int lanes, int named = 0);
// A value from what memory holds, and back: bits of a small float, 0 or 1 of a condition.
std::string spell_load(DType dtype, int lanes, std::string bits, int named = 0);
std::string spell_store(DType dtype, int lanes, std::string value, int named = 0);
// The prelude's function that combines the lanes of a vector: "wl_hsum" for add.
std::string spell_horizontal(Op combine);
// An op applied to spelled operands; `from`: dtype of the first.
std::string spell_op(const ExprNode& node, DType from, int lanes, std::span<const std::string> operands, int named = 0);
// The pattern with every "{field}" replaced by what `fill` gives for it.
std::string fill_fields(std::string_view pattern, const std::function<std::string(std::string_view field)>& fill);

}  // namespace wl
