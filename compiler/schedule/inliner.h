// Inlines a finished kernel (the part) into another one (the whole). The part's variables, tiles and buffers get new
// numbers in the whole, the part's block number is replaced by an expression of the whole, and accesses to the part's
// inputs and outputs are shifted.
#pragma once

#include <vector>

#include "compiler/domain/stitch.h"
#include "compiler/kernel/builder.h"

namespace wl {

class KernelInliner {
 public:
  // How the part is placed in the whole.
  struct To {
    const std::vector<Stage::Buffer>& buffers;  // what each buffer of the part is in the whole, in call order
    Affine block;                               // value of the part's block number
    const std::vector<Affine>& places;          // index of the whole's block along each axis of Stage::Buffer::shift
    const std::vector<BufferId>& kept;          // buffers of the whole, indexed by Stage::Buffer::kept
    int64_t scratch = 0;                        // byte offset of the part's own scratch in that of the whole
    int graph = 0;                              // the number of the part's graph in the whole's NodeListing
  };
  KernelInliner(Kernel part, const To& to, KernelBuilder& out);
  // The part's instructions, with or without its barriers.
  std::vector<Instr> body(bool barriers) const { return body(part_.body, barriers); }

 private:
  void place_buffers(const To& to);
  void place_vars(const Affine& block);
  Affine moved(const Affine& from) const;
  Slice moved(Slice slice) const;
  NodeOrigin moved(NodeOrigin origin) const;
  std::vector<Instr> body(const std::vector<Instr>& from, bool barriers) const;

  const Kernel part_;
  const std::vector<Stage::Buffer>& given_;
  const std::vector<Affine> places_;
  const int graph_;
  KernelBuilder& out_;
  std::vector<BufferId> buffers_;  // for each buffer of the part, its number in the whole
  std::vector<Affine> vars_;       // for each variable of the part, its value in the whole
  TileId first_tile_ = 0;          // number of the part's tile 0 in the whole
};

}  // namespace wl
