#include "compiler/kernel/buffer_checks.h"

#include <algorithm>
#include <set>

#include "compiler/kernel/verify.h"

namespace wl {
namespace {

// From the first to the last use of a buffer, in instructions outside of all loops but sections.
struct Lifetime {
  size_t first = SIZE_MAX, last = 0;
};

void add_uses(const Instr& instr, size_t at, std::vector<Lifetime>& lifetimes) {
  for (const Instr& inner : instr.body) add_uses(inner, at, lifetimes);
  if (instr.slice.buffer < 0 || instr.slice.buffer >= static_cast<BufferId>(lifetimes.size())) return;
  Lifetime& lifetime = lifetimes[instr.slice.buffer];
  lifetime.first = std::min(lifetime.first, at);
  lifetime.last = at;
}

void add_uses(std::span<const Instr> body, size_t& at, std::vector<Lifetime>& lifetimes) {
  for (const Instr& instr : body)
    if (section_of(instr)) {
      add_uses(instr.body, at, lifetimes);
    } else {
      add_uses(instr, at++, lifetimes);
    }
}

// Every element has a place of its own in the buffer, as the bits that are XORed into others stay what they are.
absl::Status check_swizzles(const Kernel& kernel) {
  for (const KernelBuffer& buffer : kernel.buffers) {
    const Swizzle& swizzle = buffer.swizzle;
    if (swizzle == Swizzle()) continue;
    if (buffer.level != Level::kShared || kernel.wave == 0)
      return absl::InternalError(
          cat("kernel ", kernel.name, ": ", buffer.name, " is swizzled, and not shared by lanes"));
    if (swizzle.bits < 1 || swizzle.base < 0 || swizzle.shift < swizzle.bits || swizzle.base + swizzle.shift > 40 ||
        swizzle.column < 0 || swizzle.panels < 0 || swizzle.rows < 0 ||
        swizzle.column + swizzle.panels + swizzle.rows > 40 || (swizzle.panels > 0 && swizzle.column < swizzle.base) ||
        elements(buffer.shape) % swizzle.reach() != 0)
      return absl::InternalError(
          cat("kernel ", kernel.name, ": the swizzle of ", buffer.name, " leaves places without an element"));
  }
  return absl::OkStatus();
}

absl::Status check_places(const Kernel& kernel) {
  std::vector<Lifetime> lifetimes(kernel.buffers.size());
  size_t at = 0;
  add_uses(kernel.body, at, lifetimes);
  for (BufferId a = 0; a < static_cast<BufferId>(kernel.buffers.size()); ++a) {
    const KernelBuffer& buffer = kernel.buffers[a];
    if (buffer.level != Level::kGlobal && buffer.byte_offset % 64 != 0)
      return absl::InternalError(
          cat("scratch ", buffer.name, " starts at byte ", buffer.byte_offset, ", not a multiple of 64"));
    for (BufferId b = 0; b < a; ++b) {
      const bool at_once = lifetimes[a].first <= lifetimes[b].last && lifetimes[b].first <= lifetimes[a].last;
      if (kernel.overlap(a, b) && (buffer.level == Level::kWork || at_once))
        return absl::InternalError(cat("scratch buffers overlap: ", kernel.buffers[b].name, " and ", buffer.name));
    }
  }
  return absl::OkStatus();
}

absl::Status check_clusters(const Kernel& kernel) {
  if (kernel.cluster < 1 || kernel.grid % kernel.cluster != 0)
    return absl::InternalError(
        cat("kernel ", kernel.name, ": ", kernel.grid, " blocks are not clusters of ", kernel.cluster));
  for (const KernelBuffer& b : kernel.buffers)
    if (b.level == Level::kCluster && (b.shape.empty() || b.shape[0] != kernel.cluster))
      return absl::InternalError(cat("kernel ", kernel.name, ": ", b.name, " has no part for each block of a cluster"));
  return absl::OkStatus();
}

// `stored`: cluster buffers stored since the last cluster barrier; `loaded`: whether one was loaded since then.
absl::Status check_cluster_barriers(const Kernel& kernel, std::span<const Instr> body, std::set<BufferId>& stored,
                                    bool& loaded) {
  for (const Instr& instr : body) {
    const InstrInfo& row = info(instr.op);
    if (row.order == Order::kCluster) {
      stored.clear();
      loaded = false;
    }
    if (row.accesses_memory() && kernel.buffers[instr.slice.buffer].level == Level::kCluster) {
      if (row.stores()) {
        stored.insert(instr.slice.buffer);
      } else if (stored.contains(instr.slice.buffer)) {
        return absl::InternalError(
            cat("kernel ", kernel.name, ": no cluster barrier since this buffer was stored: ", print(kernel, instr)));
      } else {
        loaded = true;
      }
    }
    WL_RETURN_IF_ERROR(check_cluster_barriers(kernel, instr.body, stored, loaded));
  }
  return absl::OkStatus();
}

void add_accesses(std::span<const Instr> body, std::set<BufferId>& loads, std::set<BufferId>& stores) {
  for (const Instr& instr : body) {
    const InstrInfo& row = info(instr.op);
    if (row.loads()) loads.insert(instr.slice.buffer);
    if (row.stores()) stores.insert(instr.slice.buffer);
    if (row.is_async_copy()) stores.insert(instr.into.buffer);
    add_accesses(instr.body, loads, stores);
  }
}

}  // namespace

absl::Status check_buffers(const Kernel& kernel) {
  WL_RETURN_IF_ERROR(check_places(kernel));
  WL_RETURN_IF_ERROR(check_swizzles(kernel));
  return check_clusters(kernel);
}

std::string access_problem(const KernelBuffer& buffer, const Slice& slice, const Tile& tile, int64_t each,
                           bool indexed) {
  if (buffer.swizzle == Swizzle()) return "";
  if (indexed) return "an index into a swizzled buffer";
  const int axis = tile.layout.vector_axis();
  const bool vectors = tile.layout.lanes() > 1 && slice.strides[axis] != 0;
  if (vectors && slice.strides[axis] != each) return "vectors in a swizzled buffer are contiguous";
  const int64_t together = each * (vectors ? tile.layout.lanes() : 1);
  bool aligned = together <= int64_t{1} << buffer.swizzle.base && slice.offset.base % together == 0;
  for (const auto& [var, coefficient] : slice.offset.terms) aligned = aligned && coefficient % together == 0;
  for (int a = 0; a < tile.layout.rank(); ++a)
    if (!(vectors && a == axis) && tile.layout.shape[a] > 1) aligned = aligned && slice.strides[a] % together == 0;
  return aligned ? "" : "vectors in a swizzled buffer are aligned, and no longer than what stays together";
}

bool begins_rows(const Affine& offset, int64_t gap, DType element) {
  const int64_t row = 16 / size_of(element);
  bool whole = gap % row == 0 && offset.base % row == 0;
  for (const auto& [var, coefficient] : offset.terms) whole = whole && coefficient % row == 0;
  return whole;
}

bool holds_shared_blocks(const Kernel& kernel, const Instr& words) {
  return kernel.wave == 32 && kernel.buffers[words.slice.buffer].level == Level::kShared &&
         holds_blocks(kernel.tiles[words.result].layout);
}

absl::Status check_passes(const Kernel& kernel) {
  const std::vector<Pass> passes = kernel.passes();
  std::set<BufferId> before;
  for (size_t i = 0; i < passes.size(); ++i) {
    std::set<BufferId> stored;
    bool loaded = false;
    WL_RETURN_IF_ERROR(check_cluster_barriers(kernel, passes[i].body, stored, loaded));
    if (loaded) return absl::InternalError(cat("kernel ", kernel.name, ": blocks leave while others load from them"));
    std::set<BufferId> loads, stores;
    add_accesses(passes[i].body, loads, stores);
    for (BufferId buffer : loads) {
      const KernelBuffer& b = kernel.buffers[buffer];
      if ((b.level == Level::kShared || b.level == Level::kCluster) && !stores.contains(buffer))
        return absl::InternalError(
            cat("kernel ", kernel.name, ": pass ", i, " loads ", b.name, ", and stores nothing there"));
      if (b.level == Level::kWork && (stores.contains(buffer) || !before.contains(buffer)))
        return absl::InternalError(cat("kernel ", kernel.name, ": pass ", i, " loads ", b.name,
                                       ", which an earlier pass must have stored, alone"));
    }
    before.merge(stores);
  }
  if (kernel.work_bytes() != 0 && passes.size() == 1)
    return absl::InternalError(cat("kernel ", kernel.name, ": a workspace for one pass"));
  return absl::OkStatus();
}

}  // namespace wl
