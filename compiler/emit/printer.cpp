#include "compiler/emit/printer.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"
#include "compiler/base/records.h"

namespace wl {

Printer::Printer(const Kernel& kernel, std::string entry, int lanes, const NodeListing& listing)
    : kernel_(kernel),
      entry_(std::move(entry)),
      listing_(listing),
      lanes_(lanes),
      register_tiles_(register_tiles(kernel)),
      rounded_tiles_(rounded_tiles(kernel)),
      in_tile_registers_(tiles_in_registers(kernel)),
      shared_factors_(shared_factors(kernel)),
      width_(kernel.vector_lanes()) {
  each_instr(kernel.body, [this](const Instr& instr) {
    if (instr.op == InstrOp::kGather && !instr.gather_inside && kernel_.wave == 0)
      outside_at_ = (kernel_.scratch_bytes() + 63) / 64 * 64;
  });
}

void Printer::fail(std::string message) {
  if (status_.ok()) status_ = unimplemented("kernel ", kernel_.name, ": ", message);
}

absl::StatusOr<std::string> Printer::print() {
  declared_.emplace_back();
  if (kernel_.wave > 0) {
    print_team_head();
  } else {
    print_head();
  }
  print_derived(0);
  if (kernel_.copiers > 0) {
    print_roles();
  } else {
    print_passes();
  }
  out_.close();
  if (outside_at_ >= 0)
    out_.line(cat("extern \"C\" { extern const long ", entry_, "_outside; const long ", entry_,
                  "_outside = ", outside_at_, "; }"));
  if (!status_.ok()) return status_;
  return out_.take();
}

// Prints the passes. A pass that all blocks run becomes an `if` on the number of the sweep over the grid. A pass that
// only the last of several blocks runs becomes an `if` inside that of the pass before it.
void Printer::print_passes() {
  const int sweeps = kernel_.sweeps();
  int sweep = 0, open = 0;
  const auto close = [&] {
    for (; open > 0; --open) {
      out_.close();
      declared_.pop_back();
    }
  };
  const auto enter = [&](std::string when) {
    out_.open(std::move(when));
    declared_.emplace_back();
    ++open;
  };
  for (const Pass& pass : kernel_.passes()) {
    if (pass.last == 0) {
      close();
      if (sweeps > 1) enter(cat("if (pass == ", sweep, ")"));
      ++sweep;
    } else {
      const std::string teams = kernel_.copiers == 0 ? "" : cat(", ", kernel_.team * kernel_.teams);
      enter(cat("if (wl_last<", pass.last, teams, ">(workspace, block / ", pass.last,
                pass.flag < 0 ? "" : cat(", thread, p", pass.flag), "))"));
    }
    print_body(pass.body);
  }
  close();
}

void Printer::print_head() {
  out_.open(cat("extern \"C\" void ", entry_, "(long block, void* const* args, char* scratch)"));
  print_listing();
  out_.line("(void)block; (void)args; (void)scratch;");
  if (outside_at_ >= 0) out_.line(cat("i64* const outside = (i64*)(scratch + ", outside_at_, ");"));
  if (kernel_.sweeps() > 1) {
    out_.line(cat("const long pass = block / ", kernel_.grid, "L;"));
    out_.line(cat("block %= ", kernel_.grid, "L;"));
  }
  int argument = 0;
  if (kernel_.work_bytes() > 0) {
    const auto globals = std::count_if(kernel_.buffers.begin(), kernel_.buffers.end(),
                                       [](const KernelBuffer& b) { return b.level == Level::kGlobal; });
    out_.line(cat("char* const workspace = (char*)args[", globals, "];"));
  }
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const KernelBuffer& b = kernel_.buffers[i];
    const std::string type = cat(b.level == Level::kGlobal && !b.output ? "const " : "", spell_memory(b.dtype, 1), "*");
    const std::string place = b.level == Level::kGlobal   ? cat("args[", argument++, "]")
                              : b.level == Level::kShared ? cat("(scratch + ", b.byte_offset, "L)")
                                                          : cat("(workspace + ", kCounterBytes + b.byte_offset, "L)");
    // A pointer to the workspace is not `restrict`, because other blocks also store to the workspace.
    out_.line(cat(type, b.level == Level::kWork ? " p" : " WL_RESTRICT p", i, " = (", type,
                  ")__builtin_assume_aligned(", place, ", 64);  // ", comment_of(b.name)));
  }
}

// Prints the definition of every derived variable for which `source` was the last of its sources to be declared.
void Printer::print_derived(VarId source) {
  const auto visible = [&](VarId v) {
    if (v == source) return true;
    for (const auto& scope : declared_)
      if (scope.contains(cat("$", v))) return true;
    return false;
  };
  declared_.back().insert(cat("$", source));
  for (VarId v = 0; v < static_cast<VarId>(kernel_.vars.size()); ++v) {
    const Var& var = kernel_.vars[v];
    if (var.kind != Var::Kind::kDerived || visible(v)) continue;
    bool ready = true;
    for (const Affine& a : var.of)
      for (const auto& [s, c] : a.terms) ready = ready && (visible(s) || c == 0);
    if (!ready) continue;
    std::string text = cat("(", spell_min(var.of), ")");
    if (var.div != 1) text = cat(text, " / ", var.div, "L");
    if (var.mod != 0) text = cat("(", text, ") % ", var.mod, "L");
    out_.line(cat("const long ", spell_var(v), " = ", text, ";"));
    declared_.back().insert(cat("$", v));
  }
}

void Printer::print_body(std::span<const Instr> body) {
  if (begin_tiles(body)) {
    print_instrs(body);
    return end_tiles();
  }
  print_instrs(body);
}

void Printer::print_instrs(std::span<const Instr> body) {
  for (size_t i = 0; i < body.size() && status_.ok();) {
    if (body[i].op == InstrOp::kLoop) {
      print_loop(body[i++]);
      continue;
    }
    if (role_ == Role::kCopiers && !copying_) {
      ++i;
      continue;
    }
    if (kernel_.wave > 0) {
      print_team_instr(body[i++]);
      continue;
    }
    const Stretch stretch = next_stretch(kernel_, body, i, in_tile_registers_);
    print_stretch(stretch);
    i += stretch.instrs.size();
  }
}

void Printer::print_loop(const Instr& loop) {
  const bool copiers = loop.role == Role::kCopiers;
  if (role_ == Role::kTeams ? copiers : !copying_ && !has_copiers(loop)) return;
  const bool around = std::exchange(copying_, copying_ || copiers);
  const auto restore = absl::MakeCleanup([&] { copying_ = around; });
  if (copiers)
    for (const Instr& instr : loop.body)
      if (instr.op == InstrOp::kArriveCopied) arrival_ = &instr;
  const std::string v = spell_var(loop.var);
  if (const std::optional<Section> section = section_of(loop)) {
    out_.open(cat("if (block >= ", section->from, "L && block < ", section->to, "L)"));
    out_.line(cat("const long ", v, " = 0;"));
    return print_inside(loop);
  }
  if (copiers && loop.trips == std::vector<Affine>{{1, {}}}) {
    out_.open("");
    out_.line(cat("const long ", v, " = 0;"));
    return print_inside(loop);
  }
  const std::string n = cat("n", loop.var, "_", temporary_++);
  out_.line(cat("const long ", n, " = ", spell_min(loop.trips), ";"));
  // On CPUs, loops of few multiply-adds are unrolled: a branch after each multiply-add is expensive, most of all for a
  // thread that shares its core with another thread.
  const char* const form = kernel_.wave == 0 && is_unrolled(loop) ? "WL_UNROLL" : "WL_SERIAL";
  out_.open(cat(form, " for (long ", v, " = 0; ", v, " < ", n, "; ++", v, ")"));
  note_loop(loop);
  print_inside(loop);
}

void Printer::print_inside(const Instr& loop) {
  const int outside = width_, width = kernel_.wave > 0 ? kernel_.vector_lanes(loop.body) : 1;
  if (width > 1 && width != outside) {
    out_.line(cat("WL_VECTORS(", width, ");"));
    width_ = width;
  }
  declared_.emplace_back();
  print_derived(loop.var);
  print_body(loop.body);
  declared_.pop_back();
  width_ = outside;
  out_.close();
}

std::string Printer::extent(const Tile& tile, int axis) const {
  const std::string fixed = cat(tile.layout.shape[axis], "L");
  if (tile.bound.empty() || tile.bound[axis].empty()) return fixed;
  return cat("wl_lmin(", fixed, ", ", spell_min(tile.bound[axis]), ")");
}

bool Printer::static_extent(const Tile& tile, int axis) const {
  return tile.bound.empty() || tile.bound[axis].empty();
}

void Printer::print_stretch(const Stretch& stretch) {
  const Instr& first = *stretch.instrs[0];
  if (uses_tile_registers(first, in_tile_registers_)) return print_in_tiles(first);
  if (info(first.op).stretch == InstrStretch::kAlone) return print_instr(first, {});
  defined_here_.clear();
  bool keep = stretch.unrolled || repeats_of(tile_of(stretch.space)) == 1;
  for (const Instr* instr : stretch.instrs) {
    if (info(instr->op).result == InstrResult::kDefines) defined_here_.insert(instr->result);
    if (instr->result >= 0) keep = keep || register_tiles_.contains(instr->result);
    if (info(instr->op).reads_arguments())
      for (TileId arg : instr->args) keep = keep || register_tiles_.contains(arg);
  }
  if (keep) {
    print_unrolled(stretch);
  } else {
    print_looped(stretch);
  }
}

void Printer::print_unrolled(const Stretch& stretch) {
  const Tile& space = tile_of(stretch.space);
  const Layout& layout = space.layout;
  const int va = layout.vector_axis();
  const int64_t total = repeats_of(space);
  if (total > 512) return fail(cat("a register tile of ", total, " vectors does not fit the registers"));
  Place place;
  place.repeat.assign(layout.rank(), 0);
  for (int64_t flat = 0; flat < total; ++flat) {
    int64_t rest = flat;
    for (int axis = layout.rank() - 1; axis >= 0; --axis) {
      place.repeat[axis] = rest % layout.repeats(axis);
      rest /= layout.repeats(axis);
    }
    place.element.clear();
    std::string guard;
    for (int axis = 0; axis < layout.rank(); ++axis) {
      const int64_t at = place.repeat[axis] * (axis == va ? layout.lanes() : 1);
      place.element.push_back(cat(at));
      if (axis == va) {
        const bool full = static_extent(space, axis) && at + layout.lanes() <= layout.shape[axis];
        place.left = full ? "" : cat("wl_left(", extent(space, axis), " - ", at, ")");
      } else if (!static_extent(space, axis)) {
        append(&guard, guard.empty() ? "" : " && ", at, " < ", extent(space, axis));
      }
    }
    if (!guard.empty()) {
      // Values must be defined on every path, so only stores may be printed inside an `if`.
      for (const Instr* instr : stretch.instrs)
        if (!info(instr->op).stores()) return fail("a tile bounded along an outer axis may only be stored");
      out_.open(cat("if (", guard, ")"));
    }
    for (const Instr* instr : stretch.instrs) {
      const Layout& mine = tile_of(space_tile(*instr)).layout;
      bool first = true;  // an instruction over fewer elements is printed only at its first repeat
      for (int axis = 0; axis < layout.rank(); ++axis)
        if (mine.shape[axis] == 1 && place.repeat[axis] != 0) first = false;
      if (first) print_instr(*instr, place);
    }
    if (!guard.empty()) out_.close();
  }
}

void Printer::print_looped(const Stretch& stretch) {
  const Tile& space = tile_of(stretch.space);
  const Layout& layout = space.layout;
  int inner = layout.vector_axis();
  for (int axis = layout.rank() - 1; axis >= 0 && inner < 0; --axis)
    if (layout.repeats(axis) > 1) inner = axis;
  std::vector<std::string> outer(layout.rank(), "0");
  out_.open("");
  declared_.emplace_back();
  for (const Instr* instr : stretch.instrs) {
    if (info(instr->op).result != InstrResult::kUpdates) continue;
    for (int axis = 0; axis < layout.rank(); ++axis)
      if (layout.repeats(axis) > 1 && std::find(instr->axes.begin(), instr->axes.end(), axis) == instr->axes.end())
        fail("a fold that keeps a looped axis needs a register tile");
    const std::string type = spell_type(tile_of(instr->result).dtype, lanes_of(instr->result));
    const std::string start = element_name(instr->result, std::vector<int64_t>(layout.rank(), 0));
    for (int a = 0; a < std::max(1, kernel_.accumulators); ++a)
      out_.line(cat(type, " a", instr->result, "_", a, " = ",
                    a == 0 ? start : cat("wl_identity_", name_of(instr->combine), "<", type, ">()"), ";"));
  }
  int opened = 0;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    if (axis == inner || layout.repeats(axis) == 1) continue;
    const std::string r = cat("r", axis);
    out_.open(cat("WL_SERIAL for (long ", r, " = 0; ", r, " < ", extent(space, axis), "; ++", r, ")"));
    declared_.emplace_back();
    outer[axis] = r;
    ++opened;
  }
  print_steps(stretch, inner, outer);
  for (; opened > 0; --opened) {
    declared_.pop_back();
    out_.close();
  }
  for (const Instr* instr : stretch.instrs) {
    if (info(instr->op).result != InstrResult::kUpdates) continue;
    std::vector<std::string> parts;
    for (int a = 0; a < std::max(1, kernel_.accumulators); ++a) parts.push_back(cat("a", instr->result, "_", a));
    while (parts.size() > 1) {  // combines values in pairs, so that chains of dependent operations are short
      std::vector<std::string> next;
      for (size_t i = 0; i < parts.size(); i += 2)
        next.push_back(i + 1 < parts.size()
                           ? cat("wl_", name_of(instr->combine), "(", parts[i], ", ", parts[i + 1], ")")
                           : parts[i]);
      parts = next;
    }
    out_.line(cat(element_name(instr->result, std::vector<int64_t>(layout.rank(), 0)), " = ", parts[0], ";"));
  }
  declared_.pop_back();
  out_.close();
}

// Prints the innermost loop in up to three parts: unrolled full vectors, single full vectors, and one masked vector.
void Printer::print_steps(const Stretch& stretch, int axis, const std::vector<std::string>& outer) {
  const Tile& space = tile_of(stretch.space);
  const Layout& layout = space.layout;
  const int lanes = axis == layout.vector_axis() ? layout.lanes() : 1;
  const bool fixed = static_extent(space, axis);
  const int64_t extent_n = layout.shape[axis];
  const int64_t step = static_cast<int64_t>(std::max(1, kernel_.unroll)) * lanes;
  Place place;
  place.element = outer;
  const auto copies = [&](int count, const std::string& left) {
    declared_.emplace_back();
    for (int copy = 0; copy < count; ++copy) {
      place.copy = copy;
      place.suffix = cat("_", copy);
      place.left = left;
      place.element[axis] = copy == 0 ? "j" : cat("(j + ", copy * lanes, ")");
      for (const Instr* instr : stretch.instrs) print_instr(*instr, place);
    }
    declared_.pop_back();
  };
  out_.line(cat("const long e = ", extent(space, axis), ";"));
  out_.line("long j = 0;");
  if (kernel_.unroll > 1 && (!fixed || extent_n >= step)) {
    out_.open(cat("WL_SERIAL for (; j + ", step, " <= e; j += ", step, ")"));
    copies(kernel_.unroll, "");
    out_.close();
  }
  const int64_t rest = kernel_.unroll > 1 ? extent_n % step : extent_n;
  if (!fixed || rest >= lanes) {
    out_.open(cat("WL_SERIAL for (; j + ", lanes, " <= e; j += ", lanes, ")"));
    copies(1, "");
    out_.close();
  }
  if (lanes > 1 && (!fixed || extent_n % lanes != 0)) {
    out_.open("if (j < e)");
    copies(1, "wl_left(e - j)");
    out_.close();
  }
}

}  // namespace wl
