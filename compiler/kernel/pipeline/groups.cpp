#include "compiler/kernel/pipeline/groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/kernel/verify.h"

namespace wl {
namespace {

bool reads_ring(const Instr& instr, std::span<const Pipeline::Ring> rings) {
  return info(instr.op).loads() && !info(instr.op).is_async_copy() &&
         std::any_of(rings.begin(), rings.end(),
                     [&](const Pipeline::Ring& r) { return r.buffer == instr.slice.buffer; });
}

// Whether an instruction computes a tile from other tiles, without accessing memory.
bool is_pure(const Instr& instr) {
  const InstrInfo& row = info(instr.op);
  return row.result == InstrResult::kDefines && !row.accesses_memory() && row.order == Order::kNoOrder &&
         !goes_through_memory(instr);
}

std::set<TileId> tiles_of(const Groups::Group& group) {
  std::set<TileId> out;
  for (const Instr& read : group.reads) out.insert(read.result);
  return out;
}

bool meet(const Groups::Group& a, const Groups::Group& b) {
  const std::set<TileId> mine = tiles_of(a), theirs = tiles_of(b);
  return std::any_of(mine.begin(), mine.end(), [&](TileId tile) { return theirs.contains(tile); });
}

absl::Status split(const Kernel& kernel, const std::vector<Instr>& body, std::span<const Pipeline::Ring> rings,
                   std::vector<Groups::Group>& groups) {
  std::set<TileId> known;  // tiles that the reads of the current group define
  for (const Instr& instr : body) {
    const bool from_reads =
        is_pure(instr) && !instr.args.empty() &&
        std::all_of(instr.args.begin(), instr.args.end(), [&](TileId t) { return known.contains(t); });
    if (reads_ring(instr, rings) || from_reads) {
      if (groups.empty() || !groups.back().uses.empty()) {
        groups.emplace_back();
        known.clear();
      }
      known.insert(instr.result);
      groups.back().reads.push_back(instr);
      continue;
    }
    if (groups.empty() || instr.op == InstrOp::kLoop || info(instr.op).accesses_memory() ||
        info(instr.op).order != Order::kNoOrder || goes_through_memory(instr) || known.contains(instr.result))
      return invalid("kernel ", kernel.name,
                     ": reads of shared memory do not alternate with their uses: ", print(kernel, instr));
    groups.back().uses.push_back(instr);
  }
  return absl::OkStatus();
}

// Renames the tiles that a group's reads define to new tiles, wherever its reads and its uses name them.
void rename(Rewrite& rewrite, Groups::Group& group, std::map<TileId, TileId>& own) {
  for (TileId tile : tiles_of(group))
    if (!own.contains(tile)) own[tile] = rewrite.like(tile, tile);
  const auto renamed = [&](TileId& tile) {
    if (const auto other = own.find(tile); other != own.end()) tile = other->second;
  };
  for (std::vector<Instr>* part : {&group.reads, &group.uses})
    for (Instr& instr : *part) {
      renamed(instr.result);
      std::for_each(instr.args.begin(), instr.args.end(), renamed);
    }
}

}  // namespace

std::vector<Instr> Groups::reads(Rewrite& rewrite, size_t group, const Affine& turn) const {
  std::vector<Instr> out;
  for (const Instr& instr : groups[group].reads) out.push_back(rewrite.moved(instr, {inner.var, turn}));
  return out;
}

std::vector<Instr> Groups::uses(Rewrite& rewrite, size_t group, const Affine& turn) const {
  std::vector<Instr> out;
  for (const Instr& instr : groups[group].uses) out.push_back(rewrite.moved(instr, {inner.var, turn}));
  return out;
}

absl::StatusOr<Groups> groups_of(const Kernel& kernel, Rewrite& rewrite, const std::vector<Instr>& uses,
                                 std::span<const Pipeline::Ring> rings) {
  Groups out;
  const bool loop = uses.size() == 1 && uses[0].op == InstrOp::kLoop;
  if (loop) {
    out.inner = uses[0];
    out.inner.body.clear();
    if (out.inner.trips.size() != 1 || !out.inner.trips[0].terms.empty() || out.inner.trips[0].base < 1)
      return invalid("kernel ", kernel.name, ": a loop of unknown length uses shared memory");
    out.turns = out.inner.trips[0].base;
  }
  WL_RETURN_IF_ERROR(split(kernel, loop ? uses[0].body : uses, rings, out.groups));
  const size_t n = out.groups.size();
  // The groups are used in a cycle: while the last group is used, the first group is read for the next turn of the
  // loop. If neighbouring groups use the same tiles, they alternate between two sets of tiles, which works only for an
  // even number of groups.
  bool same = false;
  for (size_t g = 0; g < n; ++g) same = same || meet(out.groups[g], out.groups[(g + 1) % n]);
  if (n < 2 || (same && n % 2 != 0))
    return invalid("kernel ", kernel.name, ": ", n, " groups of reads do not take turns with two sets of tiles");
  std::map<TileId, TileId> own;
  for (size_t g = 1; g < n && same; g += 2) rename(rewrite, out.groups[g], own);
  return out;
}

}  // namespace wl
