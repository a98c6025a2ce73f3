#include "compiler/kernel/buffer_checks.h"

#include <algorithm>
#include <set>

#include "compiler/base/records.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

// The first and the last instruction of a body that use a buffer.
struct Lifetime {
  const Instr *first = nullptr, *last = nullptr;
  size_t begin = SIZE_MAX, end = 0;  // the indices of `first` and `last` in the body
};

bool uses(const Instr& instr, BufferId buffer) {
  return instr.slice.buffer == buffer || instr.into.buffer == buffer ||
         std::any_of(instr.body.begin(), instr.body.end(), [&](const Instr& inner) { return uses(inner, buffer); });
}

// Finds the lifetime of a buffer in a body. `at` is the index of the next instruction; instructions inside a section of
// a packed kernel are counted as if they were in the body itself.
void find_lifetime(std::span<const Instr> body, BufferId buffer, size_t& at, Lifetime& lifetime) {
  for (const Instr& instr : body) {
    if (section_of(instr)) {
      find_lifetime(instr.body, buffer, at, lifetime);
      continue;
    }
    if (uses(instr, buffer)) {
      if (lifetime.first == nullptr) lifetime = {&instr, &instr, at, at};
      lifetime.last = &instr;
      lifetime.end = at;
    }
    ++at;
  }
}

Lifetime lifetime_in(std::span<const Instr> body, BufferId buffer) {
  Lifetime lifetime;
  size_t at = 0;
  find_lifetime(body, buffer, at, lifetime);
  return lifetime;
}

bool stores_first(const Instr& instr, BufferId buffer) {
  for (const Instr& inner : instr.body)
    if (uses(inner, buffer)) return stores_first(inner, buffer);
  return info(instr.op).stores() || info(instr.op).is_async_copy();
}

// Whether two buffers ever hold values at the same time. If one loop uses both buffers and nothing else uses them, and
// the loop stores to each buffer before loading from it, neither buffer holds a value from one iteration to the next.
// In this case the function examines the loop's body alone.
bool hold_at_once(std::span<const Instr> body, BufferId a, BufferId b) {
  const Lifetime one = lifetime_in(body, a), other = lifetime_in(body, b);
  if (one.first == nullptr || other.first == nullptr || one.begin > other.end || other.begin > one.end) return false;
  const bool alone = one.first == one.last && other.first == other.last;
  if (!alone || one.first->op != InstrOp::kLoop || !stores_first(*one.first, a) || !stores_first(*one.first, b))
    return true;
  return hold_at_once(one.first->body, a, b);
}

// Checks that each swizzle is one-to-one: the bits that are XORed into other bits must not change themselves, and no
// element may get a place outside the buffer.
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
  for (BufferId a = 0; a < static_cast<BufferId>(kernel.buffers.size()); ++a) {
    const KernelBuffer& buffer = kernel.buffers[a];
    if (buffer.level == Level::kOwn && kernel.wave == 0)
      return absl::InternalError(cat("kernel ", kernel.name, ": ", buffer.name,
                                     " is a block's own, and threads of CPUs have scratch for that"));
    if (buffer.level != Level::kGlobal && buffer.byte_offset % 64 != 0)
      return absl::InternalError(
          cat("scratch ", buffer.name, " starts at byte ", buffer.byte_offset, ", not a multiple of 64"));
    for (BufferId b = 0; b < a; ++b)
      if (kernel.overlap(a, b) && (info(buffer.level).memory == Memory::kWorkspace || hold_at_once(kernel.body, a, b)))
        return absl::InternalError(cat("scratch buffers overlap: ", kernel.buffers[b].name, " and ", buffer.name));
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

// Checks that a cluster barrier lies between each store to a cluster buffer and the loads of it. `stored`: the cluster
// buffers stored to since the last cluster barrier. `loaded`: whether a cluster buffer was loaded from since then.
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
         holds_blocks(kernel.tiles[words.result].layout) &&
         (words.op != InstrOp::kWordsAcross || size_of(words.elements[0]) == 2);
}

std::string last_problem(const Kernel& kernel, const Instr& pass) {
  if (pass.pending == 0) return pass.slice.buffer < 0 ? "" : "a sweep of all blocks has no last one";
  if (pass.pending < 2 || kernel.grid % pass.pending != 0 || kernel.grid / pass.pending > kCounterBytes / 4)
    return cat(kernel.grid, " blocks do not count each other so");
  if (kernel.cluster > 1) return "blocks of a cluster do not count each other";
  if (kernel.wave == 0) return pass.slice.buffer < 0 ? "" : "one thread needs no flag";
  const auto buffers = static_cast<BufferId>(kernel.buffers.size());
  if (pass.slice.buffer < 0 || pass.slice.buffer >= buffers || !pass.slice.strides.empty() ||
      pass.slice.offset != Affine{} || kernel.buffers[pass.slice.buffer].level != Level::kShared ||
      kernel.buffers[pass.slice.buffer].dtype != DType::u32 || kernel.buffers[pass.slice.buffer].shape.empty())
    return "the flag of the threads is the first element of a shared u32 buffer";
  return "";
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
      if (b.level != Level::kGlobal && b.level != Level::kWork && !stores.contains(buffer))
        return absl::InternalError(
            cat("kernel ", kernel.name, ": pass ", i, " loads ", b.name, ", and stores nothing there"));
      if (b.level == Level::kWork && (stores.contains(buffer) || !before.contains(buffer)))
        return absl::InternalError(cat("kernel ", kernel.name, ": pass ", i, " loads ", b.name,
                                       ", which an earlier pass must have stored, alone"));
    }
    before.merge(stores);
  }
  if (kernel.own_at() != 0 && passes.size() == 1)
    return absl::InternalError(cat("kernel ", kernel.name, ": a workspace for one pass"));
  return absl::OkStatus();
}

}  // namespace wl
