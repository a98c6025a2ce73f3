#include "compiler/kernel/pipeline/rewrite.h"

#include <algorithm>
#include <numeric>

namespace wl {
namespace {

void need(const Kernel& kernel, const Affine& affine, std::vector<bool>& needed) {
  for (const auto& [var, coefficient] : affine.terms) {
    if (needed[var]) continue;
    needed[var] = true;
    for (const Affine& of : kernel.vars[var].of) need(kernel, of, needed);
  }
}

// Returns for each variable whether instructions or tiles use it, directly or through derived variables.
std::vector<bool> needed_of(Kernel& kernel) {
  std::vector<bool> needed(kernel.vars.size(), false);
  each_instr(kernel.body,
             [&](Instr& instr) { each_affine(instr, [&](const Affine& affine) { need(kernel, affine, needed); }); });
  for (const Tile& tile : kernel.tiles)
    for (const std::vector<Affine>& axis : tile.bound)
      for (const Affine& bound : axis) need(kernel, bound, needed);
  return needed;
}

// Returns the new number of each variable or tile. Those that stay are numbered in the order of their keys; those that
// do not stay get -1.
std::vector<int> numbered(const std::vector<std::pair<int, int>>& keys, const std::vector<bool>& stays) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  std::vector<int> numbers(keys.size(), -1);
  int next = 0;
  for (int old : order)
    if (stays[old]) numbers[old] = next++;
  return numbers;
}

template <typename T>
void permute(std::vector<T>& items, const std::vector<int>& numbers) {
  std::vector<T> moved(std::count_if(numbers.begin(), numbers.end(), [](int n) { return n >= 0; }));
  for (size_t i = 0; i < items.size(); ++i)
    if (numbers[i] >= 0) moved[numbers[i]] = std::move(items[i]);
  items = std::move(moved);
}

}  // namespace

Rewrite::Rewrite(Kernel& kernel) : kernel_(kernel), needed_(needed_of(kernel)), beside_(kernel.vars.size()) {
  std::iota(beside_.begin(), beside_.end(), 0);
}

Affine Rewrite::derived(std::string name, std::vector<Affine> of, int64_t div, int64_t mod, VarId beside) {
  if (std::all_of(of.begin(), of.end(), [](const Affine& a) { return a.terms.empty(); })) {
    int64_t value = of[0].base;
    for (const Affine& one : of) value = std::min(value, one.base);
    return fixed(mod == 0 ? value / div : value / div % mod);
  }
  VarId behind = beside_[beside];
  for (const Affine& one : of)
    for (const auto& [source, coefficient] : one.terms) behind = std::max(behind, beside_[source]);
  const VarId var = derived_var(kernel_, std::move(name), std::move(of), div, mod);
  if (var == static_cast<VarId>(beside_.size())) beside_.push_back(behind);
  return affine(var);
}

VarId Rewrite::loop_var(std::string name, VarId beside) {
  kernel_.vars.push_back({Var::Kind::kLoop, std::move(name), {}, 1, 0});
  beside_.push_back(beside_[beside]);
  return static_cast<VarId>(kernel_.vars.size()) - 1;
}

TileId Rewrite::like(TileId tile, TileId before) {
  const auto id = static_cast<TileId>(kernel_.tiles.size());
  kernel_.tiles.push_back(Tile(kernel_.tiles[tile]));
  in_front_of_[id] = before;
  return id;
}

Affine Rewrite::moved(const Affine& from, const Iteration& to) {
  Affine out = fixed(from.base);
  for (const auto& [id, coefficient] : from.terms) {
    if (id == to.var) {
      out = sum(std::move(out), to.at, coefficient);
      continue;
    }
    const Var var = kernel_.vars[id];  // a copy, because derived() may reallocate kernel_.vars
    std::vector<Affine> of;
    for (const Affine& one : var.of) of.push_back(moved(one, to));
    const bool same = of == var.of;
    out = sum(std::move(out), same ? affine(id) : derived(var.name, std::move(of), var.div, var.mod, id), coefficient);
  }
  return out;
}

Tile Rewrite::moved(Tile tile, const Iteration& to) {
  for (std::vector<Affine>& axis : tile.bound)
    for (Affine& bound : axis) bound = moved(bound, to);
  return tile;
}

Instr Rewrite::moved(Instr instr, const Iteration& to) {
  each_affine(instr, [&](Affine& affine) { affine = moved(affine, to); });
  for (Instr& inner : instr.body) inner = moved(std::move(inner), to);
  return instr;
}

void Rewrite::finish() {
  const std::vector<bool> needed = needed_of(kernel_);
  std::vector<std::pair<int, int>> vars, tiles;
  std::vector<bool> stays;
  for (VarId var = 0; var < static_cast<VarId>(kernel_.vars.size()); ++var) {
    const bool is_new = var >= static_cast<VarId>(needed_.size());
    vars.emplace_back(beside_[var], is_new ? 1 : 0);
    stays.push_back(kernel_.vars[var].kind != Var::Kind::kDerived || needed[var] || (!is_new && !needed_[var]));
  }
  for (TileId tile = 0; tile < static_cast<TileId>(kernel_.tiles.size()); ++tile) {
    const auto before = in_front_of_.find(tile);
    tiles.emplace_back(before == in_front_of_.end() ? tile : before->second, before == in_front_of_.end() ? 1 : 0);
  }
  const std::vector<int> var_numbers = numbered(vars, stays),
                         tile_numbers = numbered(tiles, std::vector<bool>(tiles.size(), true));
  const auto renumber = [&](Affine& affine) {
    for (auto& [var, coefficient] : affine.terms) var = var_numbers[var];
  };
  each_instr(kernel_.body, [&](Instr& instr) {
    each_affine(instr, renumber);
    if (instr.var >= 0) instr.var = var_numbers[instr.var];
    if (instr.result >= 0) instr.result = tile_numbers[instr.result];
    for (TileId& arg : instr.args) arg = tile_numbers[arg];
  });
  for (Tile& tile : kernel_.tiles)
    for (std::vector<Affine>& axis : tile.bound) std::for_each(axis.begin(), axis.end(), renumber);
  for (size_t var = 0; var < kernel_.vars.size(); ++var)
    if (stays[var]) std::for_each(kernel_.vars[var].of.begin(), kernel_.vars[var].of.end(), renumber);
  permute(kernel_.vars, var_numbers);
  permute(kernel_.tiles, tile_numbers);
}

}  // namespace wl
