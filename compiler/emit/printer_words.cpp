// Instructions of words.
#include "absl/strings/str_join.h"
#include "compiler/emit/printer.h"

namespace wl {

void Printer::print_words(const Instr& instr, const Place& place) {
  const Tile& tile = tile_of(instr.result);
  const int lanes = tile.layout.lanes();
  const std::string at = address(instr.slice, place), type = spell_memory(tile.dtype, lanes);
  const auto set = [&](const std::string& words) { define(instr.result, result_name(instr, place), words); };
  if (kernel_.wave > 0) {
    if (lanes != 1 || !place.left.empty()) return fail("a thread loads words one by one, and all of a tile");
    return set(cat("wl_word<", spell_memory(instr.elements[0], 1), ">(", at, ")"));
  }
  const int64_t stride = lanes == 1 ? 0 : instr.slice.strides[tile.layout.vector_axis()];
  if (lanes == 1) return set(cat("wl_words<u32>(", at, ")"));
  if (stride == 0) return set(cat("wl_splat<", type, ">(wl_words<u32>(", at, "))"));
  if (stride != elements_of_word(instr.elements[0]))
    return set(
        cat("wl_words_at<", type, ">(", at, ", ", stride, "L, ", place.left.empty() ? cat(lanes) : place.left, ")"));
  if (place.left.empty()) return set(cat("wl_words<", type, ">(", at, ")"));
  set(cat("wl_words_n<", type, ">(", at, ", ", place.left, ")"));
}

void Printer::print_words_across(const Instr& instr, const Place& place) {
  define(instr.result, result_name(instr, place),
         cat("wl_word_across<", spell_memory(instr.elements[0], 1), ", ", instr.gap, ">(", address(instr.slice, place),
             ")"));
}

void Printer::print_join(const Instr& instr, const Place& place) {
  const int lanes = lanes_of(instr.result);
  std::vector<std::string> elements;
  for (TileId arg : instr.args) elements.push_back(value_of(arg, place, lanes));
  define(instr.result, result_name(instr, place),
         cat("wl_join_", name_of(instr.elements[0]), "<", spell_type(DType::u32, lanes), ">(",
             absl::StrJoin(elements, ", "), ")"));
}

void Printer::print_dot(const Instr& instr, const Place& place) {
  const int lanes = lanes_of(instr.result);
  const std::string sum = element_name(
      instr.result, place.repeat.empty() ? std::vector<int64_t>(tile_of(instr.result).layout.rank(), 0) : place.repeat);
  define(instr.result, sum,
         cat("wl_dot_", name_of(instr.elements[0]), "_", name_of(instr.elements[1]), "(", sum, ", ",
             value_of(instr.args[0], place, lanes), ", ", value_of(instr.args[1], place, lanes), ")"));
}

// A call for every fragment of the sums and every step along k: the registers of the sums, then those of both factors,
// each in the order of the fragment's r bits.
void Printer::print_mma(const Instr& instr, const Place&) {
  const Fragments& fragments = fragments_of(instr.matrix);
  std::vector<std::string> registers;
  const auto add = [&](TileId tile, const Layout& fragment, int64_t row, int64_t column) {
    for (int64_t number = 0; number < fragment.count('r'); ++number) {
      std::vector<int64_t> repeat = {row * fragment.repeats(0), column * fragment.repeats(1)};
      int64_t rest = number, bits[2] = {1, 1};
      for (const Layout::Base& base : fragment.bases) {
        if (base.kind != 'r') continue;
        const int axis = base.vector >> fragment.bits[0] == 0 ? 0 : 1;
        if (rest % 2 != 0) repeat[axis] += bits[axis];
        bits[axis] *= 2;
        rest /= 2;
      }
      registers.push_back(element_name(tile, repeat));
    }
  };
  const Layout &sums = tile_of(instr.result).layout, &a = tile_of(instr.args[0]).layout;
  const int64_t rows = sums.repeats(0) / fragments.c.repeats(0), columns = sums.repeats(1) / fragments.c.repeats(1);
  for (int64_t k = 0; k < a.repeats(1) / fragments.a.repeats(1); ++k)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        registers.clear();
        add(instr.result, fragments.c, row, column);
        add(instr.args[0], fragments.a, row, k);
        add(instr.args[1], fragments.b, column, k);
        out_.line(cat("wl_mma_", info(instr.matrix).name, "(", absl::StrJoin(registers, ", "), ");"));
      }
}

}  // namespace wl
