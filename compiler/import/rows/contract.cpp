// Matrix products of all kinds become contract nodes, which are einsums of two operands. Every batch axis becomes a
// letter of the einsum. An operand does not have the letter of an axis that it lacks, or along which it has extent 1
// and the other operand a larger extent; so no operand needs to be broadcast.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_split.h"
#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

constexpr std::string_view kBatchLetters = "abcdefghijlopqrstuvwxyz";  // letters of batch axes: all but k, m and n

struct Term {
  T tensor;
  std::string letters;
};

// Removes every axis, with its letter, along which `term` has extent 1 and another operand a larger extent.
void drop_stretched(Term& term, const std::map<char, int64_t>& extents) {
  std::string letters;
  Shape shape;
  for (size_t i = 0; i < term.letters.size(); ++i) {
    const int64_t extent = term.tensor.extent(static_cast<int64_t>(i));
    if (extent == 1 && extents.at(term.letters[i]) != 1) continue;
    letters += term.letters[i];
    shape.push_back(extent);
  }
  term.letters = letters;
  term.tensor = reshape(term.tensor, std::move(shape));
}

std::map<char, int64_t> extents_of(Call& c, const std::vector<Term>& terms) {
  std::map<char, int64_t> extents;
  for (const Term& term : terms) {
    for (size_t i = 0; i < term.letters.size(); ++i) {
      const int64_t extent = term.tensor.extent(static_cast<int64_t>(i));
      const auto [it, fresh] = extents.emplace(term.letters[i], extent);
      if (fresh || it->second == extent) continue;
      if (it->second != 1 && extent != 1) {
        c.fail("the axis '", std::string(1, term.letters[i]), "' has extents ", it->second, " and ", extent);
      }
      it->second = std::max(it->second == 0 || extent == 0 ? 0 : it->second, extent);
    }
  }
  return extents;
}

// Sums one operand over its letters that the result does not have, then permutes its axes to the order of the result.
T rearrange(Call& c, const Term& term, const std::string& out) {
  std::vector<int64_t> gone;
  std::string left;
  for (size_t i = 0; i < term.letters.size(); ++i) {
    if (out.find(term.letters[i]) == std::string::npos) {
      gone.push_back(static_cast<int64_t>(i));
    } else {
      left += term.letters[i];
    }
  }
  const T sum = reduce(Op::reduce_sum, term.tensor, gone, false);
  std::vector<int64_t> perm;
  for (const char letter : out) {
    const size_t at = left.find(letter);
    if (at == std::string::npos) c.fail("the result's letter '", std::string(1, letter), "' is in no operand");
    perm.push_back(static_cast<int64_t>(at));
  }
  return transpose(sum, std::move(perm));
}

void need_distinct(Call& c, const std::string& letters) {
  for (size_t i = 0; i < letters.size(); ++i) {
    if (letters.find(letters[i], i + 1) != std::string::npos) c.fail("the result '", letters, "' has a letter twice");
  }
}

// Replaces two axes of extent n that have the same letter by one axis, their diagonal: every (n + 1)st element of the
// two axes flattened to one.
void take_diagonals(Call& c, Term& term) {
  for (size_t i = 0; i < term.letters.size(); ++i) {
    const size_t other = term.letters.find(term.letters[i], i + 1);
    if (other == std::string::npos) continue;
    const int64_t n = term.tensor.extent(static_cast<int64_t>(i));
    if (term.tensor.extent(static_cast<int64_t>(other)) != n || n < 1) {
      c.fail("the axes '", std::string(1, term.letters[i]), "' of shape ", shape_text(term.tensor.shape()), " differ");
    }
    std::vector<int64_t> perm = axes_from(0, term.tensor.rank());
    perm.erase(perm.begin() + static_cast<int64_t>(other));
    perm.erase(perm.begin() + static_cast<int64_t>(i));
    Shape rest;
    for (const int64_t axis : perm) rest.push_back(term.tensor.extent(axis));
    perm.push_back(static_cast<int64_t>(i));
    perm.push_back(static_cast<int64_t>(other));
    rest.push_back(n * n);
    const T flat = reshape(transpose(term.tensor, perm), rest);
    const char letter = term.letters[i];
    term.tensor = slice_axis(flat, flat.rank() - 1, 0, n + 1, n);
    term.letters.erase(other, 1);
    term.letters.erase(i, 1);
    term.letters += letter;
    i = static_cast<size_t>(-1);  // the loop starts again, since a third axis may have this letter
  }
}

// Replaces "..." in a term by capital letters, one for each of the `axes` axes that the ellipsis stands for. The last
// axis is always Z and the one before it Y, so that the ellipses of all terms align at their last axes. Equations have
// lower-case letters in practice, so these letters are free.
std::string expand_ellipsis(Call& c, std::string term, size_t axes) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  if (axes > 20) c.fail("an ellipsis of ", axes, " axes is out of range");
  std::string letters;
  for (size_t i = axes; i > 0; --i) letters += static_cast<char>('Z' - static_cast<char>(i - 1));
  return term.replace(at, 3, letters);
}

bool is_letters(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char l) { return (l >= 'a' && l <= 'z') || (l >= 'A' && l <= 'Z'); });
}

std::string default_result(const std::vector<Term>& terms, size_t widest) {
  std::map<char, int> count;
  for (const Term& term : terms) {
    for (const char letter : term.letters) ++count[letter];
  }
  std::string result;
  const char first_dot = static_cast<char>('Z' - static_cast<char>(widest) + 1);
  for (char letter = first_dot; widest > 0 && letter <= 'Z'; ++letter) result += letter;
  for (const auto& [letter, n] : count) {
    if (n == 1 && result.find(letter) == std::string::npos) result += letter;
  }
  return result;
}

T swap_last(T x) {
  if (x.rank() < 2) return x;
  auto perm = axes_from(0, x.rank());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(x, std::move(perm));
}

}  // namespace

T matmul(T a, T b) {
  Call& c = a.call();
  if (a.rank() < 1 || b.rank() < 1) c.fail("a matrix product needs operands of rank 1 or more");
  const auto name = [&](T t, std::string_view core, bool vector) {
    const size_t batch = static_cast<size_t>(t.rank()) - core.size();
    if (batch > kBatchLetters.size()) c.fail("a tensor of rank ", t.rank(), " has too many axes");
    std::string letters;
    for (size_t i = batch; !vector && i > 0; --i) letters += kBatchLetters[i - 1];
    return Term{t, letters + std::string(core)};
  };
  std::vector<Term> terms = {name(a, a.rank() == 1 ? "k" : "mk", a.rank() == 1),
                             name(b, b.rank() == 1 ? "k" : "kn", b.rank() == 1)};
  const int64_t ka = a.extent(a.rank() - 1), kb = b.extent(std::max<int64_t>(b.rank() - 2, 0));
  if (ka != kb) {
    c.fail("a matrix product of ", shape_text(a.shape()), " and ", shape_text(b.shape()), ": inner extents ", ka,
           " and ", kb, " differ");
  }
  const auto extents = extents_of(c, terms);
  const size_t batch = static_cast<size_t>(std::max<int64_t>({a.rank() - 2, b.rank() - 2, 0}));
  std::string out;
  Shape shape;
  for (size_t i = batch; i > 0; --i) out += kBatchLetters[i - 1];
  if (a.rank() > 1) out += 'm';
  if (b.rank() > 1) out += 'n';
  for (const char letter : out) shape.push_back(extents.at(letter));
  c.check_shape(shape);
  for (Term& term : terms) drop_stretched(term, extents);
  return contract(terms[0].tensor, terms[1].tensor, terms[0].letters + "," + terms[1].letters + "->" + out);
}

T mat_mul(Call& c) {
  return matmul(c.in(0), c.in(1));
}

T fused_mat_mul(Call& c) {
  if (c.attr("transBatchA", 0) != 0 || c.attr("transBatchB", 0) != 0) {
    c.missing("attributes transBatchA and transBatchB are not supported");
  }
  const T a = c.attr("transA", 0) != 0 ? swap_last(c.in(0)) : c.in(0);
  const T b = c.attr("transB", 0) != 0 ? swap_last(c.in(1)) : c.in(1);
  const double alpha = c.attr_number("alpha", 1);
  const T product = matmul(a, b);
  return alpha == 1 ? product : product * alpha;
}

T gemm(Call& c) {
  const T a = c.in(0), b = c.in(1);
  if (a.rank() != 2 || b.rank() != 2) {
    c.fail("matrices were expected, found shapes ", shape_text(a.shape()), " and ", shape_text(b.shape()));
  }
  const bool trans_a = c.attr("transA", 0) != 0, trans_b = c.attr("transB", 0) != 0;
  if (a.extent(trans_a ? 0 : 1) != b.extent(trans_b ? 1 : 0)) {
    c.fail("inner extents ", a.extent(trans_a ? 0 : 1), " and ", b.extent(trans_b ? 1 : 0), " differ");
  }
  const double alpha = c.attr_number("alpha", 1), beta = c.attr_number("beta", 1);
  T y = contract(a, b, cat(trans_a ? "km" : "mk", ",", trans_b ? "nk" : "kn", "->mn"));
  const bool has_bias = c.has(2) && beta != 0;
  // If alpha or beta is not a whole number, an integer product and bias are scaled as doubles, and their sum is cast
  // back to the integer dtype.
  const DType dtype = y.dtype();
  const bool in_parts = !is_float(dtype) && (alpha != std::trunc(alpha) || (has_bias && beta != std::trunc(beta)));
  const auto scaled = [&](T x, double by) {
    if (in_parts) x = cast(x, DType::f64);
    if (by < 0 && !is_float(x.dtype())) return 0.0 - x * -by;  // since integers wrap, this is x * by, even if unsigned
    return by == 1 ? x : x * by;
  };
  y = scaled(y, alpha);
  if (has_bias) y = y + broadcast_to(scaled(c.in(2), beta), y.shape());
  return in_parts ? cast(y, dtype) : y;
}

T einsum(Call& c) {
  std::string equation = c.attr_text("equation", "");
  std::erase(equation, ' ');
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  std::vector<std::string> names = absl::StrSplit(sides[0], ',');
  if (sides.size() > 2 || static_cast<int>(names.size()) != c.inputs()) {
    c.fail("equation '", equation, "' has ", names.size(), " operands, the node ", c.inputs());
  }
  std::vector<Term> terms;
  size_t widest = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const T tensor = c.in(static_cast<int>(i));
    const auto rank = static_cast<size_t>(tensor.rank());
    const size_t dots = names[i].find("...") == std::string::npos ? 0 : 3;
    const size_t named = names[i].size() - dots;
    if (named > rank || (dots == 0 && named != rank)) {
      c.fail("term '", names[i], "' of the equation does not fit operand ", i, " of shape ",
             shape_text(tensor.shape()));
    }
    widest = std::max(widest, rank - named);
    const std::string letters = expand_ellipsis(c, names[i], rank - named);
    if (!is_letters(letters)) c.fail("equation '", equation, "' may only have letters");
    terms.push_back({tensor, letters});
    take_diagonals(c, terms.back());
  }
  const std::string out = sides.size() == 2 ? expand_ellipsis(c, sides[1], widest) : default_result(terms, widest);
  if (!is_letters(out)) c.fail("equation '", equation, "' may only have letters");
  need_distinct(c, out);
  const auto extents = extents_of(c, terms);
  Shape shape;
  for (const char letter : out) {
    if (!extents.contains(letter)) c.fail("the result's letter '", std::string(1, letter), "' is in no operand");
    shape.push_back(extents.at(letter));
  }
  c.check_shape(shape);
  for (Term& term : terms) drop_stretched(term, extents);
  // Operands are contracted from the left, two at a time. The result of each step keeps the letters that later steps
  // need.
  Term sum = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string later = out;
    for (size_t j = i + 1; j < terms.size(); ++j) later += terms[j].letters;
    std::string kept;
    Shape kept_shape;
    for (const char letter : i + 1 == terms.size() ? out : sum.letters + terms[i].letters) {
      const bool here = (sum.letters + terms[i].letters).find(letter) != std::string::npos;
      if (!here || later.find(letter) == std::string::npos || kept.find(letter) != std::string::npos) continue;
      kept += letter;
      kept_shape.push_back(extents.at(letter));
    }
    c.check_shape(kept_shape);
    sum = {contract(sum.tensor, terms[i].tensor, sum.letters + "," + terms[i].letters + "->" + kept), kept};
  }
  return cast(rearrange(c, sum, out), c.in(0).dtype());  // contract returns i32 for operands of eight bits
}

}  // namespace wl::onnx_import
