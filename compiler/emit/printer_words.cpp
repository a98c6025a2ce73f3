// Prints instructions on words (u32 values that hold several narrow elements).
#include <algorithm>
#include <bit>

#include "absl/strings/str_join.h"
#include "compiler/base/log2.h"
#include "compiler/emit/printer.h"
#include "compiler/kernel/buffer_checks.h"
#include "compiler/kernel/tile_places.h"

namespace wl {
namespace {

constexpr int64_t kMostBlocks = 4;  // the most blocks (eight rows of 16 bytes) that one instruction loads

// Calls f(axis, repeat) for each bit of a register's number (r bit) in a layout with two axes. `axis` is the axis that
// the bit belongs to, and `repeat` the number of repeats along this axis for which the bit counts.
template <typename F>
void for_each_register_bit(const Layout& layout, F f) {
  int64_t repeats[2] = {1, 1};
  for (const Layout::Base& base : layout.bases) {
    if (base.kind != 'r') continue;
    const int axis = base.vector >> layout.bits[0] == 0 ? 0 : 1;
    f(axis, repeats[axis]);
    repeats[axis] *= 2;
  }
}
// These functions convert between the number of a register, which consists of its r bits, and its repeat on both axes.
std::vector<int64_t> repeats_of_register(const Layout& layout, int64_t number) {
  std::vector<int64_t> out = {0, 0};
  for_each_register_bit(layout, [&](int axis, int64_t repeat) {
    if (number % 2 != 0) out[axis] += repeat;
    number /= 2;
  });
  return out;
}
int64_t register_of(const Layout& layout, const std::vector<int64_t>& repeats) {
  int64_t number = 0, bit = 1;
  for_each_register_bit(layout, [&](int axis, int64_t repeat) {
    if (repeats[axis] / repeat % 2 != 0) number += bit;
    bit *= 2;
  });
  return number;
}

}  // namespace

void Printer::print_words(const Instr& instr, const Place& place) {
  const Tile& tile = tile_of(instr.result);
  const int lanes = tile.layout.lanes();
  const std::string at = address(instr.slice, place), type = spell_memory(tile.dtype, lanes);
  const auto set = [&](const std::string& words) { define(instr.result, result_name(instr, place), words); };
  if (kernel_.wave > 0) {
    if (lanes != 1 || !place.left.empty()) return fail("a thread loads words one by one, and all of a tile");
    const std::vector<int64_t>& strides = instr.slice.strides;
    if (holds_shared_blocks(kernel_, instr) && kernel_.buffers[instr.slice.buffer].swizzle == Swizzle() &&
        strides[1] == elements_of_word(instr.elements[0]) &&
        begins_rows(instr.slice.offset, strides[0], instr.elements[0]))
      return print_blocks(instr, place, "wl_blocks", strides[0]);
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
  print_blocks(instr, place, "wl_blocks_across", instr.gap);
}

// One instruction loads up to four registers, each from one block (eight rows of 16 bytes). The registers are in the
// order of the layout's r bits, since matrix instructions take them in this order; in any other order, each register
// would have to be copied first. The instruction is printed where its first register is defined; nothing is printed for
// its other registers.
void Printer::print_blocks(const Instr& instr, const Place& place, const char* function, int64_t gap) {
  const Layout& layout = tile_of(instr.result).layout;
  const int64_t number = register_of(layout, place.repeat);
  // Returns the distance in memory, in elements, from register number `from` to register number `from` + n.
  const auto behind = [&](int64_t from, int64_t n) {
    int64_t out = 0;
    for (int axis = 0; axis < 2; ++axis)
      out += instr.slice.strides[axis] * (layout.first_of(axis, repeats_of_register(layout, from + n)) -
                                          layout.first_of(axis, repeats_of_register(layout, from)));
    return out;
  };
  bool simple = kernel_.buffers[instr.slice.buffer].swizzle == Swizzle();
  for (const Layout::Base& base : layout.bases) simple = simple && std::popcount(base.vector) <= 1;
  for (const Layout::Outer& outer : layout.outer) simple = simple && outer.count == 1;
  const int64_t count = simple ? std::min(kMostBlocks, layout.count('r')) : 1;
  if (number % count != 0) return;
  const std::string blocks = cat("blocks", temporary_++);
  out_.line(cat("const auto ", blocks, " = ", function, "<", spell_memory(instr.elements[0], 1), ", ", count, ", ", gap,
                ", ", count > 1 ? behind(number, 1) : 0, ", ", count > 2 ? behind(number, 2) : 0, ">(",
                address(instr.slice, place), ");"));
  for (int64_t n = 0; n < count; ++n)
    define(instr.result, element_name(instr.result, simple ? repeats_of_register(layout, number + n) : place.repeat),
           cat(blocks, ".e[", n, "]"));
}

void Printer::print_join(const Instr& instr, const Place& place) {
  const int lanes = lanes_of(instr.result);
  std::vector<std::string> elements;
  for (TileId arg : instr.args) elements.push_back(value_of(arg, place, lanes));
  define(instr.result, result_name(instr, place),
         cat("wl_join_", name_of(instr.elements[0]), "<", spell_type(DType::u32, lanes), ">(",
             absl::StrJoin(elements, ", "), ")"));
}

void Printer::print_pack(const Instr& instr, const Place&) {
  const TileId from = instr.args[0];
  const TilePlaces held(tile_of(from).layout, kernel_.team, kernel_.wave),
      words(tile_of(instr.result).layout, kernel_.team, kernel_.wave);
  const int size = elements_of_word(instr.elements[0]);
  const std::vector<int64_t> at = packed_positions(held, words, instr.axis, instr.slice.offset.base, size);
  for (int64_t number = 0; number < words.registers(); ++number) {
    std::vector<std::string> elements;
    for (int i = 0; i < size; ++i) {
      // The position, the same in each thread, at which the thread holds element i of the word.
      const int64_t place = at[static_cast<size_t>(number * size + i)];
      const std::string name = cat("t", from, "_", held.register_of(place));
      elements.push_back(held.vector() == 1 ? name : cat("wl_part(", name, ", ", place % held.vector(), ")"));
    }
    define(instr.result, cat("t", instr.result, "_", number),
           cat("wl_word_of_", name_of(instr.elements[0]), "(", absl::StrJoin(elements, ", "), ")"));
  }
}

void Printer::print_view(const Instr& instr, const Place&) {
  for (int64_t i = 0; i < repeats_of(tile_of(instr.result)); ++i)
    define(instr.result, cat("t", instr.result, "_", i), cat("t", instr.args[0], "_", i));
}

void Printer::print_part(const Instr& instr, const Place& place) {
  const int lanes = lanes_of(instr.result);
  define(instr.result, result_name(instr, place),
         cat("wl_part_", name_of(instr.elements[0]), "<", spell_type(DType::f32, lanes), ", ", instr.part, ">(",
             value_of(instr.args[0], place, lanes), ")"));
}

void Printer::print_dot(const Instr& instr, const Place& place) {
  const int lanes = lanes_of(instr.result);
  const std::string sum = element_name(
      instr.result, place.repeat.empty() ? std::vector<int64_t>(tile_of(instr.result).layout.rank(), 0) : place.repeat);
  define(instr.result, sum,
         cat("wl_dot_", name_of(instr.elements[0]), "_", name_of(instr.elements[1]), "(", sum, ", ",
             value_of(instr.args[0], place, lanes), ", ", value_of(instr.args[1], place, lanes), ")"));
}

// Appends to `to` those registers of a tile that form the fragment at (row, column), in the order of the fragment's r
// bits (bits of a register's number).
void Printer::add_fragment(TileId tile, const Layout& fragment, int64_t row, int64_t column,
                           std::vector<std::string>& to) const {
  for (int64_t number = 0; number < fragment.count('r'); ++number) {
    std::vector<int64_t> repeat = repeats_of_register(fragment, number);
    repeat[0] += row * fragment.repeats(0);
    repeat[1] += column * fragment.repeats(1);
    to.push_back(element_name(tile, repeat));
  }
}

// Prints a call for every fragment of the sums and every step along k. Its arguments are the registers of the sums and
// of both factors, each in the order of the fragment's r bits (bits of a register's number).
void Printer::print_mma(const Instr& instr, const Place&) {
  if (multiplies_in_memory(instr.matrix)) return print_shared_factor_mma(instr);
  const Fragments& fragments = fragments_of(instr.matrix);
  std::vector<std::string> registers;
  const auto add = [&](TileId tile, const Layout& fragment, int64_t row, int64_t column) {
    add_fragment(tile, fragment, row, column, registers);
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

// Prints the definition of a variable: the address in shared memory at which a factor begins for the thread's group of
// waves. The groups of a block divide the rows or columns of the factor among them.
void Printer::print_shared_factor(const Instr& instr) {
  const Layout& layout = tile_of(instr.result).layout;
  const std::vector<Layout::Base> bits = by_bit_of_place(layout);
  // The waves of one group differ only in the lowest wave bits, and their factor begins at the same address.
  const int own =
      log2_floor(kernel_.wave) + log2_floor(fragments_of(shared_factors_.at(instr.result).matrix).c.count('u'));
  std::vector<uint64_t> moves(bits.size(), 0);
  for (size_t i = static_cast<size_t>(own); i < bits.size(); ++i) moves[i] = layout.part(bits[i], 0);
  const std::string name =
      define_new(cat("p", instr.slice.buffer, " + ", spell(instr.slice.offset), " + ", spell_bits("place", moves, 0),
                     "*", shared_factor_place(shared_factors_.at(instr.result).dtype, true, 1, 0), "L"));
  shared_factor_places_[instr.result] = {name, instr.op == InstrOp::kWords};
}

// Prints a product of factors in shared memory: one call for every 64 rows, every group of as many columns as the
// instruction takes, and every step along k.
void Printer::print_shared_factor_mma(const Instr& instr) {
  const Fragments& fragments = fragments_of(instr.matrix);
  const MatrixInfo& row = info(instr.matrix);
  const Layout& sums = tile_of(instr.result).layout;
  const int64_t rows = sums.repeats(0) / fragments.c.repeats(0), columns = sums.repeats(1) / fragments.c.repeats(1);
  const int64_t each = std::min(columns, kSharedFactorColumns / row.n);
  const bool left_in_registers = holds_left(instr.matrix);
  const auto place = [&](int side, int64_t at, int64_t k) {
    const SharedFactorPlace& begin = shared_factor_places_.at(instr.args[side]);
    return cat(begin.name, " + ", shared_factor_place(shared_factors_.at(instr.args[side]).dtype, begin.along_k, at, k),
               "L");
  };
  const auto across_k = [&](int side) { return shared_factor_places_.at(instr.args[side]).along_k ? "0" : "1"; };
  const std::string orders = left_in_registers ? across_k(1) : cat(across_k(0), ", ", across_k(1));
  out_.line("wl_mma_begin();");
  for (int64_t k = 0; k < elements_of_word(row.left) * tile_of(instr.args[0]).layout.shape[1]; k += row.k)
    for (int64_t down = 0; down < rows; ++down)
      for (int64_t across = 0; across < columns; across += each) {
        std::vector<std::string> arguments;
        if (left_in_registers)
          add_fragment(instr.args[0], fragments.a, down, k / row.k, arguments);
        else
          arguments.push_back(place(0, down * row.m, k));
        arguments.push_back(place(1, across * row.n, k));
        for (int64_t column = across; column < across + each; ++column)
          for (int64_t half = 0; half < fragments.c.repeats(0); ++half)
            arguments.push_back(element_name(instr.result, {down * fragments.c.repeats(0) + half, column}));
        out_.line(cat("wl_mma_", row.name, "<", orders, ">(", absl::StrJoin(arguments, ", "), ");"));
      }
  out_.line("wl_mma_commit();");
}

// In kernels whose matrix instructions read shared memory, the barrier includes a fence. Without it these instructions
// might not see what threads have stored.
void Printer::print_barrier(const Instr&, const Place&) {
  out_.line(barrier());
}

}  // namespace wl
