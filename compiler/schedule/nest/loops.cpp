#include "compiler/schedule/nest/loops.h"

#include <algorithm>

#include "compiler/plan/reads.h"
#include "compiler/schedule/launch.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/walk.h"

namespace wl {

LoopLowering::LoopLowering(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
    : group_(group),
      domain_(domain),
      schedule_(schedule),
      machine_(machine),
      out_(group, machine),
      phases_(phases_of(group, domain, schedule[kKeep] == kKeepAll,
                        schedule[kOnline] != 0 || schedule[kOnlineChunk] != 0)) {
  Kernel& kernel = out_.kernel();
  set_launch(out_.kernel(), std::string(name_of(domain.cls)), schedule, machine);
  kernel.unroll = static_cast<int>(schedule[kUnroll]);
  kernel.accumulators = static_cast<int>(std::min(schedule[kAccumulators], schedule[kUnroll]));
  if (domain.vector >= 0) {
    vector_extent_ = domain.atoms[domain.vector].extent;
    vector_reduced_ = domain.atoms[domain.vector].reduced;
    lanes_ = vector_extent_ != 1 ? machine.target->lanes : 1;
  }
  team_ = machine.target->is_gpu();
  if (team_) {
    vector_ = vector_extent_ != 1 ? static_cast<int>(schedule[kVector]) : 1;
    lanes_ = vector_extent_ != 1 ? vector_ * kernel.team : 1;
  }
  vector_tile_ = row_extent_ = vector_extent_;
  if (!vector_reduced_) {
    const int64_t tile =
        domain.cls == LoopClass::kColumns || team_ ? schedule[kTileVectors] * lanes_ : schedule[kTileElements];
    vector_tile_ = std::max<int64_t>(1, std::min(vector_extent_, tile));
  }
  vector_tiles_ = vector_reduced_ ? 1 : (vector_extent_ + vector_tile_ - 1) / std::max<int64_t>(1, vector_tile_);
  height_ = schedule[kRegisterRows];
  if (height_ > 1) tall_ = tall_atom(domain);
  band_ = schedule[kCacheBlockRows];
  if (band_ > 0) banded_ = banded_atom(group, domain, machine);
  rows_ = vector_tiles_;
  for (AtomId a : domain.parallel)
    if (a != domain.vector) {
      row_atoms_.push_back(a);
      rows_ *= steps_of(a);
    }
  for (AtomId a : domain.reduced)
    if (a != domain.vector) outer_reduced_.push_back(a);
  parts_ = schedule[kReductionBlocks];
  cluster_ = parts_ > 1 && schedule[kCluster] != 0;
  last_ = parts_ > 1 && schedule[kLastBlockCombines] != 0;
  pipelined_ = schedule[kPipeline] != 0 && phases_.count > 1 && vector_reduced_;
}

bool LoopLowering::wide(const std::vector<AtomId>& varies) const {
  return lanes_ > 1 && std::find(varies.begin(), varies.end(), domain_.vector) != varies.end();
}

bool LoopLowering::tall(const std::vector<AtomId>& varies) const {
  return tall_ >= 0 && holds(varies, tall_);
}

// How many rows there are along an atom.
int64_t LoopLowering::steps_of(AtomId atom) const {
  return domain_.atoms[atom].extent / (atom == tall_ ? height_ : 1);
}

// Inside the phase's loops; everything else is computed once per row.
bool LoopLowering::inner(const std::vector<AtomId>& varies) const {
  for (AtomId a : varies) {
    if (domain_.atoms[a].reduced) return true;
    if (a == domain_.vector && domain_.cls == LoopClass::kMap) return true;
  }
  return false;
}

std::vector<AtomId> LoopLowering::atoms_of(const Access& access) const {
  std::vector<AtomId> out;
  for (AtomId a = 0; a < static_cast<AtomId>(domain_.atoms.size()); ++a)
    if (access.moves_along(a)) out.push_back(a);
  return out;
}

TileId LoopLowering::make_tile(DType dtype, bool is_wide, bool is_tall) {
  if (team_) {
    if (is_wide) return out_.team_tile(dtype, {1, vector_tile_}, 1, vector_, bound_);
    return out_.team_tile(dtype, {1, 1}, -1, 1);
  }
  const int64_t height = is_tall ? height_ : 1;
  if (!is_wide) return out_.tile(dtype, {height, 1}, -1, 1);
  return out_.tile(dtype, {height, vector_tile_}, 1, lanes_, bound_);
}

TileId LoopLowering::spread(TileId narrow, std::vector<Instr>& into, bool is_tall) {
  const DType dtype = out_.kernel().tiles[narrow].dtype;
  const TileId result = make_tile(dtype, true, is_tall);
  into.push_back(copy_instr(result, narrow, dtype));
  return result;
}

std::vector<Instr>& LoopLowering::code_for(const std::vector<AtomId>& varies, Code& code) const {
  if (!inner(varies)) return code.pre;
  return wide(varies) || lanes_ == 1 ? code.inner : code.narrow;
}

// Row i is the i % band-th of a band, at a turn of the loop around bands, of a band within the outer loops.
LoopLowering::RowPlace LoopLowering::banded_place(const Affine& row, RowPlace place) {
  const int64_t within = rows_within(domain_, banded_, vector_tile_), turns = domain_.atoms[banded_].extent;
  Affine inner = affine(out_.derived("in_band", {row}, 1, band_));
  inner = sum(std::move(inner), affine(out_.derived("band", {row}, turns * band_, within / band_)), band_);
  if (vector_tiles_ > 1) place.vector_base = affine(out_.derived("tile", {inner}, 1, vector_tiles_), vector_tile_);
  int64_t inside = vector_tiles_;
  bool outside = false;
  for (size_t i = row_atoms_.size(); i-- > 0;) {
    const AtomId a = row_atoms_[i];
    const int64_t extent = domain_.atoms[a].extent;
    if (a == banded_) {
      place.atom[a] = affine(out_.derived(domain_.atoms[a].name, {row}, band_, extent));
      inside = within * extent;
      outside = true;
      continue;
    }
    place.atom[a] = affine(out_.derived(domain_.atoms[a].name, {outside ? row : inner}, inside, i == 0 ? 0 : extent));
    inside *= extent;
  }
  place.row = row;
  return place;
}

LoopLowering::RowPlace LoopLowering::place_of(Affine row, std::vector<Affine> clamp) {
  RowPlace place;
  place.atom.assign(domain_.atoms.size(), fixed(0));
  clamp.insert(clamp.begin(), row);
  const bool direct = clamp.size() == 1;
  // Of a row beyond the last, whose team stores nothing, only the outermost index can lie outside.
  const std::vector<Affine> within = team_ ? std::vector<Affine>{row} : clamp;
  int64_t inside = vector_reduced_ ? 1 : vector_tiles_;
  if (banded_ >= 0) return banded_place(row, std::move(place));
  if (!vector_reduced_ && vector_tiles_ > 1) {
    const bool only = row_atoms_.empty();
    place.vector_base =
        direct && only ? row : affine(out_.derived("tile", only ? clamp : within, 1, only ? 0 : vector_tiles_));
    for (auto& [var, coefficient] : place.vector_base.terms) coefficient *= vector_tile_;
    place.vector_base.base *= vector_tile_;
  }
  for (size_t i = row_atoms_.size(); i-- > 0;) {
    const AtomId a = row_atoms_[i];
    const int64_t steps = steps_of(a);
    Affine step = row;
    if (!direct || inside != 1 || i != 0)
      step = affine(out_.derived(domain_.atoms[a].name, i == 0 ? clamp : within, inside, i == 0 ? 0 : steps));
    place.atom[a] = a == tall_ ? sum(fixed(0), step, height_) : step;
    inside *= steps;
  }
  for (size_t i = 0; i < outer_reduced_.size(); ++i) place.atom[outer_reduced_[i]] = affine(outer_vars_[i]);
  if (split_) {
    place.atom[outer_reduced_[0]] = affine(outer_vars_[0], out_.kernel().teams);
    place.atom[outer_reduced_[0]].add(kTeamVar, 1);
  }
  if (chunk_var_ >= 0) place.vector_base = affine(chunk_var_, vector_tile_);
  if (parts_ > 1) {
    Affine& shared = part_atom_ == domain_.vector ? place.vector_base : place.atom[part_atom_];
    shared = sum(std::move(shared), part_, share_);
  }
  place.row = row;
  return place;
}

Affine LoopLowering::index_of(int64_t offset, const std::vector<int64_t>& strides, const RowPlace& place) const {
  Affine out = fixed(offset);
  for (AtomId a = 0; a < static_cast<AtomId>(domain_.atoms.size()); ++a)
    if (a != domain_.vector && strides[a] != 0) out = sum(std::move(out), place.atom[a], strides[a]);
  if (domain_.vector >= 0 && strides[domain_.vector] != 0)
    out = sum(std::move(out), place.vector_base, strides[domain_.vector]);
  return out;
}

Slice LoopLowering::slice_of(BufferId buffer, const Access& access, const RowPlace& place, bool is_wide) const {
  Slice out;
  out.buffer = buffer;
  out.offset = index_of(access.offset, access.strides, place);
  out.strides = {tall_ >= 0 ? access.strides[tall_] : 0,
                 is_wide && domain_.vector >= 0 ? access.strides[domain_.vector] : 0};
  return out;
}

TileId LoopLowering::load(const Access& access, DType dtype, Code& code) {
  for (const auto& [known, tile] : code.loads)
    if (known == access) return tile;
  const std::vector<AtomId> varies = atoms_of(access);
  const bool is_wide = wide(varies);
  if (ahead_ > 0 && is_wide && copies_rows(group_, domain_, access, vector_)) return load_sent(access, dtype, code);
  const TileId tile = tile_of(dtype, varies);
  if (elements(group_.nodes[access.input].shape) == 0) {
    code.pre.push_back(fill_instr(tile, 0));  // inside loops that never run, but defined before them
  } else {
    code_for(varies, code)
        .push_back(load_instr(tile, slice_of(out_.input_buffer(access.input), access, code.place, is_wide)));
  }
  code.loads.emplace_back(access, tile);
  return tile;
}

TileId LoopLowering::load(const std::vector<Piece>& pieces, DType dtype, Code& code) {
  for (const auto& [known, tile] : code.joined)
    if (known == pieces) return tile;
  std::vector<AtomId> varies;
  for (const Piece& piece : pieces)
    for (AtomId a : atoms_of(piece.access)) varies.push_back(a);
  const bool is_wide = wide(varies);
  PieceReader reader;
  reader.tile = [&](DType of) { return tile_of(of, varies); };
  reader.push = [&](Instr instr) { code_for(varies, code).push_back(std::move(instr)); };
  reader.slice = [&](const Access& access) {
    return slice_of(out_.input_buffer(access.input), access, code.place, is_wide);
  };
  reader.guard = [&](const Guard& guard) {
    const int64_t along = is_wide ? guard.strides[domain_.vector] : 0;
    const int64_t down = tall_ >= 0 ? guard.strides[tall_] : 0;
    return SliceGuard{index_of(guard.offset, guard.strides, code.place), {down, along}, guard.extent};
  };
  reader.affine = [&](const Access& access, DType of, Instr& map) { return iota_expr(access, of, map, code); };
  const TileId tile = read_pieces(pieces, dtype, reader);
  code.joined.emplace_back(pieces, tile);
  return tile;
}

TileId LoopLowering::reduced(NodeId reduce, int phase) {
  const int age = pipelined_ ? phase - (phases_.level[reduce] - 1) : 0;
  std::vector<TileId>& ages = results_.at(reduce);
  while (static_cast<int>(ages.size()) <= age) ages.push_back(out_.like(ages[0], group_.nodes[reduce].dtype));
  return ages[age];
}

int LoopLowering::operand_expr(NodeId node, int position, Instr& map, Code& code) {
  const Domain::Operand& operand = domain_.operands[node][position];
  if (!operand.pieces.empty()) {
    const DType dtype = group_.nodes[group_.nodes[node].operands[position]].dtype;
    if (const auto value = only_constant(operand.pieces)) return push_constant(map, *value, dtype);
    return arg_expr(map, load(operand.pieces, dtype, code));
  }
  if (operand.source < 0) {
    const TileId tile = load(operand.access, group_.nodes[operand.access.input].dtype, code);
    return arg_expr(map, tile);
  }
  const Node& source = group_.nodes[operand.source];
  if (source.op == Op::constant) return push_constant(map, source.value, source.dtype);
  if (source.op == Op::iota) return iota_expr(operand.access, source.dtype, map, code);
  const std::vector<AtomId>& mine = domain_.varies[node];
  const std::vector<AtomId>& theirs = domain_.varies[operand.source];
  const bool joined = (class_of(source.op) == OpClass::kElementwise ||
                       (class_of(source.op) == OpClass::kReduce && !is_reduction(group_, operand.source))) &&
                      phases_.uses[operand.source] == 1 && !phases_.kept.contains(operand.source) &&
                      !code.tiles.contains(operand.source) && wide(mine) == wide(theirs) &&
                      tall(mine) == tall(theirs) && inner(mine) == inner(theirs);
  if (joined) return inline_expr(operand.source, map, code);
  return arg_expr(map, get(operand.source, code));
}

// offset + sum of strides * atoms: a scalar part, and stride * coordinate along the atoms that tiles run along.
int LoopLowering::iota_expr(const Access& value, DType dtype, Instr& map, Code& code) {
  // Along an axis of tiles, or -1 for a scalar.
  const auto tile = [&](int axis, Affine offset, const std::vector<AtomId>& varies) {
    Instr instr;
    instr.op = InstrOp::kIota;
    instr.result = make_tile(dtype, axis == 1, axis == 0);
    instr.axis = std::abs(axis);
    instr.slice.offset = std::move(offset);
    const TileId result = instr.result;
    code_for(varies, code).push_back(std::move(instr));
    return result;
  };
  const int64_t along = domain_.vector >= 0 && lanes_ > 1 ? value.strides[domain_.vector] : 0;
  const int64_t down = tall_ >= 0 ? value.strides[tall_] : 0;
  Access rest = value;
  if (along != 0) rest.strides[domain_.vector] = 0;
  if (down != 0) rest.strides[tall_] = 0;
  int total = arg_expr(map, tile(-1, slice_of(0, rest, code.place, false).offset, atoms_of(rest)));
  const auto add = [&](int axis, const Affine& offset, AtomId atom, int64_t stride) {
    if (stride == 0) return;
    int coordinate = arg_expr(map, tile(axis, offset, {atom}));
    if (stride != 1)
      coordinate = push_op(map, Op::mul, dtype, {coordinate, push_constant(map, static_cast<double>(stride), dtype)});
    total = push_op(map, Op::add, dtype, {total, coordinate});
  };
  add(1, code.place.vector_base, domain_.vector, along);
  if (down != 0) add(0, code.place.atom[tall_], tall_, down);
  return total;
}

int LoopLowering::inline_expr(NodeId node, Instr& map, Code& code) {
  if (class_of(group_.nodes[node].op) == OpClass::kReduce) return operand_expr(node, 0, map, code);
  ExprNode root;
  root.op = group_.nodes[node].op;
  root.dtype = group_.nodes[node].dtype;
  for (size_t i = 0; i < group_.nodes[node].operands.size(); ++i)
    root.operands[i] = operand_expr(node, static_cast<int>(i), map, code);
  map.expr.push_back(root);
  return static_cast<int>(map.expr.size()) - 1;
}

TileId LoopLowering::compute(NodeId node, Code& code) {
  const Node& n = group_.nodes[node];
  const std::vector<AtomId>& varies = domain_.varies[node];
  const bool is_wide = wide(varies);
  Instr instr;
  if (class_of(n.op) == OpClass::kGather) {
    const Domain::Operand& from = domain_.operands[node][0];
    Instr index;  // the index as a tile of its own
    index.op = InstrOp::kMap;
    const int root = operand_expr(node, 1, index, code);
    instr.op = InstrOp::kGather;
    if (index.expr[root].kind == ExprNode::Kind::kArg) {
      instr.args = {index.args[index.expr[root].arg]};
    } else {
      instr.args = {index.result = tile_of(index.expr[root].dtype, varies)};
      code_for(varies, code).push_back(std::move(index));
    }
    instr.slice = slice_of(out_.input_buffer(from.access.input), from.access, code.place, is_wide);
    instr.gather_stride = from.gather_stride;
    instr.gather_extent = from.gather_extent;
  } else {
    instr.op = InstrOp::kMap;
    inline_expr(node, instr, code);
  }
  instr.result = tile_of(n.dtype, varies);
  const TileId tile = instr.result;
  code_for(varies, code).push_back(std::move(instr));
  return tile;
}

TileId LoopLowering::get(NodeId node, Code& code) {
  const Node& n = group_.nodes[node];
  if (is_reduction(group_, node)) return parts_ > 1 ? combined(node, code) : reduced(node, code.phase);
  if (const auto it = code.tiles.find(node); it != code.tiles.end()) return it->second;
  TileId tile = -1;
  const auto kept = phases_.kept.find(node);
  if (kept != phases_.kept.end() && kept->second < code.phase) {
    tile = make_tile(n.dtype, true);
    code.inner.push_back(load_instr(tile, kept_slice(node, code)));
  } else {
    tile = compute(node, code);
    if (kept != phases_.kept.end() && kept->second == code.phase)
      code.inner.push_back(store_instr(tile, kept_slice(node, code), false));
  }
  code.tiles[node] = tile;
  return tile;
}

// A kept value's row buffer: one row, or a ring of one per phase when rows are pipelined.
Slice LoopLowering::kept_slice(NodeId node, const Code& code) {
  const int64_t ring = pipelined_ ? phases_.count : team_ && !split_ ? out_.kernel().teams : 1;
  const int64_t stagger = schedule_[kStagger];
  int64_t row = row_extent_;
  for (AtomId a : outer_reduced_) row *= domain_.atoms[a].extent;
  const int width = size_of(group_.nodes[node].dtype);
  row = (row + 63) / 64 * 64 + stagger / width;
  if (!buffers_.contains(node))
    buffers_[node] = out_.shared(cat("row", node), group_.nodes[node].dtype, {ring, row}, stagger);
  Slice out;
  out.buffer = buffers_[node];
  out.strides = {0, 1};
  if (team_ && ring > 1) {
    out.offset.add(kTeamVar, row);
  } else if (ring > 1) {
    out.offset.add(out_.derived("slot", {code.place.ring}, 1, ring), row);
  }
  if (chunk_var_ >= 0) out.offset.add(chunk_var_, vector_tile_);
  int64_t stride = row_extent_;
  for (size_t i = outer_reduced_.size(); i-- > 0;) {
    out.offset = sum(std::move(out.offset), code.place.atom[outer_reduced_[i]], stride);
    stride *= domain_.atoms[outer_reduced_[i]].extent;
  }
  return out;
}

absl::StatusOr<Kernel> lower_nest(const Graph& group, const Domain& domain, const Schedule& schedule,
                                  const Machine& machine) {
  return LoopLowering(group, domain, schedule, machine).run();
}

}  // namespace wl
