#include "compiler/model/roofline.h"

#include <algorithm>

#include "compiler/domain/group.h"
#include "compiler/domain/masks.h"

namespace wl {
namespace {

// Whether kernels of a graph with this node may leave some inputs unread or some results uncomputed. This holds for an
// iota too: masks that are made from coordinates decide which products of a contraction are computed.
bool may_skip(const Node& node) {
  return node.op == Op::slice || node.op == Op::pad || node.op == Op::window || node.op == Op::take_along ||
         node.op == Op::select || node.op == Op::iota;
}

// Returns the share of a contraction's products that kernels compute: 1 unless masks made from coordinates limit it.
double counted_share(const Graph& group, const Machine& machine) {
  if (std::ranges::none_of(group.nodes, [](const Node& node) { return node.op == Op::iota; })) return 1;
  const absl::StatusOr<Domain> domain = analyze(group, machine);
  return domain.ok() ? share_of(counted_products(group, *domain), *domain) : 1;
}

}  // namespace

double multiply_adds(const Graph& group, const Node& product, const Machine& machine) {
  const auto dtype = [&](int operand) { return group.nodes[product.operands[operand]].dtype; };
  const Arithmetic& arithmetic = machine.target->arithmetic;
  const double lanes = arithmetic.multiply_adds(dtype(0), dtype(1), product.dtype);
  if (dtype(0) == DType::f32 && !product.tf32) return lanes;
  return std::max(lanes, arithmetic.matrices(dtype(0), dtype(1)));
}

double floor_ns(const Graph& group, const Machine& machine) {
  const Peak& peak = machine.target->peak;
  if (peak.launch_ns == 0) return 0;
  const bool whole = std::none_of(group.nodes.begin(), group.nodes.end(), may_skip);
  double bytes = 0, flops = 0;
  if (whole) {
    bytes = static_cast<double>(bytes_moved(group));
  } else {
    for (const Output& output : group.outputs) bytes += static_cast<double>(group.bytes(output.node));
  }
  for (const Node& node : group.nodes) {
    if (!whole || node.op != Op::contract) continue;
    // If a factor is repeated along an axis, its products need be computed only once, so the contraction is not
    // counted.
    const bool repeats = std::any_of(node.operands.begin(), node.operands.end(),
                                     [&](NodeId operand) { return group.nodes[operand].op == Op::broadcast; });
    // For integers the bound assumes that one lane computes four products at once, as some instructions for narrow
    // integers do.
    const double lanes = is_float(node.dtype) ? multiply_adds(group, node, machine) : 4;
    if (!repeats) flops += contraction_flops(group, node) / lanes;
  }
  const double threads = std::max(1, machine.target->is_gpu() ? machine.multiprocessors() : machine.threads);
  const bool in_l1 = bytes <= static_cast<double>(machine.l1_bytes) * threads;
  const double memory_ns = bytes / ((in_l1 ? peak.l1_bytes_per_ns : peak.far_bytes_per_ns) * threads);
  return std::max({peak.launch_ns, memory_ns, flops / (peak.flops_per_ns * threads)});
}

Roofline roofline(const Graph& group, const Machine& machine) {
  const Target& target = *machine.target;
  const double threads = std::max(1, machine.threads);
  const double bytes = static_cast<double>(bytes_moved(group));
  const bool cached = bytes < static_cast<double>(machine.l2_bytes) * threads;
  Roofline bound;
  // The nominal copy rate is that of one thread. Like `bytes`, it counts both the bytes read and the bytes written.
  bound.memory_ns = cached ? bytes / (target.l2_bytes_per_ns * threads) : bytes / (target.copy_bytes_per_ns * threads);
  double slots = 0;  // issue slots of all elements; the nominal rate counts two operations for each slot
  const double counted = counted_share(group, machine);
  for (const Node& node : group.nodes) {
    const OpClass cls = class_of(node.op);
    if (cls == OpClass::kElementwise || cls == OpClass::kGather)
      slots += static_cast<double>(elements(node.shape)) * info(node.op).cost;
    if (cls == OpClass::kContract)
      slots += counted * contraction_flops(group, node) / 2 / multiply_adds(group, node, machine);
    if (cls == OpClass::kReduce) slots += static_cast<double>(elements(group.nodes[node.operands[0]].shape));
  }
  bound.compute_ns = 2 * slots / (target.arithmetic.flops_per_ns * threads);
  return bound;
}

}  // namespace wl
