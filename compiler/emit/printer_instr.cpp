// Prints single instructions of a stretch (consecutive instructions that are printed as one loop).
#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "compiler/emit/printer.h"

namespace wl {
std::string Printer::element_name(TileId tile, const std::vector<int64_t>& repeat) const {
  const Layout& layout = tile_of(tile).layout;
  int64_t flat = 0;
  for (int axis = 0; axis < layout.rank(); ++axis)
    flat = flat * layout.repeats(axis) + (layout.repeats(axis) == 1 ? 0 : repeat[axis]);
  return cat("t", tile, "_", flat);
}

void Printer::define(TileId tile, const std::string& name, const std::string& value) {
  for (const auto& scope : declared_)
    if (scope.contains(name)) return out_.line(cat(name, " = ", value, ";"));
  declared_.back().insert(name);
  // The prelude has its own type for the mask of a comparison, hence `auto`. All other types are spelled out, so that
  // no later assignment to the variable converts a value.
  const std::string type = tile_of(tile).dtype == DType::b1 ? "auto" : spell_type(tile_of(tile).dtype, lanes_of(tile));
  out_.line(cat(type, " ", name, " = ", value, ";"));
  if (noted_tiles_.insert(tile).second) note(tile_of(tile).origin);
}

std::string Printer::value_of(TileId tile, const Place& place, int lanes) {
  const Layout& layout = tile_of(tile).layout;
  std::string name;
  if (place.repeat.empty()) {
    name = defined_here_.contains(tile) ? cat("t", tile, place.suffix)
                                        : element_name(tile, std::vector<int64_t>(layout.rank(), 0));
    if (!defined_here_.contains(tile) && repeats_of(tile_of(tile)) > 1)
      fail(cat("tile %", tile, " is used by a loop that does not define it"));
  } else {
    name = element_name(tile, place.repeat);
  }
  if (lanes > 1 && layout.lanes() == 1)
    return cat("wl_splat<", spell_type(tile_of(tile).dtype, lanes), ">(", name, ")");
  return name;
}

std::string Printer::result_name(const Instr& instr, const Place& place) const {
  return place.repeat.empty() && kernel_.wave == 0 ? cat("t", instr.result, place.suffix)
                                                   : element_name(instr.result, place.repeat);
}

void Printer::print_instr(const Instr& instr, const Place& place) {
  using Print = void (Printer::*)(const Instr&, const Place&);
  static constexpr Print kPrints[] = {
#define WL_INSTR(id, name, operands, result, space, stretch, slice, order, lanes, check, meaning, print, ...) \
  &Printer::print,
#include "compiler/kernel/instrs.def"
  };
  const InstrInfo& row = info(instr.op);
  if (kernel_.wave > 0 ? row.lanes == InstrLanes::kWithoutLanes : row.lanes == InstrLanes::kNeedsLanes)
    return fail(cat("instruction ", row.name, " has no spelling for this target"));
  (this->*kPrints[static_cast<size_t>(instr.op)])(instr, place);
}

void Printer::print_misplaced(const Instr& instr, const Place&) {
  fail(cat("instruction ", name_of(instr.op), " inside a stretch"));
}

// Returns the text for a field of a call in instrs.def: "{address}", "{into}", "{level}", "{pending}", "{parity}",
// "{near}", "{value}", "{left}", "{type}" (of the tile that the instruction processes), or an argument: "{0}", "{1}".
std::string Printer::call_field(std::string_view field, const Instr& instr, const Place& place) {
  if (field == "address") return address(instr.slice, place);
  if (field == "into") return address(instr.into, place);
  if (field == "level") return cat(instr.level);
  if (field == "pending") return cat(instr.pending);
  if (field == "parity") return spell(instr.parity);
  // If matrix instructions will read the copied elements from shared memory, the call must include a fence.
  if (field == "near") return shared_factors_.empty() || role_ == Role::kCopiers ? "" : "_near";
  WL_CHECK(space_tile(instr) >= 0, name_of(instr.op), " has no tile for ", field);
  const Tile& tile = tile_of(space_tile(instr));
  const int lanes = tile.layout.lanes();
  if (field == "value") return spell_constant(instr.value, tile.dtype);
  if (field == "left") return place.left.empty() ? cat(lanes) : place.left;
  if (field == "type") return spell_type(tile.dtype, lanes);
  const size_t arg = static_cast<size_t>(field[0] - '0');
  WL_CHECK(arg < instr.args.size(), "no field ", field, " of ", name_of(instr.op));
  return value_of(instr.args[arg], place, lanes);
}

void Printer::print_call(const Instr& instr, const Place& place) {
  static constexpr std::string_view kCalls[] = {
#define WL_INSTR(id, name, operands, result, space, stretch, slice, order, lanes, check, meaning, print, call) call,
#include "compiler/kernel/instrs.def"
  };
  const std::string text = fill_fields(kCalls[static_cast<size_t>(instr.op)],
                                       [&](std::string_view field) { return call_field(field, instr, place); });
  if (instr.result < 0) return out_.line(cat(text, ";"));
  define(instr.result, result_name(instr, place), text);
}

void Printer::print_iota(const Instr& instr, const Place& place) {
  const int lanes = lanes_of(instr.result);
  const std::string type = spell_type(tile_of(instr.result).dtype, lanes);
  const std::string scalar = spell_type(tile_of(instr.result).dtype, 1);
  std::string start = cat("(", scalar, ")(", spell(instr.slice.offset), " + ", place.element[instr.axis], ")");
  if (lanes > 1) {
    start = cat("wl_splat<", type, ">(", start, ")");
    if (tile_of(instr.result).layout.vector_axis() == instr.axis)
      start = cat("wl_add(", start, ", wl_iota<", type, ">())");
  }
  define(instr.result, result_name(instr, place), start);
}

void Printer::print_load(const Instr& instr, const Place& place) {
  const Tile& tile = tile_of(instr.result);
  const int lanes = tile.layout.lanes();
  const std::string name = result_name(instr, place);
  if (!instr.guards.empty()) return print_guarded(instr, place, name);
  if (kernel_.wave > 0) return print_team_load(instr, place);
  const std::string type = spell_memory(tile.dtype, lanes), scalar = spell_memory(tile.dtype, 1);
  const std::string at = address(instr.slice, place);
  const auto set = [&](const std::string& bits) { define(instr.result, name, spell_load(tile.dtype, lanes, bits)); };
  if (lanes == 1) return set(cat("*(", at, ")"));
  const int64_t stride = instr.slice.strides[tile.layout.vector_axis()];
  if (stride == 0) return set(cat("wl_splat<", type, ">(*(", at, "))"));
  const std::string tail = place.left.empty() ? "" : cat(", ", place.left, ", (", scalar, ")0");
  const std::string masked = place.left.empty() ? "" : "_n";
  if (stride == 1) return set(cat("wl_load", masked, "<", type, ">(", at, tail, ")"));
  set(cat("wl_gather", masked, "<", type, ">(", at, ", ", stride, "L", tail, ")"));
}

// Prints a gather: on a CPU, a single element is read without a call; all other gathers are calls of wl_take(), which
// on a GPU takes the index as a vector. A CPU kernel also records an index outside of its axis, if there can be one
// (Printer::outside_at).
void Printer::print_gather(const Instr& instr, const Place& place) {
  const Tile& tile = tile_of(instr.result);
  const int lanes = tile.layout.lanes();
  const std::string at = address(instr.slice, place), type = spell_memory(tile.dtype, lanes);
  const std::string index = value_of(instr.args[0], place, kernel_.wave > 0 ? lanes : 1);
  const auto set = [&](const std::string& bits) {
    define(instr.result, result_name(instr, place), spell_load(tile.dtype, lanes, bits));
  };
  const bool tells = !instr.gather_inside && kernel_.wave == 0;
  const std::string told = tells ? ", outside" : "";
  if (lanes == 1 && kernel_.wave == 0)
    return set(cat("*(", at, tells ? " + wl_place((long)" : " + wl_wrap((long)", index, ", ", instr.gather_extent, "L",
                   told, ")*", instr.gather_stride, "L)"));
  const int64_t along = lanes > 1 ? instr.slice.strides[tile.layout.vector_axis()] : 1;
  set(cat("wl_take<", type, instr.gather_inside && kernel_.wave > 0 ? ", true>(" : ">(", at, ", ", along, "L, ", index,
          ", ", instr.gather_stride, "L, ", instr.gather_extent, "L, ", place.left.empty() ? cat(lanes) : place.left,
          told, ")"));
}

// Whether a guard along the vector axis always holds for all elements of a vector or for none of them.
bool Printer::whole_vectors(const SliceGuard& guard, const Tile& tile) const {
  const int64_t lanes = tile.layout.lanes();
  const int axis = tile.layout.vector_axis();
  const auto whole = [lanes](int64_t n) { return n % lanes == 0; };
  if (guard.strides[axis] != 1 || !whole(guard.extent) || !whole(guard.at.base)) return false;
  for (int a = 0; a < tile.layout.rank(); ++a)
    if (a != axis && tile.layout.shape[a] > 1 && !whole(guard.strides[a])) return false;
  return std::all_of(guard.at.terms.begin(), guard.at.terms.end(),
                     [&](const auto& term) { return whole(term.second); });
}

// Whether the guards of all rows of a tile are the same; always false on machines with lanes.
bool Printer::rows_share(const std::vector<SliceGuard>& guards, const Tile& tile) const {
  if (kernel_.wave > 0) return false;
  for (int a = 0; a < tile.layout.rank(); ++a) {
    if (a == tile.layout.vector_axis() || tile.layout.shape[a] == 1) continue;
    return std::all_of(guards.begin(), guards.end(), [a](const SliceGuard& guard) { return guard.strides[a] == 0; });
  }
  return false;
}

// Returns the name of the range of lanes from `low` to `high`, which is defined before its first use.
std::string Printer::range_of(const std::string& low, const std::string& high) {
  std::string& name = ranges_[cat(low, "..", high)];
  for (const auto& scope : declared_)
    if (scope.contains(name)) return name;
  name = cat("g", temporary_++);
  declared_.back().insert(name);
  out_.line(cat("const int ", name, "_low = ", low, ", ", name, "_high = ", high, ";"));
  return name;
}

// Prints a load with guards. A guard that is the same for all lanes of a vector becomes a condition; on machines with
// lanes, so does one that holds for all elements of a vector or for none. Every other guard limits the range of lanes.
void Printer::print_guarded(const Instr& instr, const Place& place, const std::string& name) {
  const Tile& tile = tile_of(instr.result);
  const int lanes = tile.layout.lanes(), axis = tile.layout.vector_axis();
  const std::string constant = spell_constant(instr.value, tile.dtype);
  const std::string other =
      spell_store(tile.dtype, lanes,
                  !instr.args.empty() ? value_of(instr.args[0], place, lanes)
                  : lanes == 1        ? constant
                                      : cat("wl_splat<", spell_type(tile.dtype, lanes), ">(", constant, ")"));
  std::string condition, low = "0L", high = place.left.empty() ? cat(lanes, "L") : cat("(long)", place.left);
  bool ranges = !place.left.empty();
  for (const SliceGuard& guard : instr.guards) {
    const std::string at = index(guard.at, guard.strides, place);
    const int64_t along = lanes > 1 ? guard.strides[axis] : 0;
    if (along == 0 || (kernel_.wave > 0 && whole_vectors(guard, tile))) {
      append(&condition, condition.empty() ? "" : " && ", "wl_within(", at, ", ", guard.extent, "L)");
    } else {
      ranges = true;
      low = cat("wl_lmax(", low, ", wl_first_lane(", at, ", ", along, "L, ", guard.extent, "L))");
      high = cat("wl_lmin(", high, ", wl_end_lane(", at, ", ", along, "L, ", guard.extent, "L))");
    }
  }
  const std::string from = address(instr.slice, place);
  const auto set = [&](const std::string& bits) { define(instr.result, name, spell_load(tile.dtype, lanes, bits)); };
  if (lanes == 1) {
    if (!place.left.empty()) condition = cat(place.left, " > 0", condition.empty() ? "" : " && ", condition);
    return set(cat(condition, " ? ", read_one(from, instr), " : ", other));
  }
  if (kernel_.wave > 0 && !ranges) {
    const std::string vector = spell_memory(tile.dtype, lanes);
    const int64_t along = instr.slice.strides[axis];
    const std::string inside =
        along == 0   ? cat("wl_splat<", vector, ">(", read_one(from, instr), ")")
        : along == 1 ? cat(load_name(instr), "<", vector, ", ", access_width(instr.slice, tile, false), ">(", from, ")")
                     : cat("wl_gather<", vector, ">(", from, ", ", along, "L)");
    return set(cat(condition, " ? ", inside, " : ", other));
  }
  const std::string range = range_of(
      cat("wl_left(", low, ")"),
      cat(condition.empty() ? "" : cat(condition, " ? "), "wl_left(", high, ")", condition.empty() ? "" : " : 0"));
  const int64_t stride = instr.slice.strides[axis];
  const std::string_view load = stride != 1                      ? "wl_gather_in<"
                                : rows_share(instr.guards, tile) ? "wl_load_where<"
                                                                 : "wl_load_in<";
  set(cat(load, spell_memory(tile.dtype, lanes), ">(", from, ", ", stride == 1 ? "" : cat(stride, "L, "), range,
          "_low, ", range, "_high, ", other, ")"));
}

// Whether vectors along `axis` are aligned, as streaming stores need: every term of the address is a multiple of the
// vector's length.
bool Printer::aligned(const Slice& slice, int axis) const {
  const int width = lanes_;
  if (slice.offset.base % width != 0) return false;
  for (const auto& [var, coefficient] : slice.offset.terms)
    if (coefficient % width != 0) return false;
  for (size_t i = 0; i < slice.strides.size(); ++i)
    if (static_cast<int>(i) != axis && slice.strides[i] % width != 0) return false;
  return true;
}

std::string Printer::condition(const Instr& store, const Place& place) const {
  std::string out;
  for (const SliceGuard& guard : store.guards)
    append(&out, out.empty() ? "" : " && ", "wl_within(", index(guard.at, guard.strides, place), ", ", guard.extent,
           "L)");
  return out;
}

void Printer::print_store(const Instr& instr, const Place& place) {
  if (kernel_.wave > 0) return print_team_store(instr, place);
  const Tile& tile = tile_of(instr.args[0]);
  const int lanes = tile.layout.lanes();
  const std::string at = address(instr.slice, place);
  const std::string value = bits_of(instr.args[0], place);
  const std::string when = condition(instr, place), head = when.empty() ? "" : cat("if (", when, ") ");
  if (lanes == 1) return out_.line(cat(head, "*(", at, ") = ", value, ";"));
  const int64_t stride = instr.slice.strides[tile.layout.vector_axis()];
  const std::string tail = place.left.empty() ? "" : cat(", ", place.left);
  const std::string masked = place.left.empty() ? "" : "_n";
  if (stride != 1) return out_.line(cat(head, "wl_scatter", masked, "(", at, ", ", stride, "L, ", value, tail, ");"));
  const bool stream = instr.streaming && place.left.empty() && size_of(tile.dtype) == 4 &&
                      aligned(instr.slice, tile.layout.vector_axis());
  out_.line(cat(head, stream ? "wl_stream" : cat("wl_store", masked), "(", at, ", ", value, tail, ");"));
}

void Printer::print_map(const Instr& instr, const Place& place) {
  const int lanes = lanes_of(instr.result);
  std::vector<std::string> names;
  for (const ExprNode& node : instr.expr) {
    if (node.kind == ExprNode::Kind::kArg) {
      names.push_back(value_of(instr.args[node.arg], place, lanes));
      continue;
    }
    if (node.kind == ExprNode::Kind::kConstant) {
      const std::string constant = spell_constant(node.value, node.dtype);
      names.push_back(lanes == 1 ? constant : cat("wl_splat<", spell_type(node.dtype, lanes), ">(", constant, ")"));
      continue;
    }
    // Logical ops, casts and the condition of a select take the mask of a comparison; all other ops take it as 0 or 1.
    const bool takes_masks = node.op == Op::cast || is_logical(node.op);
    std::vector<std::string> operands;
    for (int k = 0; k < info(node.op).arity; ++k) {
      const ExprNode& operand = instr.expr[node.operands[k]];
      const bool plain = operand.dtype == DType::b1 && !takes_masks && !(node.op == Op::select && k == 0);
      const std::string& text = names[node.operands[k]];
      operands.push_back(plain ? cat("wl_cast<", spell_type(DType::b1, lanes), ">(", text, ")") : text);
    }
    const std::string name = cat("x", temporary_++);
    const DType from = instr.expr[node.operands[0]].dtype;
    out_.line(cat("const auto ", name, " = ", spell_op(node, from, lanes, operands), ";"));
    if (noted_values_.insert(&node).second) note(node.origin);
    names.push_back(name);
  }
  const std::string name =
      place.repeat.empty() && defined_here_.contains(instr.result) && repeats_of(tile_of(instr.result)) > 1
          ? cat("t", instr.result, place.suffix)
          : element_name(instr.result, place.repeat.empty()
                                           ? std::vector<int64_t>(tile_of(instr.result).layout.rank(), 0)
                                           : place.repeat);
  // The line that defines the tile's value has the comment that names its node already, so define() adds none.
  if (instr.expr.back().origin.node >= 0) noted_tiles_.insert(instr.result);
  define(instr.result, name, names.back());
}

void Printer::print_fold(const Instr& instr, const Place& place) {
  const int lanes = lanes_of(instr.args[0]);
  std::string value = value_of(instr.args[0], place, lanes);
  const std::string type = spell_type(tile_of(instr.args[0]).dtype, lanes);
  if (tile_of(instr.args[0]).dtype == DType::b1) value = cat("wl_cast<", type, ">(", value, ")");
  const std::string combine = cat("wl_", name_of(instr.combine));
  if (!place.left.empty() && (lanes > 1 || kernel_.wave > 0))
    value = cat("wl_keep(", value, ", ", place.left, ", wl_identity_", name_of(instr.combine), "<",
                spell_type(tile_of(instr.args[0]).dtype, 1), ">())");
  if (place.repeat.empty()) {
    const std::string accumulator = cat("a", instr.result, "_", place.copy % std::max(1, kernel_.accumulators));
    return out_.line(cat(accumulator, " = ", combine, "(", accumulator, ", ", value, ");"));
  }
  std::vector<int64_t> repeat = place.repeat;
  for (int axis : instr.axes) repeat[axis] = 0;
  const std::string name = element_name(instr.result, repeat);
  out_.line(cat(name, " = ", combine, "(", name, ", ", value, ");"));
}

void Printer::print_fill(const Instr& instr, const Place&) {
  const int lanes = lanes_of(instr.result);
  const DType dtype = tile_of(instr.result).dtype;
  const std::string constant = spell_constant(instr.value, dtype);
  for (int64_t i = 0; i < repeats_of(tile_of(instr.result)); ++i)
    define(instr.result, cat("t", instr.result, "_", i),
           lanes == 1 ? constant : cat("wl_splat<", spell_type(dtype, lanes), ">(", constant, ")"));
}

void Printer::print_cross(const Instr& instr, const Place&) {
  if (kernel_.wave > 0) return print_team_cross(instr);
  const TileId from = instr.args[0];
  const std::string name = spell_horizontal(instr.combine);
  for (int64_t i = 0; i < repeats_of(tile_of(from)); ++i) {
    const std::string value = cat("t", from, "_", i);
    define(instr.result, cat("t", instr.result, "_", i), lanes_of(from) == 1 ? value : cat(name, "(", value, ")"));
  }
}

// Prints a convert on a CPU: the vectors of a tile lie along another axis afterwards. Square blocks of vectors are
// transposed in registers. A square may extend beyond the tile: missing rows are filled with zeros, and results beyond
// the tile are not used.
void Printer::print_convert(const Instr& instr, const Place&) {
  if (kernel_.wave > 0) return print_team_convert(instr);
  const Layout& from = tile_of(instr.args[0]).layout;
  const Layout& to = tile_of(instr.result).layout;
  const int a = from.vector_axis(), b = to.vector_axis(), lanes = from.lanes();
  if (a < 0 || b < 0 || a == b || to.lanes() != lanes)
    return fail("convert moves vectors from one axis to another and nothing else");
  const std::string type = spell_type(tile_of(instr.result).dtype, lanes);
  for (int64_t i = 0; i * lanes < from.shape[b]; ++i) {
    for (int64_t j = 0; j * lanes < from.shape[a]; ++j) {
      const std::string block = cat("q", temporary_++);
      std::vector<std::string> rows;
      std::vector<int64_t> repeat(from.rank(), 0);
      for (int r = 0; r < lanes; ++r) {
        repeat[b] = i * lanes + r;
        repeat[a] = j;
        rows.push_back(repeat[b] < from.shape[b] ? element_name(instr.args[0], repeat) : cat(type, "{}"));
      }
      out_.line(cat(type, " ", block, "[", lanes, "] = {", absl::StrJoin(rows, ", "), "};"));
      out_.line(cat("wl_transpose(", block, ");"));
      for (int r = 0; r < lanes && j * lanes + r < from.shape[a]; ++r) {
        repeat[a] = j * lanes + r;
        repeat[b] = i;
        define(instr.result, element_name(instr.result, repeat), cat(block, "[", r, "]"));
      }
    }
  }
}

}  // namespace wl
