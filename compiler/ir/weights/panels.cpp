#include "compiler/ir/weights/panels.h"

#include <algorithm>

namespace wl {
namespace {

constexpr int64_t kLeastColumns = 8;  // the fewest columns for which panels are made: so many fill a vector

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

// Returns the number of columns in a panel: the first entry of `widths` that divides `columns`, or all columns if none
// does; 0 if there are too few columns for panels.
int64_t panel_columns(int64_t columns, const std::vector<int64_t>& widths) {
  if (columns < kLeastColumns) return 0;
  for (const int64_t width : widths)
    if (columns % width == 0) return width;
  return columns;
}

char unused_letter(const Einsum& einsum, char after = 'a' - 1) {
  for (char letter = static_cast<char>(after + 1); letter <= 'z'; ++letter)
    if (!has(einsum.a, letter) && !has(einsum.b, letter)) return letter;
  return 0;
}

// Returns the last of the result's letters that only the weight has, and not the other operand (the columns of a
// product, the filters of a convolution); 0 if there is none.
char column_of(const Einsum& einsum, const std::string& weight, const std::string& other) {
  for (size_t i = einsum.out.size(); i-- > 0;)
    if (has(weight, einsum.out[i]) && !has(other, einsum.out[i])) return einsum.out[i];
  return 0;
}

// Splits an axis of a shape into words (panels.h) of `word` elements. `letter` stands for the axis in `letters`. A
// new axis after it, with the letter `element`, numbers the elements in a word.
void split_words(std::string& letters, Shape& shape, char letter, char element, int word) {
  const size_t axis = letters.find(letter);
  letters.insert(axis + 1, 1, element);
  shape[axis] /= word;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, word);
}

// Returns the letters of the weight except `column`: those that are not summed, then a '.' where the letter that
// numbers the panels goes, then those that are summed, in the order of the other operand. Returns nullopt if the weight
// cannot be put into panels.
std::optional<std::string> rows_of(const Einsum& einsum, const std::string& weight, const std::string& other,
                                   char column) {
  std::string outer, summed;
  for (const char letter : weight) {
    if (std::count(weight.begin(), weight.end(), letter) > 1) return std::nullopt;
    if (letter == column || !has(einsum.out, letter)) continue;
    if (has(other, letter)) return std::nullopt;  // a batch letter: each product of the batch has its own weights
    outer += letter;
  }
  for (const char letter : other)
    if (!has(einsum.out, letter) && has(weight, letter)) summed += letter;
  if (summed.empty() || outer.size() + summed.size() + 1 != weight.size()) return std::nullopt;
  return outer + "." + summed;
}

// Whether the product has only one row of results. Loading the weight takes almost all the time of such a product, and
// it is computed like a reduction, which does not use words (panels.h).
bool has_one_row(const Einsum& einsum, const std::string& other, const Shape& shape) {
  for (size_t axis = 0; axis < other.size(); ++axis)
    if (has(einsum.out, other[axis]) && shape[axis] > 1) return false;
  return true;
}

}  // namespace

std::optional<WeightPanels> panels_of(const Graph& graph, const Node& product, int side,
                                      const std::vector<int64_t>& widths) {
  const absl::StatusOr<Einsum> einsum = parse_einsum(product.text);
  if (product.op != Op::contract || !einsum.ok() || einsum->out.empty()) return std::nullopt;
  const std::string &weight = side == 0 ? einsum->a : einsum->b, &other = side == 0 ? einsum->b : einsum->a;
  const char column = column_of(*einsum, weight, other), panel = unused_letter(*einsum);
  const Shape& shape = graph.nodes[product.operands[side]].shape;
  if (panel == 0 || column == 0) return std::nullopt;
  const std::optional<std::string> rows = rows_of(*einsum, weight, other, column);
  const size_t axis = weight.find(column);
  const int64_t width = panel_columns(shape[axis], widths);
  if (!rows || width == 0) return std::nullopt;

  const size_t first = rows->find('.') + 1;
  // `deepest` is the summed letter along which a word holds neighbouring elements. In a convolution it stands for the
  // channels, which are the first summed letter; the letters after it are those of the windows.
  const char deepest = einsum->out.back() == column ? rows->back() : (*rows)[first];
  std::string split = weight, reads = *rows + column, out = einsum->out;
  std::string reads_other = other;
  WeightPanels result{
      .split = shape, .order = {}, .einsum = {}, .other = graph.nodes[product.operands[1 - side]].shape};
  if (width == shape[axis]) {
    reads.erase(reads.find('.'), 1);
  } else {
    split.insert(axis, 1, panel);
    out.insert(out.find(column), 1, panel);
    reads[reads.find('.')] = panel;
    result.split[axis] = width;
    result.split.insert(result.split.begin() + static_cast<std::ptrdiff_t>(axis), shape[axis] / width);
  }
  const auto dtype = [&](int operand) { return graph.nodes[product.operands[operand]].dtype; };
  const bool words = sum_of_dot(dtype(0), dtype(1)) && !has_one_row(*einsum, other, result.other);
  const int word = words ? elements_of_word(dtype(0)) : 1;
  const char element = unused_letter(*einsum, panel);
  if (word > 1 && element != 0 && shape[weight.find(deepest)] % word == 0 && has(other, deepest)) {
    split_words(split, result.split, deepest, element, word);
    split_words(reads_other, result.other, deepest, element, word);
    reads += element;
  }
  for (const char letter : reads) result.order.push_back(static_cast<int64_t>(split.find(letter)));
  if (std::is_sorted(result.order.begin(), result.order.end())) return std::nullopt;
  result.einsum = side == 0 ? cat(reads, ",", reads_other, "->", out) : cat(reads_other, ",", reads, "->", out);
  return result;
}

}  // namespace wl
