#include "compiler/kernel/layout.h"

#include <algorithm>
#include <bit>

#include "compiler/base/log2.h"

namespace wl {
namespace {

// The index of an axis's lowest bit in a vector that concatenates the coordinate bits of all axes.
int shift_of(const Layout& layout, int axis) {
  int shift = 0;
  for (int i = 0; i < axis; ++i) shift += layout.bits[i];
  return shift;
}

uint64_t axis_part(const Layout& layout, int axis, uint64_t vector) {
  return vector >> shift_of(layout, axis) & ((uint64_t{1} << layout.bits[axis]) - 1);
}

// The axis whose repeats a register bit counts; -1 if the bit moves along no axis (replication).
int home_of(const Layout& layout, const Layout::Base& base) {
  for (int axis = 0; axis < layout.rank(); ++axis)
    if (layout.part(base, axis) != 0) return axis;
  return -1;
}

// Drops trailing lane bits and trailing wave bits that move along no axis. This changes nothing, because a bit that is
// missing also means replication.
void trim_places(Layout& layout) {
  for (const char kind : {'l', 'u'})
    for (size_t i = layout.bases.size(); i-- > 0;) {
      if (layout.bases[i].kind != kind) continue;
      if (layout.bases[i].vector != 0) break;
      layout.bases.erase(layout.bases.begin() + static_cast<int64_t>(i));
    }
}

}  // namespace

uint64_t Layout::part(const Base& base, int axis) const {
  return axis_part(*this, axis, base.vector);
}

int64_t Layout::count(char kind) const {
  int64_t n = 1;
  for (const Base& base : bases)
    if (base.kind == kind) n *= 2;
  for (const Outer& o : outer)
    if (o.kind == kind) n *= o.count;
  return n;
}

int Layout::vector_axis() const {
  for (const Base& base : bases) {
    if (base.kind != 'v') continue;
    for (int axis = 0; axis < rank(); ++axis)
      if (part(base, axis) != 0) return axis;
  }
  return -1;
}

int Layout::lanes() const {
  return static_cast<int>(count('v'));
}

int64_t Layout::width(int axis) const {
  int64_t n = 1;
  for (const Base& base : bases)
    if (base.kind != 'r' && part(base, axis) != 0) n *= 2;
  return n;
}

int64_t Layout::repeats(int axis) const {
  int64_t n = outer[axis].kind == 'r' ? outer[axis].count : 1;
  for (const Base& base : bases)
    if (base.kind == 'r' && home_of(*this, base) == axis) n *= 2;
  return n;
}

int64_t Layout::first_of(int axis, const std::vector<int64_t>& repeat) const {
  uint64_t at = 0;
  std::vector<int64_t> rest = repeat;
  for (const Base& base : bases) {
    const int home = base.kind == 'r' ? home_of(*this, base) : -1;
    if (home < 0) continue;
    if (rest[home] % 2 != 0) at ^= part(base, axis);
    rest[home] /= 2;
  }
  return static_cast<int64_t>(at) + (rest[axis] << bits[axis]);
}

int64_t Layout::last_of(int axis, const std::vector<int64_t>& repeat) const {
  auto most = static_cast<uint64_t>(first_of(axis, repeat));
  for (const Base& base : bases)
    if (base.kind != 'r') most |= part(base, axis);
  return static_cast<int64_t>(most);
}

absl::Status Layout::check() const {
  int total = 0;
  for (int axis = 0; axis < rank(); ++axis) {
    if (outer[axis].kind != 'r') return invalid("the outermost repeats of a layout must be registers");
    total += bits[axis];
  }
  std::vector<uint64_t> reduced;  // the bases in echelon form: none has the highest set bit of an earlier base
  for (const Base& base : bases) {
    uint64_t rest = base.vector;
    for (uint64_t known : reduced) rest = std::min(rest, rest ^ known);
    if (rest != 0) {
      reduced.push_back(rest);
    } else if (base.vector != 0) {
      return invalid("the position bits of a layout must be independent");
    }
  }
  if (static_cast<int>(reduced.size()) != total)
    return invalid("a layout must place every coordinate bit; one has no position");
  for (int axis = 0; axis < rank(); ++axis)
    if (outer[axis].count << bits[axis] < shape[axis])
      return invalid("a layout must place every element; some along axis ", axis, " have no position");
  const int axis = vector_axis();
  uint64_t next = 1;
  for (const Base& base : bases) {
    if (base.kind != 'v') continue;
    if (axis < 0 || part(base, axis) != next || std::popcount(base.vector) != 1)
      return invalid("the elements of a vector must be neighbours along one axis");
    next *= 2;
  }
  for (const Base& base : bases)
    if (base.kind != 'v' && axis >= 0 && part(base, axis) % next != 0)
      return invalid("vectors must start at multiples of their length");
  return absl::OkStatus();
}

Layout dealt_layout(std::vector<int64_t> shape, const std::vector<Deal>& deals, int team, int wave) {
  Layout out;
  out.shape = std::move(shape);
  WL_CHECK(deals.size() == out.shape.size(), deals.size(), " deals for ", out.shape.size(), " axes");
  std::vector<Layout::Base> inside;  // bases of the kinds v and r, which count elements within a thread
  std::vector<uint64_t> place(std::countr_zero(static_cast<unsigned>(team)), 0);
  int shift = 0;
  for (int axis = 0; axis < out.rank(); ++axis) {
    const Deal& deal = deals[axis];
    const int each = std::countr_zero(static_cast<uint64_t>(deal.each)), bits = static_cast<int>(deal.bits.size());
    for (int bit = 0; bit < each; ++bit) inside.push_back({deal.kind, uint64_t{1} << (shift + bit)});
    for (int bit = 0; bit < bits; ++bit) place.at(deal.bits[bit]) = uint64_t{1} << (shift + each + bit);
    out.bits.push_back(each + bits);
    const int64_t width = int64_t{1} << (each + bits);
    out.outer.push_back({'r', (out.shape[axis] + width - 1) / width});
    shift += each + bits;
  }
  const auto add = [&](char kind) {
    for (const Layout::Base& base : inside)
      if (base.kind == kind) out.bases.push_back(base);
  };
  const size_t lanes = std::countr_zero(static_cast<unsigned>(std::min(team, wave)));
  const auto add_place = [&](char kind, size_t from, size_t to) {
    while (to > from && place[to - 1] == 0) --to;  // a missing bit means replication, as a zero bit does
    for (; from < to; ++from) out.bases.push_back({kind, place[from]});
  };
  add('v');
  add_place('l', 0, lanes);
  add_place('u', lanes, place.size());
  add('r');
  return out;
}

Layout projected(const Layout& layout, const std::vector<bool>& keeps) {
  Layout out;
  uint64_t kept = 0;
  for (int axis = 0, low = 0; axis < layout.rank(); low += layout.bits[axis++]) {
    out.shape.push_back(keeps[axis] ? layout.shape[axis] : 1);
    out.bits.push_back(keeps[axis] ? layout.bits[axis] : 0);
    out.outer.push_back(keeps[axis] ? layout.outer[axis] : Layout::Outer());
    if (keeps[axis]) kept |= ((uint64_t{1} << layout.bits[axis]) - 1) << low;
  }
  for (const Layout::Base& base : layout.bases) {
    uint64_t vector = 0;
    int to = 0;
    for (int axis = 0; axis < layout.rank(); ++axis) {
      if (!keeps[axis]) continue;
      vector |= axis_part(layout, axis, base.vector) << to;
      to += layout.bits[axis];
    }
    if (vector != 0 || base.kind == 'l' || base.kind == 'u') out.bases.push_back({base.kind, vector});
  }
  trim_places(out);
  return out;
}

Layout split_axis(const Layout& layout, int axis, int64_t width) {
  const int inner = std::min(log2_floor(width), layout.bits[axis]), all = layout.bits[axis];
  const int64_t repeats = width >> inner;  // number of outermost repeats that `width` neighbours extend over
  WL_CHECK(std::has_single_bit(static_cast<uint64_t>(width)) && layout.shape[axis] % width == 0 &&
               (repeats == 1 || layout.outer[axis].count % repeats == 0),
           "an axis of ", layout.shape[axis], " in parts of ", width);
  Layout out = layout;
  out.shape[axis] = width;
  out.shape.insert(out.shape.begin() + axis, layout.shape[axis] / width);
  out.bits[axis] = inner;
  out.bits.insert(out.bits.begin() + axis, all - inner);
  out.outer[axis].count = repeats;
  out.outer.insert(out.outer.begin() + axis, {layout.outer[axis].kind, layout.outer[axis].count / repeats});
  // The new first axis takes the high bits of the split axis, so these bits now come before the low ones.
  const int low = shift_of(layout, axis);
  const uint64_t mask = ((uint64_t{1} << all) - 1) << low;
  for (Layout::Base& base : out.bases) {
    const uint64_t part = (base.vector & mask) >> low, high = part >> inner, rest = part & ((uint64_t{1} << inner) - 1);
    base.vector = (base.vector & ~mask) | high << low | rest << (low + all - inner);
  }
  return out;
}

Layout repeated(const Layout& fragment, const std::array<Repeats, 2>& axes) {
  WL_CHECK(fragment.rank() == 2, "a fragment with ", fragment.rank(), " axes");
  Layout out;
  int waves = 0;
  for (int axis = 0; axis < 2; ++axis) {
    const int more = axes[axis].registers + static_cast<int>(axes[axis].waves.size());
    out.shape.push_back(fragment.shape[axis] << more);
    out.bits.push_back(fragment.bits[axis] + more);
    out.outer.emplace_back();
    for (const int wave : axes[axis].waves) waves = std::max(waves, wave + 1);
  }
  const auto moved = [&](char kind) {
    std::vector<uint64_t> vectors;
    for (const Layout::Base& base : fragment.bases)
      if (base.kind == kind)
        vectors.push_back(axis_part(fragment, 0, base.vector) | axis_part(fragment, 1, base.vector) << out.bits[0]);
    return vectors;
  };
  const auto add = [&](char kind) {
    for (const uint64_t vector : moved(kind)) out.bases.push_back({kind, vector});
  };
  add('v');
  add('l');
  const std::vector<uint64_t> own = moved('u');
  std::vector<uint64_t> units(std::max<size_t>(waves, own.size()), 0);
  std::copy(own.begin(), own.end(), units.begin());
  for (int axis = 0, low = 0; axis < 2; low += out.bits[axis++])
    for (size_t i = 0; i < axes[axis].waves.size(); ++i)
      units[axes[axis].waves[i]] = uint64_t{1} << (low + fragment.bits[axis] + axes[axis].registers + i);
  for (const uint64_t unit : units) out.bases.push_back({'u', unit});
  add('r');
  for (int axis = 0, low = 0; axis < 2; low += out.bits[axis++])
    for (int i = 0; i < axes[axis].registers; ++i)
      out.bases.push_back({'r', uint64_t{1} << (low + fragment.bits[axis] + i)});
  return out;
}

const Fragments& fragments_of(MatrixOp op) {
  static const auto* const kAll = [] {
    auto* const all = new std::vector<Fragments>;
    for (const MatrixInfo& row : matrices())
      all->push_back({parse_layout(row.a).value(), parse_layout(row.b).value(), parse_layout(row.c).value()});
    return all;
  }();
  return (*kAll)[static_cast<size_t>(op)];
}

bool holds_blocks(const Layout& words) {
  if (words.rank() != 2 || words.bits[0] < 3 || words.bits[1] < 2) return false;
  std::vector<uint64_t> lanes;
  for (const Layout::Base& base : words.bases)
    if (base.kind == 'l') lanes.push_back(base.vector);
  const uint64_t word = uint64_t{1} << words.bits[0];
  return lanes == std::vector<uint64_t>{word, 2 * word, 1, 2, 4};
}

Layout cut_to(Layout layout, std::vector<int64_t> shape) {
  layout.shape = std::move(shape);
  return layout;
}

std::optional<Fragments> tiles_of(MatrixOp op, const Layout& sums, int64_t words) {
  const Fragments& fragments = fragments_of(op);
  const bool may_cut = fragments.c.count('l') == 1;
  const int64_t step = fragments.a.shape[1];
  if (sums.rank() != 2 || words < (may_cut ? 1 : step) || (may_cut && words > step)) return std::nullopt;
  std::array<Repeats, 2> axes;
  for (int axis = 0; axis < 2; ++axis)
    axes[axis].registers = log2_floor(sums.repeats(axis) / fragments.c.repeats(axis));
  int wave = 0;
  const int own = log2_floor(fragments.c.count('u'));
  for (const Layout::Base& base : sums.bases)
    if (base.kind == 'u' && wave++ >= own) axes[axis_part(sums, 0, base.vector) != 0 ? 0 : 1].waves.push_back(wave - 1);
  if (axes[0].registers < 0 || axes[1].registers < 0) return std::nullopt;
  Layout whole = repeated(fragments.c, axes);
  if (may_cut) {
    for (int axis = 0; axis < 2; ++axis)
      // The sums may end inside the last fragment along an axis, but may not leave out a whole fragment.
      if (whole.shape[axis] - sums.shape[axis] >= fragments.c.shape[axis]) return std::nullopt;
    whole = cut_to(whole, sums.shape);
  }
  if (!(whole == sums)) return std::nullopt;
  const Repeats along_k{may_cut ? 0 : log2_floor(words / step)};
  Fragments tiles = {repeated(fragments.a, {axes[0], along_k}), repeated(fragments.b, {axes[1], along_k}), sums};
  if (may_cut) {
    tiles.a = cut_to(tiles.a, {sums.shape[0], words});
    tiles.b = cut_to(tiles.b, {sums.shape[1], words});
  }
  return tiles;
}

Layout team_layout(std::vector<int64_t> shape, int axis, int vector, int team, int wave) {
  WL_CHECK(std::has_single_bit(static_cast<unsigned>(team)) && std::has_single_bit(static_cast<unsigned>(vector)),
           "team ", team, " vector ", vector);
  Layout out = cpu_layout(std::move(shape), axis, vector * team);
  const int lane_bits = std::countr_zero(static_cast<unsigned>(std::min(team, wave)));
  const int vector_bits = std::countr_zero(static_cast<unsigned>(vector));
  for (int bit = 0; bit < static_cast<int>(out.bases.size()); ++bit)
    out.bases[bit].kind = bit < vector_bits ? 'v' : bit < vector_bits + lane_bits ? 'l' : 'u';
  return out;
}

Layout cpu_layout(std::vector<int64_t> shape, int vector_axis, int lanes) {
  WL_CHECK(std::has_single_bit(static_cast<unsigned>(lanes)), "lanes ", lanes);
  Layout out;
  out.shape = std::move(shape);
  int shift = 0;
  for (int axis = 0; axis < out.rank(); ++axis) {
    const int width = axis == vector_axis ? lanes : 1;
    const int bits = std::countr_zero(static_cast<unsigned>(width));
    for (int bit = 0; bit < bits; ++bit) out.bases.push_back({'v', uint64_t{1} << (shift + bit)});
    out.bits.push_back(bits);
    out.outer.push_back({'r', (out.shape[axis] + width - 1) / width});
    shift += bits;
  }
  return out;
}

}  // namespace wl
