// Builds kernels: declares variables, buffers and tiles, and appends instructions to the innermost open loop.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

class KernelBuilder {
 public:
  // Declares the group's global buffers in call order (buffers_of), and the block's number as vars[0]; on machines with
  // lanes also the team's number as vars[1].
  KernelBuilder(const Graph& group, const Machine& machine);

  VarId loop_var(std::string name);
  // Returns the variable (min(of...) / div) % mod, as derived_var() does.
  VarId derived(std::string name, std::vector<Affine> of, int64_t div = 1, int64_t mod = 0);
  // Adds a scratch buffer behind all others, aligned to 64 bytes. `stagger` moves the buffer further by that many
  // bytes, because buffers whose addresses are 4096 bytes apart slow each other down in a cache.
  BufferId shared(std::string name, DType dtype, std::vector<int64_t> shape, int64_t stagger = 0);
  // Adds a buffer with one part for each block of a cluster, along axis 0. The buffer lies behind all scratch of the
  // block.
  BufferId cluster(std::string name, DType dtype, std::vector<int64_t> shape);
  // Adds a buffer behind all others of the workspace.
  BufferId work(std::string name, DType dtype, std::vector<int64_t> shape);
  BufferId input_buffer(NodeId input) const;  // returns the global buffer of input node `input`
  BufferId output_buffer(int output) const;
  TileId tile(DType dtype, std::vector<int64_t> shape, int vector_axis, int lanes,
              std::vector<std::vector<Affine>> bound = {});
  // Adds a tile on machines with lanes. Its elements along `axis` are distributed over the threads of a team; if `axis`
  // is -1, every thread holds all elements.
  TileId team_tile(DType dtype, std::vector<int64_t> shape, int axis, int vector,
                   std::vector<std::vector<Affine>> bound = {});
  TileId tile(Tile tile);
  TileId like(TileId other, DType dtype);  // adds a tile with the layout and bounds of `other`
  // Tiles that are added while the returned object exists hold values of node `node`; comments of printed code name it.
  [[nodiscard]] auto values_of(NodeId node) {
    return absl::MakeCleanup([this, before = std::exchange(node_, node)] { node_ = before; });
  }

  void open_loop(VarId var, std::vector<Affine> trips);
  void close_loop();
  Instr& push(Instr instr);
  void push_all(std::vector<Instr> instrs);

  Kernel& kernel() { return kernel_; }
  // Returns the finished kernel. All loops must be closed.
  Kernel finish();

 private:
  Kernel kernel_;
  std::vector<std::vector<Instr>> open_;  // bodies of the open loops, outermost first; the first is the kernel's body
  std::vector<Instr> loops_;
  std::vector<NodeId> inputs_;
  NodeId node_ = -1;  // the node whose values the tiles being added hold; -1: unknown
};

// Returns the derived variable (min(of...) / div) % mod of a kernel: an equal one that exists already, or a new one.
VarId derived_var(Kernel& kernel, std::string name, std::vector<Affine> of, int64_t div = 1, int64_t mod = 0);

inline constexpr VarId kBlockVar = 0;  // the variable that is the block's number
Affine fixed(int64_t base);
Affine affine(VarId var, int64_t coefficient = 1, int64_t base = 0);
// The affine expression a + factor * b.
Affine sum(Affine a, const Affine& b, int64_t factor = 1);

Instr load_instr(TileId result, Slice slice);
Instr store_instr(TileId value, Slice slice, bool streaming);
// Prefetches the elements that a load of a tile with the layout of `of` would read, into the cache of level `level`.
Instr prefetch_instr(TileId of, Slice slice, int level);
Instr fill_instr(TileId result, double value);
Instr fold_instr(TileId into, TileId value, Op combine);    // folds `value` into `into` over axis 1
Instr cross_instr(TileId result, TileId from, Op combine);  // combines the lanes of `from` over axis 1
// Converts `from` to the layout of `result`. Without the slice `through`, no element may move to another wave.
Instr convert_instr(TileId result, TileId from, Slice through = {});
Instr view_instr(TileId result, TileId from);
Instr words_instr(TileId result, DType element, Slice slice);
Instr words_across_instr(TileId result, DType element, Slice slice, int64_t gap);
Instr join_instr(TileId result, DType element, std::vector<TileId> elements);
// Packs neighbouring elements of a tile along `axis` into words (u32), beginning with element `first`.
Instr pack_instr(TileId result, DType element, TileId from, int axis, int64_t first);
Instr part_instr(TileId result, DType element, TileId words, int part);
Instr dot_instr(TileId sum, DType a_element, TileId a, DType b_element, TileId b);
// The matrix product sums += a x b, where a and b are tiles of words (u32) that narrow elements are packed into.
Instr mma_instr(TileId sums, MatrixOp matrix, TileId a, TileId b);
Instr mma_wait_instr();
Instr constant_instr(TileId result, DType dtype, double value);
Instr copy_instr(TileId result, TileId from, DType dtype);
Instr fence_instr();
Instr commit_instr();
Instr wait_instr(int pending);
// Returns an arrive, arrive_copied or await instruction for one element of a buffer of phases. `parity` is for await
// only.
Instr phase_instr(InstrOp op, BufferId phases, Affine element, Affine parity = {});
// The instruction result = op(args...).
Instr map_instr(TileId result, Op op, DType dtype, std::vector<TileId> args);

}  // namespace wl
