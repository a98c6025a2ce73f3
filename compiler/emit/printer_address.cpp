// Prints the addresses and indices of the elements of a slice.
#include <utility>

#include "compiler/emit/printer.h"

namespace wl {

std::string Printer::index(const Affine& offset, const std::vector<int64_t>& strides, const Place& place) const {
  // On machines with lanes, the constants of all axes are added up and printed as the last term. Compilers then make it
  // part of the instruction that accesses memory.
  Affine start = offset;
  int64_t last = 0;
  if (!place.of_all.empty()) {
    last = std::exchange(start.base, 0);
    for (size_t axis = 0; axis < strides.size(); ++axis) last += place.of_all[axis] * strides[axis];
  }
  std::string out = spell(start);
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    const std::string& element = place.of_thread.empty() ? place.element[axis] : place.of_thread[axis];
    if (strides[axis] == 0 || element == "0") continue;
    append(&out, " + ", element);
    if (strides[axis] != 1) append(&out, "*", strides[axis], "L");
  }
  if (last != 0) append(&out, " + ", last, "L");
  return out;
}

std::string Printer::address(const Slice& slice, const Place& place) const {
  const Swizzle& swizzle = kernel_.buffers[slice.buffer].swizzle;
  if (swizzle == Swizzle()) return cat("p", slice.buffer, " + ", index(slice.offset, slice.strides, place));
  // Multiples of the swizzle's period are added outside of wl_swizzle(). The argument of wl_swizzle() then often
  // depends on the thread alone, so that many accesses have the same argument.
  const int64_t period = swizzle.period();
  Affine inside{slice.offset.base, {}}, whole;
  for (const auto& [var, coefficient] : slice.offset.terms)
    (coefficient % period == 0 ? whole : inside).add(var, coefficient);
  Place here = place;
  for (size_t axis = 0; axis < here.of_all.size(); ++axis)
    inside.base += std::exchange(here.of_all[axis], 0) * slice.strides[axis];
  if (inside.base >= 0) whole.base = inside.base / period * period;
  inside.base -= whole.base;
  std::string within = index(inside, slice.strides, here);
  if (swizzle.panels > 0)
    within = cat("wl_panels<", swizzle.column, ", ", swizzle.panels, ", ", swizzle.rows, ">(", within, ")");
  return cat("p", slice.buffer, whole == Affine() ? "" : cat(" + ", spell(whole)), " + wl_swizzle<", swizzle.bits, ", ",
             swizzle.base, ", ", swizzle.shift, ">(", within, ")");
}

}  // namespace wl
