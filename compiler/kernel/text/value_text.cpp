#include "compiler/kernel/text/value_text.h"

#include "absl/strings/str_join.h"

namespace wl {

std::string text_of(const Kernel& kernel, VarId var) {
  if (var == 0) return "block";
  if (var == 1 && kernel.wave > 0) return "team";
  // A message of verify() may show a kernel that uses a variable that it does not have. Such a variable's name is "?".
  const bool known = var > 0 && var < static_cast<VarId>(kernel.vars.size());
  return cat(known ? kernel.vars[var].name : "?", "#", var);
}

std::string text_of(const Kernel& kernel, const Affine& affine) {
  std::string out;
  for (const auto& [var, coefficient] : affine.terms) {
    if (!out.empty()) out += " + ";
    out += text_of(kernel, var);
    if (coefficient != 1) append(&out, "*", coefficient);
  }
  if (affine.base != 0 || out.empty()) append(&out, out.empty() ? "" : " + ", affine.base);
  return out;
}

std::string minimum_text(const Kernel& kernel, const std::vector<Affine>& of) {
  const std::string list =
      absl::StrJoin(of, ", ", [&](std::string* out, const Affine& a) { out->append(text_of(kernel, a)); });
  return of.size() == 1 ? list : cat("min(", list, ")");
}

std::string text_of(const Kernel& kernel, const Tile& tile) {
  std::string out = cat(name_of(tile.dtype), " ", tile.layout.text());
  if (!tile.bound.empty()) out += " bounds";
  for (size_t axis = 0; axis < tile.bound.size(); ++axis)
    if (!tile.bound[axis].empty()) append(&out, " ", axis, ":", minimum_text(kernel, tile.bound[axis]));
  return out;
}

std::string text_of(const Kernel& kernel, const Slice& slice) {
  return cat("p", slice.buffer, "[", text_of(kernel, slice.offset), "] strides [", absl::StrJoin(slice.strides, ","),
             "]");
}

std::string guards_text(const Kernel& kernel, const std::vector<SliceGuard>& guards) {
  std::string out;
  for (const SliceGuard& guard : guards)
    append(&out, out.empty() ? "" : " and ", text_of(kernel, guard.at), " strides [", absl::StrJoin(guard.strides, ","),
           "] of ", guard.extent);
  return out;
}

absl::Status ValueReader::read_dtype(DType& value) {
  const auto named = dtype_named(in.word());
  if (!named) return in.expected("a dtype");
  value = *named;
  return absl::OkStatus();
}

absl::Status ValueReader::read_buffer(BufferId& id, int highest) {
  if (in.peek() != 'p') return in.expected("a buffer as p0");
  in.skip(1);
  return in.number(id, 0, highest);
}

absl::Status ValueReader::read_variable(VarId& var) {
  const TextCursor before = in;
  const std::string_view name = in.word();
  if (name == "block" && in.peek() != '#') {
    var = 0;
    return absl::OkStatus();
  }
  if (name == "team" && in.peek() != '#' && kernel.wave > 0) {
    var = 1;
    return absl::OkStatus();
  }
  if (name.empty() || !in.take("#")) {
    in = before;
    return in.expected("'block' or a variable as i#1");
  }
  WL_RETURN_IF_ERROR(in.number(var, 1, static_cast<int>(kernel.vars.size()) - 1));
  if (kernel.vars[var].name != name)
    return invalid("variable ", var, " is called '", kernel.vars[var].name, "', not '", name, "'");
  return absl::OkStatus();
}

absl::Status ValueReader::read_affine(Affine& value) {
  bool based = false;
  do {
    const char next = in.peek();
    if (!based && (next == '-' || absl::ascii_isdigit(static_cast<unsigned char>(next)))) {
      WL_RETURN_IF_ERROR(in.integer(value.base, kAnyLow, kAnyHigh));
      based = true;
      continue;
    }
    auto& [var, coefficient] = value.terms.emplace_back(0, 1);
    WL_RETURN_IF_ERROR(read_variable(var));
    if (in.take("*")) WL_RETURN_IF_ERROR(in.integer(coefficient, kAnyLow, kAnyHigh));
  } while (in.take("+"));
  return absl::OkStatus();
}

absl::Status ValueReader::read_minimum(std::vector<Affine>& of) {
  if (in.take("(")) {
    WL_RETURN_IF_ERROR(read_affine(of.emplace_back()));
    return in.expect(")");
  }
  if (!in.take("min(")) return read_affine(of.emplace_back());
  do {
    WL_RETURN_IF_ERROR(read_affine(of.emplace_back()));
  } while (in.take(","));
  return in.expect(")");
}

absl::Status ValueReader::read_slice(Slice& value) {
  WL_RETURN_IF_ERROR(read_buffer(value.buffer, static_cast<int>(kernel.buffers.size()) - 1));
  WL_RETURN_IF_ERROR(in.expect("["));
  WL_RETURN_IF_ERROR(read_affine(value.offset));
  WL_RETURN_IF_ERROR(in.expect("]"));
  WL_RETURN_IF_ERROR(in.expect("strides"));
  return in.list(value.strides, kAnyLow, kAnyHigh);
}

absl::Status ValueReader::read_guards(std::vector<SliceGuard>& guards) {
  do {
    SliceGuard& guard = guards.emplace_back();
    WL_RETURN_IF_ERROR(read_affine(guard.at));
    WL_RETURN_IF_ERROR(in.expect("strides"));
    WL_RETURN_IF_ERROR(in.list(guard.strides, kAnyLow, kAnyHigh));
    WL_RETURN_IF_ERROR(in.expect("of"));
    WL_RETURN_IF_ERROR(in.integer(guard.extent, 0, kMaxCount));
  } while (in.take("and"));
  return absl::OkStatus();
}

absl::Status ValueReader::read_tile(TileId& id) {
  WL_RETURN_IF_ERROR(in.expect("%"));
  WL_RETURN_IF_ERROR(in.number(id, 0, most));
  if (id >= static_cast<TileId>(typed.size()) || !typed[id]) return invalid("%", id, " is used before it is defined");
  return absl::OkStatus();
}

absl::Status ValueReader::read_type(TileId id) {
  WL_RETURN_IF_ERROR(in.expect(":"));
  if (id < static_cast<TileId>(typed.size()) && typed[id]) return invalid("%", id, " has a type already");
  Tile tile;
  WL_RETURN_IF_ERROR(read_dtype(tile.dtype));
  WL_ASSIGN_OR_RETURN(tile.layout, read_layout(in));
  if (in.take("bounds")) {
    tile.bound.resize(tile.layout.shape.size());
    while (absl::ascii_isdigit(static_cast<unsigned char>(in.peek()))) {
      int axis = 0;
      WL_RETURN_IF_ERROR(in.number(axis, 0, tile.layout.rank() - 1));
      WL_RETURN_IF_ERROR(in.expect(":"));
      if (!tile.bound[axis].empty()) return invalid("axis ", axis, " has a bound already");
      WL_RETURN_IF_ERROR(read_minimum(tile.bound[axis]));
    }
  }
  if (id >= static_cast<TileId>(typed.size())) {
    typed.resize(id + 1, false);
    kernel.tiles.resize(id + 1);
  }
  typed[id] = true;
  kernel.tiles[id] = std::move(tile);
  return absl::OkStatus();
}

}  // namespace wl
