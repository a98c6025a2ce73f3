#include "compiler/kernel/shared_access.h"

#include <algorithm>
#include <optional>

namespace wl {
namespace {

bool writes(const Instr& instr) {
  return info(instr.op).stores() || info(instr.op).is_async_copy();
}

// Whether no two threads of the team hold the same element of a tile with this layout.
bool spread_over_team(const Kernel& kernel, const Layout& layout) {
  int64_t threads = 1;
  for (const Layout::Base& base : layout.bases)
    if ((base.kind == 'l' || base.kind == 'u') && base.vector != 0) threads *= 2;
  return threads == kernel.team;
}

// The ring buffer that a slice accesses: the derived variable that selects its slot, and the number of elements in a
// slot. That number is a multiple of the block that the swizzle permutes, so the swizzle moves no element to another
// slot.
struct Ring {
  const Var* var = nullptr;
  int64_t slot = 0;
};
Ring ring_of(const Kernel& kernel, const Slice& slice) {
  const int64_t size = elements(kernel.buffers[slice.buffer].shape);
  const int64_t reach = kernel.buffers[slice.buffer].swizzle.reach();
  for (const auto& [id, coefficient] : slice.offset.terms) {
    const Var& var = kernel.vars[id];
    if (var.kind == Var::Kind::kDerived && var.div == 1 && var.of.size() == 1 && var.mod > 1 &&
        coefficient * var.mod == size && coefficient % reach == 0)
      return {&var, coefficient};
  }
  return {};
}

int64_t find_slots(const Kernel& kernel, const std::vector<Instr>& body, BufferId buffer) {
  for (const Instr& instr : body) {
    if (const int64_t size = find_slots(kernel, instr.body, buffer); size != 0) return size;
    if (!accesses_shared(kernel, instr) || shared_slice(instr).buffer != buffer) continue;
    if (const Ring ring = ring_of(kernel, shared_slice(instr)); ring.var != nullptr) return ring.slot;
  }
  return 0;
}

// The number of elements per slot if the buffer is a ring; otherwise 0.
int64_t slot_size(const Kernel& kernel, BufferId buffer) {
  const int64_t size = elements(kernel.buffers[buffer].shape);
  const bool may = std::any_of(kernel.vars.begin(), kernel.vars.end(), [size](const Var& var) {
    return var.kind == Var::Kind::kDerived && var.div == 1 && var.of.size() == 1 && var.mod > 1 && size % var.mod == 0;
  });
  return may ? find_slots(kernel, kernel.body, buffer) : 0;
}

// The number of the slot that an access uses; nullopt if it is unknown. It is known if it is constant, or if the
// iterations of all loops that it depends on are known.
std::optional<int64_t> slot_number(const Kernel& kernel, const SharedAccess& met, int64_t size) {
  const Ring ring = ring_of(kernel, shared_slice(met.instr));
  if (ring.var == nullptr) return shared_slice(met.instr).offset.base / size;
  int64_t at = ring.var->of[0].base;
  for (const auto& [var, coefficient] : ring.var->of[0].terms) {
    const auto iteration = met.iterations.find(var);
    if (iteration == met.iterations.end()) return std::nullopt;
    at += coefficient * iteration->second;
  }
  return at % ring.var->mod;
}

// Whether two accesses to one buffer are certainly in different slots of a ring: both slots are known, or both depend
// on the same loops and the known distance between their iterations is no multiple of the ring's length.
bool other_slots(const Kernel& kernel, const SharedAccess& a, const SharedAccess& b) {
  const Slice &first = shared_slice(a.instr), &second = shared_slice(b.instr);
  const Ring mine = ring_of(kernel, first), theirs = ring_of(kernel, second);
  if (mine.var == nullptr || theirs.var == nullptr) {
    const int64_t size = slot_size(kernel, first.buffer);
    if (size == 0) return false;
    const auto one = slot_number(kernel, a, size), other = slot_number(kernel, b, size);
    return one && other && *one != *other;
  }
  if (mine.slot != theirs.slot) return false;
  const Affine &from = mine.var->of[0], &to = theirs.var->of[0];
  if (from.terms != to.terms) return false;
  int64_t apart = to.base - from.base;
  for (const auto& [var, coefficient] : from.terms) {
    const auto before = a.iterations.find(var), now = b.iterations.find(var);
    if (before == a.iterations.end() || now == b.iterations.end()) return false;
    apart += coefficient * (now->second - before->second);
  }
  return apart % mine.var->mod != 0;
}

// Returns the slice with its offset counted from the start of the ring slot that it accesses.
Slice within_slot(const Kernel& kernel, Slice slice, int64_t size) {
  const Ring ring = ring_of(kernel, slice);
  if (ring.var == nullptr) {
    if (size > 0) slice.offset.base %= size;
    return slice;
  }
  std::erase_if(slice.offset.terms, [&](const auto& term) { return &kernel.vars[term.first] == ring.var; });
  return slice;
}

}  // namespace

const Slice& shared_slice(const Instr& instr) {
  return info(instr.op).is_async_copy() ? instr.into : instr.slice;
}

bool accesses_shared(const Kernel& kernel, const Instr& instr) {
  return info(instr.op).accesses_memory() && info(kernel.buffers[shared_slice(instr).buffer].level).of_block;
}

bool accesses_own(const Kernel& kernel, const Instr& a, const Instr& b) {
  const Layout &mine = kernel.tiles[space_tile(a)].layout, &theirs = kernel.tiles[space_tile(b)].layout;
  if (!(mine == theirs) || !spread_over_team(kernel, mine)) return false;
  if (shared_slice(a) == shared_slice(b)) return true;
  const int64_t size = slot_size(kernel, shared_slice(a).buffer);
  return within_slot(kernel, shared_slice(a), size) == within_slot(kernel, shared_slice(b), size);
}

bool hazard(const Kernel& kernel, const SharedAccess& earlier, const SharedAccess& later) {
  const Instr &a = earlier.instr, &b = later.instr;
  const BufferId first = shared_slice(a).buffer, second = shared_slice(b).buffer;
  if (!writes(a) && !writes(b)) return false;
  if (kernel.overlap(first, second)) return true;
  if (first != second) return false;
  if (info(a.op).is_indexed() || info(b.op).is_indexed()) return true;
  // Copier threads learn only by phases that a copy is done, even if it is their own. Two accesses by threads of teams
  // need no barrier if every thread touches only elements that no other thread touches.
  const bool may_own = earlier.role == Role::kTeams && later.role == Role::kTeams;
  return !other_slots(kernel, earlier, later) && !(may_own && accesses_own(kernel, a, b));
}

bool uses_unfinished(const Kernel& kernel, const SharedAccess& copy, const SharedAccess& access) {
  const BufferId to = shared_slice(copy.instr).buffer, touched = shared_slice(access.instr).buffer;
  return kernel.overlap(to, touched) || (to == touched && !other_slots(kernel, copy, access));
}

}  // namespace wl
