#include "compiler/domain/merged_columns.h"

namespace wl {
namespace {

class ColumnMerger {
 public:
  ColumnMerger(const Domain& domain, AtomId height, AtomId width)
      : out_{domain, height, width}, extent_(domain.atoms[width].extent), seen_(domain.operands.size(), 0) {}

  std::optional<MergedColumns> run() {
    Domain& domain = out_.domain;
    seen_[domain.contract] = 1;
    for (Domain::Store& store : domain.stores) {
      join(store.access);
      if (store.source >= 0) visit(store.source);
    }
    if (!possible_) return std::nullopt;
    domain.atoms[out_.height].extent *= extent_;
    domain.atoms[out_.width].extent = 1;
    domain.n.pop_back();
    domain.vector = out_.height;
    return std::move(out_);
  }

 private:
  void join(std::vector<int64_t>& strides) {
    possible_ = possible_ && strides[out_.height] == strides[out_.width] * extent_;
    strides[out_.height] = strides[out_.width];
    strides[out_.width] = 0;
  }
  void join(Access& access) {
    join(access.strides);
    for (Guard& guard : access.guards) join(guard.strides);
  }
  // Merges the two column loops in all operands of op `id`, which follows the contraction, and in those of the ops
  // that compute these operands.
  void visit(NodeId id) {
    if (seen_[id]) return;
    seen_[id] = 1;
    for (Domain::Operand& operand : out_.domain.operands[id]) {
      if (operand.access.input >= 0) join(operand.access);
      for (Piece& piece : operand.pieces) join(piece.access);
      if (operand.source >= 0) visit(operand.source);
    }
  }

  MergedColumns out_;
  const int64_t extent_;
  std::vector<char> seen_;
  bool possible_ = true;
};

}  // namespace

std::optional<MergedColumns> merged_columns(const Domain& domain) {
  if (domain.contract < 0 || domain.n.size() < 2) return std::nullopt;
  const AtomId height = domain.n[domain.n.size() - 2], width = domain.n.back();
  if (domain.atoms[height].extent == 0 || domain.atoms[width].extent == 0) return std::nullopt;
  return ColumnMerger(domain, height, width).run();
}

}  // namespace wl
