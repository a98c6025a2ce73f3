#include "compiler/kernel/tile_checks.h"

#include <algorithm>

namespace wl {
namespace {

bool fits_team(const Kernel& kernel, const Layout& layout) {
  const int64_t lanes = kernel.wave == 0 ? 1 : std::min(kernel.wave, kernel.team);
  const int64_t waves = kernel.wave == 0 ? 1 : std::max(1, kernel.team / kernel.wave);
  return layout.count('l') <= lanes && layout.count('u') <= waves;
}

// Without lanes, loops run over the registers of an axis.
bool counts_up(const Layout& layout) {
  std::vector<int64_t> repeat(layout.rank(), 0);
  for (int axis = 0; axis < layout.rank(); ++axis) {
    for (repeat[axis] = 1; repeat[axis] < layout.repeats(axis); repeat[axis] *= 2)
      for (int i = 0; i < layout.rank(); ++i)
        if (layout.first_of(i, repeat) != (i == axis ? repeat[axis] * layout.width(axis) : 0)) return false;
    repeat[axis] = 0;
  }
  return true;
}

}  // namespace

absl::Status check_tiles(const Kernel& kernel) {
  for (size_t i = 0; i < kernel.tiles.size(); ++i) {
    const Layout& layout = kernel.tiles[i].layout;
    const auto fail = [&](const std::string& what) {
      return absl::InternalError(cat("kernel ", kernel.name, ": %", i, " has ", what));
    };
    const size_t rank = layout.shape.size(), bounds = kernel.tiles[i].bound.size();
    if (layout.bits.size() != rank || layout.outer.size() != rank || (bounds != 0 && bounds != rank))
      return fail("no layout and bound for every axis");
    if (const absl::Status status = layout.check(); !status.ok()) return fail(std::string(status.message()));
    if (!fits_team(kernel, layout)) return fail("more lanes than a team");
    if (kernel.wave == 0 && !counts_up(layout)) return fail("registers in an order of its own");
  }
  return absl::OkStatus();
}

}  // namespace wl
