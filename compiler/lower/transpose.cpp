#include "compiler/lower/transpose.h"

#include <algorithm>

namespace wl {

bool transposes(const Domain& domain, const Machine& machine) {
  if (domain.cls != LoopClass::kMap || domain.second < 0 || domain.vector < 0) return false;
  const int64_t lanes = machine.target->lanes;
  const auto whole = [&](AtomId a) { return domain.atoms[a].extent >= lanes && domain.atoms[a].extent % lanes == 0; };
  if (lanes <= 1 || !whole(domain.second) || !whole(domain.vector)) return false;
  return std::all_of(domain.stores.begin(), domain.stores.end(), [](const Domain::Store& s) { return s.source >= 0; });
}

absl::StatusOr<Kernel> lower_transpose(const Graph& group, const Domain& domain, const Schedule& schedule,
                                       const Machine& machine) {
  KernelBuilder out(group, machine);
  Kernel& kernel = out.kernel();
  out.set_launch("transpose", schedule, machine);
  const int lanes = machine.target->lanes;
  const int64_t rows = domain.atoms[domain.second].extent, columns = domain.atoms[domain.vector].extent;
  // The largest tile that divides the extent and is no larger than asked for.
  const auto tile_of = [&](int64_t extent, int64_t wanted) {
    int64_t tile = std::max<int64_t>(lanes, std::min(extent, wanted) / lanes * lanes);
    while (extent % tile != 0) tile -= lanes;
    return tile;
  };
  const int64_t tile_columns = tile_of(columns, schedule.get("tile", 64));
  const int64_t tile_rows = tile_of(rows, schedule.get("tile_rows", 64));

  int64_t tiles = (rows / tile_rows) * (columns / tile_columns);
  for (AtomId a : domain.parallel)
    if (a != domain.second && a != domain.vector) tiles *= domain.atoms[a].extent;
  const int64_t blocks = std::max<int64_t>(1, kernel.threads * schedule.get("tasks", 1));
  const int64_t chunk = (tiles + blocks - 1) / blocks;
  kernel.grid = (tiles + chunk - 1) / chunk;
  const VarId tile_var = out.loop_var("tile");
  std::vector<Affine> trips = {fixed(chunk)};
  if (tiles % chunk != 0) trips.push_back(affine(kBlockVar, -chunk, tiles));
  out.open_loop(tile_var, trips);
  Affine tile = affine(kBlockVar, chunk);
  tile.add(tile_var, 1);
  const VarId row_step = out.loop_var("row"), column_step = out.loop_var("column");
  Place place(domain.atoms.size(), fixed(0));
  int64_t inside = 1;
  const auto digit = [&](const std::string& name, int64_t extent) {
    const Affine index = extent == 1 ? fixed(0) : affine(out.derived(name, {tile}, inside, extent));
    inside *= extent;
    return index;
  };
  const bool rows_inner = schedule.get("order", 0) == 1;
  const auto place_rows = [&] {
    place[domain.second] = sum(affine(row_step, lanes), digit("tile_row", rows / tile_rows), tile_rows);
  };
  const auto place_columns = [&] {
    place[domain.vector] = sum(affine(column_step, lanes), digit("tile_column", columns / tile_columns), tile_columns);
  };
  if (rows_inner) {
    place_rows();
    place_columns();
  } else {
    place_columns();
    place_rows();
  }
  for (size_t i = domain.parallel.size(); i-- > 0;) {
    const AtomId a = domain.parallel[i];
    if (a != domain.second && a != domain.vector) place[a] = digit(domain.atoms[a].name, domain.atoms[a].extent);
  }
  const VarId outer = rows_inner ? column_step : row_step, inner = rows_inner ? row_step : column_step;
  out.open_loop(outer, {fixed((rows_inner ? tile_columns : tile_rows) / lanes)});
  out.open_loop(inner, {fixed((rows_inner ? tile_rows : tile_columns) / lanes)});

  std::vector<Instr> crossed;  // loads and converts of transposed inputs, before everything else
  std::vector<std::pair<Access, TileId>> converted;
  const int64_t ahead = schedule.get("prefetch", 0);
  TileExpr expr{group, domain, out,     place, domain.second, domain.vector, lanes, lanes, lanes, {},
                false, {},     nullptr, {}};
  expr.load = [&](const Access& access) -> TileId {
    if (access.strides[domain.second] != 1 || access.strides[domain.vector] == 0) return -1;
    for (const auto& [known, tile_id] : converted)
      if (known == access) return tile_id;
    const DType dtype = group.nodes[access.input].dtype;
    const TileId across = out.tile(dtype, {lanes, lanes}, 0, lanes);
    const Slice slice = slice_at(out.input_buffer(access.input), access, place, domain.second, domain.vector);
    if (ahead > 0) {
      Place later = place;
      const AtomId along = rows_inner ? domain.second : domain.vector;
      later[along] = sum(later[along], fixed(ahead * lanes));
      Instr fetch;
      fetch.op = InstrOp::kPrefetch;
      fetch.args = {across};
      fetch.level = static_cast<int>(schedule.get("prefetch_level", 1));
      fetch.slice = slice_at(slice.buffer, access, later, domain.second, domain.vector);
      crossed.push_back(std::move(fetch));
    }
    crossed.push_back(load_instr(across, slice));
    Instr convert;
    convert.op = InstrOp::kConvert;
    convert.result = out.tile(dtype, {lanes, lanes}, 1, lanes);
    convert.args = {across};
    const TileId result = convert.result;
    crossed.push_back(std::move(convert));
    converted.emplace_back(access, result);
    return result;
  };
  const bool streaming = schedule.get("stream", 0) != 0;
  for (const Domain::Store& store : domain.stores) {
    WL_ASSIGN_OR_RETURN(const TileId value, expr.value(store.source));
    expr.code.push_back(
        store_instr(value, slice_at(out.output_buffer(store.output), store.access, place, domain.second, domain.vector),
                    streaming));
  }
  out.push_all(std::move(crossed));
  out.push_all(std::move(expr.code));
  out.close_loop();
  out.close_loop();
  out.close_loop();
  if (streaming) out.push(fence_instr());
  return out.finish();
}

}  // namespace wl
