#include "compiler/model/roofline.h"

#include <algorithm>

#include "compiler/plan/group.h"

namespace wl {

Roofline roofline(const Graph& group, const Machine& machine) {
  const Target& target = *machine.target;
  const double threads = std::max(1, machine.threads);
  const double bytes = static_cast<double>(bytes_moved(group));
  const bool cached = bytes < static_cast<double>(machine.l2_bytes) * threads;
  Roofline bound;
  // The nominal copy rate is of one thread and counts bytes read and written.
  bound.memory_ns = cached ? bytes / (target.l2_bytes_per_ns * threads) : bytes / (target.copy_bytes_per_ns * threads);
  double slots = 0;  // issue slots of all elements; a slot is two of the nominal operations
  for (const Node& node : group.nodes) {
    const OpClass cls = class_of(node.op);
    if (cls == OpClass::kElementwise || cls == OpClass::kGather)
      slots += static_cast<double>(elements(node.shape)) * info(node.op).cost;
    if (cls == OpClass::kContract)
      slots += contraction_flops(group, node) / 2 / target.arithmetic.multiply_adds(node.dtype);
    if (cls == OpClass::kReduce) slots += static_cast<double>(elements(group.nodes[node.operands[0]].shape));
  }
  bound.compute_ns = 2 * slots / (target.arithmetic.flops_per_ns * threads);
  return bound;
}

}  // namespace wl
