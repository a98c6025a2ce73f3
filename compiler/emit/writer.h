// A writer of indented text, and the spelling that all C-like targets have in common for numbers, affine indices and
// types.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "compiler/kernel/kernel.h"

namespace wl {

class Writer {
 public:
  void line(std::string_view text);  // writes a line at the current indentation
  void open(std::string_view text);  // writes a line "text {" and indents what follows
  void close();                      // writes the line "}" that ends what open() began
  // Notes are comments that are kept apart from the text: note() puts a note at the end of the last line, note_line()
  // on a line of its own. Characters that could continue the comment's line or end it become "_".
  void note(std::string_view text);
  void note_line(std::string_view text);
  std::string take() { return std::move(out_); }
  // Returns `text`, which take() returned, with its notes.
  std::string with_notes(std::string_view text) const;

 private:
  std::string out_;
  std::vector<std::pair<size_t, std::string>> notes_;  // the notes, each with the size of the text before it
  int depth_ = 0;
};

// Returns an affine index as a 64-bit expression such as "block*4096L + v3 + 8L".
std::string spell(const Affine& affine);
// Returns a name for use in a comment: every character but letters, digits, '.' and '-' becomes "_".
std::string comment_of(std::string name);
// Returns an expression for the minimum of several indices, such as "wl_lmin(a, b)".
std::string spell_min(const std::vector<Affine>& affines);
std::string spell_var(VarId var);
// Returns an expression for the XOR of `constant` and of moves[i] for each bit i that is set in an int variable, which
// has no other bits than those of `moves`. Terms without common bits are added instead, so that compilers can join
// constants with other offsets: "((v & 3)*4 + (v >> 2))", "(((v & 7) ^ (v >> 3)) + 8)". An expression of several terms
// is in parentheses. If `added` is not null, it is set to a constant that the caller must add to the expression.
std::string spell_bits(const std::string& variable, const std::vector<uint64_t>& moves, uint64_t constant,
                       int64_t* added = nullptr);
// Returns the exact literal of a value in a scalar dtype; for infinities and NaN, a call of a compiler's builtin.
std::string spell_constant(double value, DType dtype);
// Whether a dtype exists in memory only. In registers, floats narrower than f32 (small floats) are f32, and integers of
// 8 and 16 bits (narrow integers) are i32.
bool is_small_float(DType dtype);
bool is_narrow(DType dtype);
// These functions return the type of a value in registers and in memory: "f32" for one lane, else "f32v". `named` is
// the number of lanes that a vector type such as "f32v" has at this point of the text; vectors with other numbers of
// lanes are spelled "wl_v<f32, 2>". 0: all vectors have the same number of lanes.
std::string spell_type(DType dtype, int lanes, int named = 0);
std::string spell_memory(DType dtype, int lanes, int named = 0);
// spell_load() converts the representation in memory to the value in registers, and spell_store() does the inverse.
// Memory holds the bits of a small float, and 0 or 1 for a condition.
std::string spell_load(DType dtype, int lanes, std::string bits, int named = 0);
std::string spell_store(DType dtype, int lanes, std::string value, int named = 0);
// Returns the name of the prelude's function that combines the lanes of a vector, such as "wl_hsum" for add.
std::string spell_horizontal(Op combine);
// Returns the text of an op with the given texts as operands. `from` is the dtype of the first operand.
std::string spell_op(const ExprNode& node, DType from, int lanes, std::span<const std::string> operands, int named = 0);
// Returns the pattern with every "{field}" replaced by fill("field").
std::string fill_fields(std::string_view pattern, const std::function<std::string(std::string_view field)>& fill);

}  // namespace wl
