// Instructions of words.
#include "absl/strings/str_join.h"
#include "compiler/emit/printer.h"

namespace wl {

void Printer::print_words(const Instr& instr, const Place& place) {
  const Tile& tile = tile_of(instr.result);
  const int lanes = tile.layout.lanes();
  const std::string at = address(instr.slice, place), type = spell_memory(tile.dtype, lanes);
  const auto set = [&](const std::string& words) { define(instr.result, result_name(instr, place), words); };
  const int64_t stride = lanes == 1 ? 0 : instr.slice.strides[tile.layout.vector_axis()];
  if (lanes == 1) return set(cat("wl_words<u32>(", at, ")"));
  if (stride == 0) return set(cat("wl_splat<", type, ">(wl_words<u32>(", at, "))"));
  if (stride != elements_of_word(instr.elements[0]))
    return set(
        cat("wl_words_at<", type, ">(", at, ", ", stride, "L, ", place.left.empty() ? cat(lanes) : place.left, ")"));
  if (place.left.empty()) return set(cat("wl_words<", type, ">(", at, ")"));
  set(cat("wl_words_n<", type, ">(", at, ", ", place.left, ")"));
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

}  // namespace wl
