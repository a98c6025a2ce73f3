// One walk over a row for a maximum and for sums of exp(v - maximum). With lanes a thread subtracts the largest value
// that it has seen so far, and multiplies what it has summed by exp(before - now) when that grows; when the row has
// ended, by exp(its own - the row's). On a CPU a row is taken in chunks: first a chunk's maximum, then its sums, while
// the chunk lies in the first cache.
#include <algorithm>
#include <optional>

#include "compiler/schedule/nest/loops.h"

namespace wl {

Instr times_power(TileId result, std::optional<TileId> factor, TileId from, TileId to, bool equal, DType dtype) {
  Instr map;
  map.op = InstrOp::kMap;
  map.result = result;
  const int s = factor ? push_arg(map, *factor, dtype) : equal ? push_constant(map, 1, dtype) : -1;
  const int a = push_arg(map, from, dtype), b = push_arg(map, to, dtype);
  const int same = equal ? push_op(map, Op::eq, DType::b1, {a, b}) : -1;
  int value = push_op(map, Op::exp, dtype, {push_op(map, Op::sub, dtype, {a, b})});
  if (factor) value = push_op(map, Op::mul, dtype, {s, value});
  if (equal) push_op(map, Op::select, dtype, {same, s, value});
  return map;
}

void LoopLowering::fold_chunks(NodeId largest, Code& code) {
  const DType dtype = group_.nodes[largest].dtype;
  const auto narrow = [&] { return make_tile(dtype, false); };
  const TileId lanes = out_.tile(dtype, {1, lanes_}, 1, lanes_), chunk = narrow(), now = narrow(), before = narrow();
  code.fills.push_back(fill_instr(now, identity_of(Op::max, dtype)));
  code.inner.push_back(fill_instr(lanes, identity_of(Op::max, dtype)));
  const TileId value = folded_value(largest, dtype, code);
  code.inner.push_back(fold_instr(lanes, value, Op::max));
  code.inner.push_back(cross_instr(chunk, lanes, Op::max));
  code.inner.push_back(copy_instr(before, now, dtype));
  code.inner.push_back(map_instr(now, Op::max, dtype, {before, chunk}));
  code.post.push_back(copy_instr(results_.at(largest)[0], now, dtype));
  // Subtracted in place of a maximum of -inf: what was summed until then is 0.
  Instr least;
  least.op = InstrOp::kMap;
  least.result = narrow();
  const int a = push_arg(least, now, dtype), none = push_constant(least, identity_of(Op::max, dtype), dtype);
  const int is_none = push_op(least, Op::eq, DType::b1, {a, none});
  push_op(least, Op::select, dtype, {is_none, push_constant(least, 0, dtype), a});
  const TileId origin = least.result, factor = narrow();
  code.inner.push_back(std::move(least));
  code.inner.push_back(times_power(factor, std::nullopt, before, origin, false, dtype));
  for (const auto& [sum, maximum] : phases_.online) {
    if (maximum != largest) continue;
    const TileId partial = out_.like(lanes, dtype), term = make_tile(dtype, true), whole = narrow();
    code.fills.push_back(fill_instr(partial, 0));
    code.inner.push_back(map_instr(partial, Op::mul, dtype, {partial, factor}));
    Code again;  // the chunk is read once more
    again.phase = code.phase;
    again.place = code.place;
    const TileId same = folded_value(largest, dtype, again);
    for (auto part : {&Code::pre, &Code::narrow, &Code::inner})
      std::move((again.*part).begin(), (again.*part).end(), std::back_inserter(code.*part));
    code.inner.push_back(times_power(term, std::nullopt, same, origin, false, dtype));
    code.inner.push_back(fold_instr(partial, term, Op::add));
    code.post.push_back(cross_instr(whole, partial, Op::add));
    // NaN where the maximum is no number.
    code.post.push_back(times_power(results_.at(sum)[0], whole, now, now, false, dtype));
  }
}

void LoopLowering::fold_online(NodeId largest, Code& code) {
  const DType dtype = group_.nodes[largest].dtype;
  const TileId value = folded_value(largest, dtype, code);
  const TileId own = out_.team_tile(dtype, {1, lanes_}, 1, vector_), before = out_.like(own, dtype);
  code.fills.push_back(fill_instr(own, identity_of(Op::max, dtype)));
  code.inner.push_back(copy_instr(before, own, dtype));
  code.inner.push_back(fold_instr(own, value, Op::max));
  const TileId row = results_.at(largest)[0];
  cross(largest, Op::max, own, row, code);
  for (const auto& [sum, maximum] : phases_.online) {
    if (maximum != largest) continue;
    const TileId partial = out_.like(own, dtype), scaled = out_.like(own, dtype);
    code.fills.push_back(fill_instr(partial, 0));
    code.inner.push_back(times_power(partial, partial, before, own, true, dtype));
    const TileId term = make_tile(dtype, true);
    code.inner.push_back(times_power(term, std::nullopt, value, own, true, dtype));
    code.inner.push_back(fold_instr(partial, term, Op::add));
    // After the row's maximum is known to all. A row of -inf, or with +inf, is NaN here as it would be there; a part of
    // a row is not yet.
    Code last;
    cross(sum, Op::add, scaled, results_.at(sum)[0], last);
    code.post.push_back(times_power(scaled, partial, own, row, parts_ > 1, dtype));
    std::move(last.exchange.begin(), last.exchange.end(), std::back_inserter(code.post));
    std::move(last.post.begin(), last.post.end(), std::back_inserter(code.post));
  }
}

}  // namespace wl
