// A finished kernel as a part of another one. Its variables, tiles and buffers get new numbers in the whole, its block
// number is replaced by an expression of the whole, and accesses to its inputs and outputs are moved.
#pragma once

#include <vector>

#include "compiler/kernel/builder.h"
#include "compiler/plan/stitch.h"

namespace wl {

class Graft {
 public:
  struct To {
    const std::vector<Stage::Buffer>& buffers;  // of the part, in call order
    Affine block;                               // the part's block
    const std::vector<Affine>& places;          // the whole's block number along each axis; see Stage::Buffer::shift
    const std::vector<BufferId>& kept;
    int64_t scratch = 0;  // where the part's own begins
  };
  Graft(Kernel part, const To& to, KernelBuilder& out);
  // The part's instructions, with or without its barriers.
  std::vector<Instr> body(bool barriers) const { return body(part_.body, barriers); }

 private:
  void place_buffers(const To& to);
  void place_vars(const Affine& block);
  Affine moved(const Affine& from) const;
  Slice moved(Slice slice) const;
  std::vector<Instr> body(const std::vector<Instr>& from, bool barriers) const;

  const Kernel part_;
  const std::vector<Stage::Buffer>& given_;
  const std::vector<Affine> places_;
  KernelBuilder& out_;
  std::vector<BufferId> buffers_;
  std::vector<Affine> vars_;  // by the part's variable
  TileId first_tile_ = 0;
};

}  // namespace wl
