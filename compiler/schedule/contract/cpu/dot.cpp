// Contractions on CPUs that multiply words of narrow elements (dot.h): how words are chosen, packed, and unpacked in
// registers.
#include <algorithm>

#include "compiler/schedule/contract/cpu/lowering.h"

namespace wl {

std::optional<Dot> dot_of(const Graph& group, const Domain& domain, const Machine& machine, bool widen,
                          const std::optional<Image>& copied) {
  const Node& product = group.nodes[domain.contract];
  const DType a = group.nodes[product.operands[0]].dtype, b = group.nodes[product.operands[1]].dtype;
  if (!sum_of_dot(a, b)) return std::nullopt;
  if (widen && !is_float(a)) return std::nullopt;
  const bool joined = !widen && machine.target->arithmetic.dots(a, b) > 0;
  Dot best;
  int most = -1;
  for (const AtomId atom : domain.reduced) {
    const Dot dot{atom, elements_of_word(a), widen};
    const int64_t least = copied ? dot.group / 2 + 1 : dot.group;
    if (domain.atoms[atom].extent < least || (!joined && !has_rows_of_words(domain, dot))) continue;
    if (copied && copied->is_tap(atom)) continue;
    // Counts the operands that need no packing. The left operand counts twice, because packing its few rows at a time
    // is costly.
    int words = 0;
    for (const int side : {0, 1})
      if (has_words(domain, domain.operands[domain.contract][side], dot))
        words += side == domain.right_operand() ? 1 : 2;
    if (words < most || (words == most && domain.atoms[atom].extent <= domain.atoms[best.k_atom].extent)) continue;
    best = dot;
    most = words;
  }
  return most >= 0 ? std::optional(best) : std::nullopt;
}

// Whether the right operand's words are read in place: words of neighbouring columns must be neighbours in memory.
bool has_rows_of_words(const Domain& domain, const Dot& dot) {
  const Domain::Operand& right = domain.operands[domain.contract][domain.right_operand()];
  return has_words(domain, right, dot) && !domain.n.empty() && right.access.strides[domain.n.back()] == dot.group;
}

bool has_words(const Domain& domain, const Domain::Operand& operand, const Dot& dot) {
  return operand.is_direct() && operand.access.strides[dot.k_atom] == 1 &&
         domain.atoms[dot.k_atom].extent % dot.group == 0;
}

void CpuContract::pack_words(const CpuSide& side, const Domain& domain, const Place& place, int64_t k_extent,
                             AtomId along, int64_t width, int lanes, Affine offset, int64_t pitch,
                             const std::vector<std::vector<Affine>>& bound) {
  Place at = place;
  size_t along_words = 0;  // index in product_.k_atoms of the loop over K whose elements form words
  int64_t stride = pitch, word_stride = pitch;
  for (size_t i = product_.k_atoms.size(); i-- > 0;) {
    if (product_.k_atoms[i] == product_.dot->k_atom) {
      along_words = i;
      word_stride = stride;
    } else {
      out_.open_loop(k_vars_[i], {fixed(i == 0 ? k_extent : product_.turns_of(i))});
      at[product_.k_atoms[i]] = sum(at[product_.k_atoms[i]], affine(k_vars_[i]));
      offset = sum(offset, affine(k_vars_[i], stride));
    }
    stride *= i == 0 ? product_.turns_of(0, split_.k_block) : product_.turns_of(i);
  }
  const int64_t extent = along_words == 0 ? k_extent : product_.domain.atoms[product_.dot->k_atom].extent;
  each_word(k_vars_[along_words], extent, [&](const Affine& turn, int64_t elements) {
    Place first = at;
    first[product_.dot->k_atom] = sum(first[product_.dot->k_atom], turn, product_.dot->group);
    const TileExpr expr{product_.group, domain, out_, first, {{-1, 1}, {along, width}}, lanes, bound, true};
    store_words(side, expr, elements, sum(offset, turn, word_stride), 0);
  });
  for (size_t i = 0; i + 1 < product_.k_atoms.size(); ++i) out_.close_loop();
}

void CpuContract::multiply_parts(const RowTile& row_tile, const std::vector<Affine>& turns, TileId b,
                                 TileId accumulator) {
  for (int part = 0; part < product_.dot->group; ++part) {
    Affine element;  // the element's position along K within the packed tile of the left operand
    for (size_t i = 0; i < product_.k_atoms.size(); ++i) {
      const Affine turn =
          sum(fixed(product_.k_atoms[i] == product_.dot->k_atom ? part : 0), turns[i], product_.step_of(i));
      element = sum(turn, element, i == 0 ? 1 : product_.domain.atoms[product_.k_atoms[i]].extent);
    }
    const TileId a = out_.tile(product_.packed_dtype(product_.a), {row_tile.rows.height, 1}, -1, 1);
    Slice from;
    from.buffer = a_buffer_;
    from.offset = sum(sum(fixed(0), row_tile.tile, split_.left_depth * split_.mr), element, split_.mr);
    from.strides = {1, 0};
    const TileId factor = out_.like(b, product_.operand_dtype(product_.b));
    out_.push(part_instr(factor, product_.operand_dtype(product_.b), b, part));
    out_.push(load_instr(a, std::move(from)));
    out_.push(map_instr(accumulator, Op::fma, product_.dtype, {a, factor, accumulator}));
  }
}

// Calls `body` for the words that hold `elements` elements: once inside a loop over the full words, and once for the
// last word if it is only partly filled. `body` gets the word's number and the number of elements in the word.
void CpuContract::each_word(VarId var, int64_t elements, const std::function<void(const Affine&, int64_t)>& body) {
  const int64_t whole = elements / product_.dot->group, rest = elements % product_.dot->group;
  if (whole > 0) {
    out_.open_loop(var, {fixed(whole)});
    body(affine(var), product_.dot->group);
    out_.close_loop();
  }
  if (rest > 0) body(fixed(whole), rest);
}

// Stores one word for each row or column to an operand's packed copy. `first`: the place of the words' first elements.
// Elements of a word beyond `elements` are zero. `pitch`: as in store_packed().
void CpuContract::store_words(const CpuSide& side, const TileExpr& first, int64_t elements, Affine offset,
                              int64_t pitch) {
  const DType dtype =
      product_.group.nodes[product_.group.nodes[product_.domain.contract].operands[side.position]].dtype;
  const TileId words = first.tile(DType::u32);
  if (side.words && elements == product_.dot->group) {
    const Access& access = first.domain.operands[product_.domain.contract][side.position].access;
    out_.push(words_instr(words, dtype,
                          slice_at(out_.input_buffer(access.input), access, first.place, {-1, first.loops[1].atom})));
  } else {
    std::vector<TileId> parts;
    for (int64_t i = 0; i < elements; ++i) {
      TileExpr expr = first;
      expr.place[product_.dot->k_atom] = sum(expr.place[product_.dot->k_atom], fixed(i));
      const absl::StatusOr<TileId> part = expr.operand(product_.domain.contract, side.position);
      if (!part.ok()) return fail(part.status());
      out_.push_all(std::move(expr.code));
      parts.push_back(*part);
    }
    out_.push(join_instr(words, dtype, std::move(parts)));
  }
  Slice to;
  to.buffer = buffer_of(side);
  to.offset = std::move(offset);
  to.strides = {pitch, element_pitch(side)};
  out_.push(store_instr(words, std::move(to), false));
}

}  // namespace wl
