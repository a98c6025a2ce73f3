// Hand-made loops, in the form that lowering writes before pipelining, for tests of the pipelining pass.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/builder.h"
#include "compiler/kernel/verify.h"

namespace wl::testing {

// A kernel whose blocks run a loop of steps. In each step a thread i copies one of 32 elements of x to shared memory,
// and adds element 31 - i (with `own`: element i) from there to y[i].
struct PlainLoop {
  int64_t steps = 4;
  bool known = true;   // whether all blocks run `steps` steps; else a block runs (block + steps) % (steps + 1)
  bool copied = true;  // whether elements are stored unchanged; else they are doubled
  bool own = false;    // whether each thread reads the element that it stored itself
  bool tail = false;   // whether another step follows the loop over steps
  int64_t outer = 0;   // trip count of a loop around the loop over steps; 0: none
  int64_t inner = 1;   // trip count of the loop inside a step; each iteration reads other elements of shared memory
  int groups = 1;      // number of elements that an iteration of the inner loop reads and adds, one after another
  std::string target = "sim:cuda";

  static constexpr int64_t kGrid = 3, kTeam = 32;
  static constexpr BufferId kShared = 2;

  int64_t rows() const { return kGrid * std::max<int64_t>(1, outer) * (steps + (tail ? 1 : 0)); }
  Kernel kernel();
  VarId loop = -1;  // variable of the loop over steps, set by kernel()

 private:
  std::vector<Instr> step(const Affine& row);
  TileId tile();
  Kernel kernel_;
  TileId sum_ = -1;
};

inline TileId PlainLoop::tile() {
  kernel_.tiles.push_back({DType::f32, team_layout({kTeam}, 0, 1, kTeam, 32), {}});
  return static_cast<TileId>(kernel_.tiles.size()) - 1;
}

// Returns the instructions of a step, which fill shared memory with a row of x and use it.
inline std::vector<Instr> PlainLoop::step(const Affine& row) {
  std::vector<Instr> out;
  TileId value = tile();
  out.push_back(load_instr(value, {0, sum(fixed(0), row, kTeam), {1}}));
  if (!copied) {
    const TileId twice = tile();
    out.push_back(map_instr(twice, Op::add, DType::f32, {value, value}));
    value = twice;
  }
  out.push_back(store_instr(value, {kShared, fixed(0), {1}}, false));
  std::vector<Instr> uses;
  Affine turn;
  if (inner > 1) {
    kernel_.vars.push_back({Var::Kind::kLoop, "turn", {}, 1, 0});
    turn = affine(static_cast<VarId>(kernel_.vars.size()) - 1);
  }
  const TileId read = tile();
  for (int g = 0; g < groups; ++g) {
    // With several inner iterations or several elements in each, all threads read the same element of shared memory.
    const bool several = inner > 1 || groups > 1;
    const Affine at = several ? sum(fixed(g), turn, groups) : fixed(own ? 0 : kTeam - 1);
    uses.push_back(load_instr(read, {kShared, at, {several ? 0 : own ? 1 : -1}}));
    uses.push_back(map_instr(sum_, Op::add, DType::f32, {sum_, read}));
  }
  if (inner > 1) {
    Instr each;
    each.op = InstrOp::kLoop;
    each.var = turn.terms[0].first;
    each.trips = {fixed(inner)};
    each.body = std::move(uses);
    out.push_back(std::move(each));
  } else {
    for (Instr& use : uses) out.push_back(std::move(use));
  }
  return out;
}

inline Kernel PlainLoop::kernel() {
  kernel_ = {};
  kernel_.name = "plain";
  kernel_.target = target;
  kernel_.compiler = "gcc";
  kernel_.grid = kGrid;
  kernel_.wave = 32;
  kernel_.team = kernel_.threads = kTeam;
  kernel_.buffers.push_back({"x", DType::f32, {rows() * kTeam}, Level::kGlobal, false, false, 0});
  kernel_.buffers.push_back({"y", DType::f32, {kGrid * kTeam}, Level::kGlobal, true, true, 0});
  kernel_.buffers.push_back({"s", DType::f32, {1, kTeam}, Level::kShared, false, false, 0});
  kernel_.vars.push_back({Var::Kind::kBlock, "block", {}, 1, 0});
  kernel_.vars.push_back({Var::Kind::kTeam, "team", {}, 1, 0});
  const auto variable = [&](Var var) {
    kernel_.vars.push_back(std::move(var));
    return static_cast<VarId>(kernel_.vars.size()) - 1;
  };
  const int64_t length = steps + (tail ? 1 : 0), turns = std::max<int64_t>(1, outer);
  Affine first = affine(kBlockVar, turns * length);
  VarId around = -1;
  if (outer > 0) {
    around = variable({Var::Kind::kLoop, "around", {}, 1, 0});
    first.add(around, length);
  }
  Affine trips = fixed(steps);
  if (!known) trips = affine(variable({Var::Kind::kDerived, "some", {affine(kBlockVar, 1, steps)}, 1, steps + 1}));
  loop = variable({Var::Kind::kLoop, "step", {}, 1, 0});
  sum_ = tile();
  Instr each;
  each.op = InstrOp::kLoop;
  each.var = loop;
  each.trips = {trips};
  each.body = step(sum(first, affine(loop)));
  std::vector<Instr> body;
  body.push_back(std::move(each));
  if (tail)
    for (Instr& instr : step(sum(first, fixed(steps)))) body.push_back(std::move(instr));
  if (outer > 0) {
    Instr all;
    all.op = InstrOp::kLoop;
    all.var = around;
    all.trips = {fixed(outer)};
    all.body = std::move(body);
    body.clear();
    body.push_back(std::move(all));
  }
  kernel_.body.push_back(fill_instr(sum_, 0));
  for (Instr& instr : body) kernel_.body.push_back(std::move(instr));
  kernel_.body.push_back(store_instr(sum_, {1, affine(kBlockVar, kTeam), {1}}, false));
  return kernel_;
}

// Interprets the kernel of a PlainLoop and returns y.
inline std::vector<double> values_of(const Kernel& kernel) {
  std::vector<std::vector<double>> buffers;
  for (const KernelBuffer& buffer : kernel.buffers) {
    if (buffer.level != Level::kGlobal) continue;
    std::vector<double>& values = buffers.emplace_back(elements(buffer.shape));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7 % 101);
  }
  const absl::Status status = interpret(kernel, buffers);
  EXPECT_TRUE(status.ok()) << status << "\n" << print(kernel);
  return buffers[1];
}

}  // namespace wl::testing
