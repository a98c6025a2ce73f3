#include "compiler/kernel/kernel.h"

#include <algorithm>

namespace wl {
namespace {

constexpr LevelInfo kLevels[] = {
    {"", "", Memory::kArguments, false},                 // kGlobal
    {"scratch", "WL_SHARED", Memory::kScratch, true},    // kShared
    {"work", "WL_WORK", Memory::kWorkspace, false},      // kWork
    {"cluster", "WL_CLUSTER", Memory::kScratch, false},  // kCluster
    {"own", "WL_OWN", Memory::kOwnPart, true},           // kOwn
};

// Returns the end of the last buffer in a memory, in bytes.
int64_t end_of(const Kernel& kernel, Memory memory) {
  int64_t end = 0;
  for (const KernelBuffer& buffer : kernel.buffers)
    if (info(buffer.level).memory == memory) end = std::max(end, buffer.byte_offset + kernel.bytes_of(buffer));
  return (end + 63) / 64 * 64;
}

}  // namespace

const LevelInfo& info(Level level) {
  return kLevels[static_cast<size_t>(level)];
}

int64_t Swizzle::place_of(int64_t offset) const {
  if (panels > 0) {
    const auto digit = [&](int from, int count) { return (offset >> from) & ((int64_t{1} << count) - 1); };
    const int64_t whole = offset >> (column + panels + rows) << (column + panels + rows);
    offset =
        whole | digit(0, column) | digit(column + panels, rows) << column | digit(column, panels) << (column + rows);
  }
  return offset ^ ((offset >> shift) & (((int64_t{1} << bits) - 1) << base));
}

int64_t Swizzle::reach() const {
  return int64_t{1} << std::max(bits == 0 ? 0 : base + bits, panels == 0 ? 0 : column + panels + rows);
}

int64_t Swizzle::period() const {
  return int64_t{1} << std::max(bits == 0 ? 0 : base + bits + shift, panels == 0 ? 0 : column + panels + rows);
}
Affine& Affine::add(VarId var, int64_t coefficient) {
  if (coefficient == 0) return *this;
  for (auto& [v, c] : terms)
    if (v == var) {
      c += coefficient;
      return *this;
    }
  terms.emplace_back(var, coefficient);
  return *this;
}

TileId space_tile(const Instr& instr) {
  switch (info(instr.op).space) {
    case InstrSpace::kOfResult:
      return instr.result;
    case InstrSpace::kOfArgument:
      return instr.args[0];
    case InstrSpace::kNoSpace:
      return -1;
  }
  return -1;
}

bool goes_through_memory(const Instr& instr) {
  return info(instr.op).has(Operand::through) && instr.slice.buffer >= 0;
}

std::array<Instr, 2> through_memory(const Instr& convert) {
  Instr store, load;
  store.op = InstrOp::kStore;
  store.args = convert.args;
  load.op = InstrOp::kLoad;
  load.result = convert.result;
  store.slice = load.slice = convert.slice;
  return {std::move(store), std::move(load)};
}

int64_t Kernel::bytes_of(const KernelBuffer& buffer) const {
  int64_t bytes = size_of(buffer.dtype);
  for (int64_t extent : buffer.shape) bytes *= extent;
  return buffer.level == Level::kCluster ? bytes / cluster : bytes;
}

int64_t Kernel::scratch_bytes() const {
  return end_of(*this, Memory::kScratch);
}

int64_t Kernel::own_bytes() const {
  return end_of(*this, Memory::kOwnPart);
}

int64_t Kernel::own_at() const {
  return end_of(*this, Memory::kWorkspace);
}

int64_t Kernel::work_bytes() const {
  return own_at() + grid * own_bytes();
}

std::vector<Pass> Kernel::passes() const {
  std::vector<Pass> out;
  size_t begin = 0;
  Pass pass;
  for (size_t i = 0; i <= body.size(); ++i) {
    if (i < body.size() && body[i].op != InstrOp::kPass) continue;
    pass.body = std::span<const Instr>(body).subspan(begin, i - begin);
    out.push_back(pass);
    begin = i + 1;
    if (i < body.size()) pass = {{}, body[i].pending, body[i].slice.buffer};
  }
  return out;
}

int Kernel::sweeps() const {
  const std::vector<Pass> all = passes();
  return static_cast<int>(std::count_if(all.begin(), all.end(), [](const Pass& pass) { return pass.last == 0; }));
}

std::vector<Affine> section_trips(int64_t from, int64_t to) {
  return {Affine{1, {}}, Affine{1 - from, {{0, 1}}}, Affine{to, {{0, -1}}}};
}

std::optional<Section> section_of(const Instr& instr) {
  if (instr.op != InstrOp::kLoop || instr.trips.size() != 3) return std::nullopt;
  const Section section{1 - instr.trips[1].base, instr.trips[2].base};
  if (instr.trips != section_trips(section.from, section.to)) return std::nullopt;
  return section;
}

bool has_copiers(const Instr& loop) {
  return loop.role == Role::kCopiers || std::any_of(loop.body.begin(), loop.body.end(), has_copiers);
}

bool multiplies_and_adds(const Instr& instr) {
  return instr.op == InstrOp::kDot || instr.op == InstrOp::kMma ||
         (instr.op == InstrOp::kMap && !instr.expr.empty() && instr.expr.back().op == Op::fma &&
          instr.expr.back().kind == ExprNode::Kind::kOp && !instr.args.empty() && instr.args.back() == instr.result);
}

bool is_unrolled(const Instr& loop) {
  if (loop.trips.size() != 1 || !loop.trips[0].terms.empty()) return false;
  if (loop.trips[0].base < 2 || loop.trips[0].base > kMostUnrolled) return false;
  const auto is_loop = [](const Instr& instr) { return instr.op == InstrOp::kLoop; };
  return std::none_of(loop.body.begin(), loop.body.end(), is_loop) &&
         std::any_of(loop.body.begin(), loop.body.end(), multiplies_and_adds);
}

bool Kernel::is_packed() const {
  int64_t free = 0;
  for (const Instr& instr : body) {
    const std::optional<Section> section = section_of(instr);
    if (!section || section->from < free) return false;
    free = std::max(free, section->to);
  }
  return !body.empty();
}

bool Kernel::overlap(BufferId a, BufferId b) const {
  const KernelBuffer &mine = buffers[a], &theirs = buffers[b];
  return a != b && info(mine.level).memory == info(theirs.level).memory && mine.level != Level::kGlobal &&
         mine.byte_offset < theirs.byte_offset + bytes_of(theirs) &&
         theirs.byte_offset < mine.byte_offset + bytes_of(mine);
}

int Kernel::vector_lanes(std::span<const Instr> part) const {
  int most = 1;
  for (const Instr& instr : part) {
    if (instr.result >= 0) most = std::max(most, tiles[instr.result].layout.lanes());
    if (info(instr.op).is_async_copy()) most = std::max(most, tiles[instr.args[0]].layout.lanes());
    most = std::max(most, vector_lanes(instr.body));
  }
  return most;
}

int Kernel::vector_lanes() const {
  int most = 1;
  for (const Tile& tile : tiles) most = std::max(most, tile.layout.lanes());
  return most;
}

}  // namespace wl
