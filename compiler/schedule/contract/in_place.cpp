#include "compiler/schedule/contract/in_place.h"

#include <algorithm>
#include <set>

namespace wl {
namespace {

// Visits all nodes and inputs from which an operand is computed, and adds up the cost of the nodes that vary along K.
class Work {
 public:
  Work(const Graph& group, const Domain& domain) : group_(group), domain_(domain) {}

  // Returns the access to the first input that varies along K and is contiguous along the columns. Returns nullopt if
  // there is none, if the operand cannot be computed from rows of vectors, or if the elementwise work takes more than
  // kCheapWork (four) issue slots per element.
  std::optional<Access> run(NodeId root) {
    visit(root);
    return possible_ && work_ <= kCheapWork ? deep_ : std::nullopt;
  }

 private:
  void visit(NodeId id) {
    if (!seen_.insert(id).second || group_.nodes[id].op == Op::constant) return;
    possible_ = possible_ && class_of(group_.nodes[id].op) == OpClass::kElementwise;
    if (!possible_) return;
    if (std::ranges::any_of(domain_.varies[id], [&](AtomId atom) { return holds(domain_.reduced, atom); }))
      work_ += info(group_.nodes[id].op).cost;
    for (const Domain::Operand& operand : domain_.operands[id]) {
      if (operand.source >= 0)
        visit(operand.source);
      else
        possible_ = possible_ && operand.is_direct() && reads(operand.access);
    }
  }

  bool reads(const Access& access) {
    const bool deep = std::ranges::any_of(domain_.reduced, [&](AtomId atom) { return access.strides[atom] != 0; });
    const int64_t columns = access.strides[domain_.n.back()];
    if (deep && columns == 1 && !deep_) deep_ = access;
    return access.guards.empty() && (columns == 1 || columns == 0);
  }

  const Graph& group_;
  const Domain& domain_;
  std::set<NodeId> seen_;
  bool possible_ = true;
  int work_ = 0;
  std::optional<Access> deep_;
};

}  // namespace

std::optional<InPlace> right_in_place(const Graph& group, const Domain& domain) {
  const Domain::Operand& right = domain.operands[domain.contract][domain.right_operand()];
  if (right.is_direct()) return InPlace{right.access};
  if (right.source < 0 || domain.n.empty()) return std::nullopt;
  const std::optional<Access> access = Work(group, domain).run(right.source);
  return access ? std::optional(InPlace{*access, /*computed=*/true}) : std::nullopt;
}

bool is_in_panels(const Graph& group, const Domain& domain, const std::optional<Dot>& dot, int64_t widest) {
  if (domain.n.empty() || domain.reduced.empty()) return false;
  const std::optional<InPlace> right = right_in_place(group, domain);
  const int64_t columns = domain.atoms[domain.n.back()].extent, by = dot ? dot->group : 1;
  if (!right || columns > widest || right->access.strides[domain.n.back()] != by) return false;
  if (dot && (!has_rows_of_words(domain, *dot) || domain.atoms[dot->k_atom].extent != by)) return false;
  const auto row = std::find_if(domain.reduced.rbegin(), domain.reduced.rend(),
                                [&](AtomId atom) { return !dot || atom != dot->k_atom; });
  return row != domain.reduced.rend() && right->access.strides[*row] == columns * by;
}

}  // namespace wl
