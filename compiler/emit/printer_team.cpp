// Prints kernels for machines with lanes (GPUs and their simulator): the head, and single instructions, unrolled over
// the registers of a thread. In the printed text `place` is the thread's number in its team (the threads that work on a
// row or tile together): lane bits low, wave bits above.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "compiler/base/log2.h"
#include "compiler/base/records.h"
#include "compiler/emit/printer.h"
#include "compiler/target/target.h"

namespace wl {
namespace {

constexpr int64_t kMostRegisters = 512;  // the most vectors of one tile that a thread may hold
constexpr int kWidestAccess = 16;        // the most bytes that one load or store of a thread moves

}  // namespace

const char* Printer::load_name(const Instr& load) {
  return load.streaming ? "wl_load_past" : "wl_load";
}

void Printer::print_team_head() {
  std::vector<std::string> parameters;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const KernelBuffer& b = kernel_.buffers[i];
    if (b.level == Level::kGlobal)
      parameters.push_back(cat(!b.output ? "WL_IN("
                               : b.once  ? "WL_ONCE("
                                         : "WL_OUT(",
                               spell_memory(b.dtype, 1), ", p", i, ", ", elements(b.shape), ")"));
  }
  if (const int64_t bytes = workspace_bytes(kernel_); bytes > 0) parameters.push_back(cat("WL_PASSES(", bytes, ")"));
  out_.open(cat(kernel_.cluster > 1 ? cat("WL_CLUSTER_KERNEL(", kernel_.cluster, ", ", kernel_.scratch_bytes(), ", ")
                : kernel_.blocks == 0
                    ? "WL_KERNEL("
                    : cat("WL_RESIDENT_KERNEL(",
                          residency_bound(kernel_.target, kernel_.wave, kernel_.blocks, kernel_.threads), ", "),
                entry_, ", ", kernel_.grid, ", ", kernel_.threads, ", ", absl::StrJoin(parameters, ", "), ")"));
  print_listing();
  out_.line("WL_ENTER;");
  const std::string own = cat(kCounterBytes + kernel_.own_at(), ", ", kernel_.own_bytes(), ", ");
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const KernelBuffer& b = kernel_.buffers[i];
    out_.line(b.level == Level::kGlobal ? cat("// p", i, " = ", comment_of(b.name))
                                        : cat(info(b.level).macro, "(", spell_memory(b.dtype, 1), ", p", i, ", ",
                                              b.level == Level::kOwn ? own : "",
                                              b.byte_offset + (b.level == Level::kWork ? kCounterBytes : 0), ", ",
                                              kernel_.bytes_of(b) / size_of(b.dtype), ");  // ", comment_of(b.name)));
  }
  for (size_t i = 0; i < kernel_.buffers.size(); ++i)
    if (const KernelBuffer& b = kernel_.buffers[i]; b.arrivals > 0)
      out_.line(cat("wl_begin_phases<", elements(b.shape), ", ", b.arrivals, ", ", kernel_.team * kernel_.teams, ">(p",
                    i, ", thread);"));
  out_.line(kernel_.teams == 1 ? "const int place = thread;"
                               : cat("const int place = thread & ", kernel_.team - 1, ";"));
  out_.line(cat("const long ", spell_var(kTeamVar), " = ",
                kernel_.teams == 1 ? "0" : cat("thread >> ", log2_floor(kernel_.team)), ";"));
  out_.line(cat("(void)place; (void)", spell_var(kTeamVar), ";"));
  declared_.back().insert(cat("$", kTeamVar));
}

// Prints an `if`: from there on, copiers (threads that only copy) and teams run different code. The copiers' thread
// numbers follow those of the teams.
void Printer::print_roles() {
  const int computing = kernel_.team * kernel_.teams;
  out_.line("wl_barrier();");
  for (const Role role : {Role::kCopiers, Role::kTeams}) {
    out_.open(role == Role::kCopiers ? cat("if (thread >= ", computing, ")") : "else");
    declared_.emplace_back();
    role_ = role;
    if (role == Role::kCopiers) {
      out_.line(cat("const int place = thread - ", computing, ";"));
      print_maps();
      // Only the first pass has asynchronous copies, so copiers run no other pass.
      print_body(kernel_.passes()[0].body);
      out_.line("wl_wait<0>();");  // a copier must not end before its copies have
    } else {
      print_passes();
    }
    declared_.pop_back();
    out_.close();
  }
}

std::string Printer::barrier() const {
  const std::string name = shared_factors_.empty() ? "wl_barrier" : "wl_barrier_near";
  return kernel_.copiers == 0 ? cat(name, "();") : cat(name, "_of<", kernel_.team * kernel_.teams, ">();");
}

std::vector<Layout::Base> Printer::by_bit_of_place(const Layout& layout) const {
  const int threads = role_ == Role::kCopiers ? kernel_.copiers : kernel_.team;
  const int wave_bits = log2_floor(std::min(kernel_.wave, threads));
  std::vector<Layout::Base> bits(log2_floor(threads));
  int lane = 0, unit = 0;
  for (const Layout::Base& base : layout.bases) {
    const int position = base.kind == 'l' ? lane++ : base.kind == 'u' ? wave_bits + unit++ : -1;
    if (position >= 0) bits.at(position) = base;
  }
  return bits;
}

std::string Printer::coordinate(const Layout& layout, int axis, const std::vector<int64_t>& repeat,
                                int64_t* added) const {
  std::vector<uint64_t> moves;
  for (const Layout::Base& base : by_bit_of_place(layout)) moves.push_back(layout.part(base, axis));
  return spell_bits("place", moves, static_cast<uint64_t>(layout.first_of(axis, repeat)), added);
}

int64_t Printer::replicated(const Layout& layout) const {
  const std::vector<Layout::Base> bits = by_bit_of_place(layout);
  int64_t mask = 0;
  for (size_t i = 0; i < bits.size(); ++i) mask |= int64_t{bits[i].vector == 0} << i;
  return mask;
}

int Printer::access_width(const Slice& slice, const Tile& tile, bool masked) const {
  const int lanes = tile.layout.lanes(), axis = tile.layout.vector_axis();
  int64_t common = std::min<int64_t>(lanes, std::max<int64_t>(1, kWidestAccess / size_of(tile.dtype)));
  const auto divide = [&](int64_t n) { common = std::gcd(common, n); };
  const auto divide_all = [&](const Affine& affine) {
    divide(affine.base);
    for (const auto& [var, coefficient] : affine.terms) divide(coefficient);
  };
  divide_all(slice.offset);
  const KernelBuffer& buffer = kernel_.buffers[slice.buffer];
  if (buffer.level != Level::kGlobal) divide(buffer.byte_offset / size_of(buffer.dtype));
  for (int a = 0; a < tile.layout.rank(); ++a)
    if (a != axis && tile.layout.shape[a] > 1) divide(slice.strides[a]);
  if (masked) {
    divide(tile.layout.shape[axis]);
    if (!tile.bound.empty())
      for (const Affine& bound : tile.bound[axis]) divide_all(bound);
  }
  return static_cast<int>(common);
}

std::string Printer::read_one(const std::string& address, const Instr& load) const {
  if (kernel_.wave == 0) return cat("*(", address, ")");
  return cat(load_name(load), "<", spell_memory(tile_of(load.result).dtype, 1), ", 1>(", address, ")");
}

void Printer::print_team_instr(const Instr& instr) {
  if (info(instr.op).stretch == InstrStretch::kAlone) return print_instr(instr, {});
  if (shared_factors_.contains(instr.result)) return print_shared_factor(instr);
  const Tile& space = tile_of(space_tile(instr));
  const Layout& layout = space.layout;
  const int64_t total = repeats_of(space);
  if (total > kMostRegisters) return fail(cat("a register tile of ", total, " vectors does not fit the registers"));
  defined_here_.clear();
  Place place;
  place.repeat.assign(layout.rank(), 0);
  for (int64_t flat = 0; flat < total; ++flat) {
    int64_t rest = flat;
    for (int axis = layout.rank() - 1; axis >= 0; --axis) {
      place.repeat[axis] = rest % layout.repeats(axis);
      rest /= layout.repeats(axis);
    }
    place.element.clear();
    place.of_thread.clear();
    place.of_all.clear();
    place.left.clear();
    for (int axis = 0; axis < layout.rank(); ++axis) {
      int64_t added = 0;
      place.element.push_back(coordinate(layout, axis, place.repeat));
      place.of_thread.push_back(coordinate(layout, axis, place.repeat, &added));
      place.of_all.push_back(added);
      if (static_extent(space, axis) && layout.last_of(axis, place.repeat) < layout.shape[axis]) continue;
      if (!place.left.empty() || (layout.lanes() > 1 && axis != layout.vector_axis()))
        return fail("a tile of lanes is bounded along one axis, that of its vectors");
      place.left = cat("wl_left(", extent(space, axis), " - ", place.element[axis], ")");
    }
    print_instr(instr, place);
  }
}

void Printer::print_team_load(const Instr& instr, const Place& place) {
  const Tile& tile = tile_of(instr.result);
  const int lanes = tile.layout.lanes();
  const std::string type = spell_memory(tile.dtype, lanes), scalar = spell_memory(tile.dtype, 1);
  const std::string at = address(instr.slice, place);
  const auto set = [&](const std::string& bits) {
    define(instr.result, element_name(instr.result, place.repeat), spell_load(tile.dtype, lanes, bits));
  };
  const int64_t along = lanes > 1 ? instr.slice.strides[tile.layout.vector_axis()] : 1;
  if (along == 0) return set(cat("wl_splat<", type, ">(", read_one(at, instr), ")"));
  const std::string masked = place.left.empty() ? "" : "_n";
  const std::string tail = place.left.empty() ? "" : cat(", ", place.left, ", (", scalar, ")0");
  if (along != 1) return set(cat("wl_gather", masked, "<", type, ">(", at, ", ", along, "L", tail, ")"));
  const int width = lanes == 1 ? 1 : access_width(instr.slice, tile, !place.left.empty());
  if (kernel_.buffers[instr.slice.buffer].level == Level::kGlobal)
    load_bytes_ = std::max(load_bytes_, width * size_of(tile.dtype));
  set(cat(load_name(instr), masked, "<", type, ", ", width, ">(", at, tail, ")"));
}

void Printer::print_team_store(const Instr& instr, const Place& place) {
  const Tile& tile = tile_of(instr.args[0]);
  const int lanes = tile.layout.lanes();
  const std::string at = address(instr.slice, place);
  const std::string value = bits_of(instr.args[0], place);
  std::string when = condition(instr, place);
  // If several threads hold the same elements, only one of the threads stores them.
  if (const int64_t mask = replicated(tile.layout); mask != 0)
    append(&when, when.empty() ? "" : " && ",
           mask == kernel_.team - 1 ? "place == 0" : cat("(place & ", mask, ") == 0"));
  const std::string head = when.empty() ? "" : cat("if (", when, ") ");
  const std::string masked = place.left.empty() ? "" : "_n", tail = place.left.empty() ? "" : cat(", ", place.left);
  const int64_t along = lanes > 1 ? instr.slice.strides[tile.layout.vector_axis()] : 1;
  if (along != 1) return out_.line(cat(head, "wl_scatter", masked, "(", at, ", ", along, "L, ", value, tail, ");"));
  const int width = lanes == 1 ? 1 : access_width(instr.slice, tile, !place.left.empty());
  if (kernel_.buffers[instr.slice.buffer].level == Level::kGlobal)
    store_bytes_ = std::max(store_bytes_, width * size_of(tile.dtype));
  out_.line(
      cat(head, instr.streaming ? "wl_stream" : "wl_store", masked, "<", width, ">(", at, ", ", value, tail, ");"));
}

void Printer::print_async(const Instr& instr, const Place& place) {
  const Tile& tile = tile_of(instr.args[0]);
  const int lanes = tile.layout.lanes();
  std::string inside;
  for (const SliceGuard& guard : instr.guards) {
    if (lanes > 1 && guard.strides[tile.layout.vector_axis()] != 0 && !whole_vectors(guard, tile))
      return fail("a guard of a copy holds for all of a vector or none");
    append(&inside, inside.empty() ? "" : " && ", "wl_within(", index(guard.at, guard.strides, place), ", ",
           guard.extent, "L)");
  }
  const bool masked = !place.left.empty();
  const int width =
      lanes == 1 ? 1 : std::gcd(access_width(instr.slice, tile, masked), access_width(instr.into, tile, masked));
  if (width * size_of(tile.dtype) < 4) return fail("a copy has pieces of 4, 8 or 16 bytes");
  load_bytes_ = std::max(load_bytes_, width * size_of(tile.dtype));
  std::string head;
  if (const int64_t mask = replicated(tile.layout); mask != 0) head = cat("if ((place & ", mask, ") == 0) ");
  out_.line(cat(head, "wl_async", inside.empty() ? "" : "_in", masked ? "_n" : "", "<", lanes, ", ", width, ">(",
                address(instr.into, place), ", ", address(instr.slice, place), inside.empty() ? "" : ", ", inside,
                masked ? cat(", ", place.left) : "", ");"));
}

// Combines the values within each thread. Then a butterfly of shuffles combines the values of lanes whose elements
// differ only along the reduced axes, so that each of these lanes has the result.
void Printer::print_team_cross(const Instr& instr) {
  const TileId from = instr.args[0];
  const Layout& layout = tile_of(from).layout;
  const std::string in_thread = spell_horizontal(instr.combine);
  int lanes = 0, lane = 1;  // `lanes`: mask of the lane bits along the reduced axes; `lane`: the next lane bit
  for (const Layout::Base& base : layout.bases) {
    if (base.kind != 'l') continue;
    for (int axis : instr.axes)
      if (layout.part(base, axis) != 0) lanes |= lane;
    lane *= 2;
  }
  for (int64_t i = 0; i < repeats_of(tile_of(from)); ++i) {
    const std::string value = cat("t", from, "_", i), name = cat("t", instr.result, "_", i);
    define(instr.result, name, lanes_of(from) == 1 ? value : cat(in_thread, "(", value, ")"));
    for (int distance = lane; distance > 0; distance /= 2) {
      if ((lanes & distance) == 0) continue;
      out_.line(
          cat(name, " = wl_", name_of(instr.combine), "(", name, ", wl_shuffle_xor<", distance, ">(", name, "));"));
    }
    if (lanes != 0) out_.line(cat("wl_agree<", lanes, ">(", name, ");"));
  }
}

}  // namespace wl
