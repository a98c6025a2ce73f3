#include "compiler/schedule/lower/lower.h"

#include "compiler/ir/rounded_exps.h"
#include "compiler/schedule/packed/packed.h"
#include "compiler/schedule/stitched/stitched.h"

namespace wl {

absl::StatusOr<Space> space_of(const Graph& group, const Domain& domain, const Machine& machine) {
  if (machine.target == nullptr) return invalid("the machine names no target");
  const bool host = machine.target->family != "cuda" && machine.target->family != "hip";
  if (host && !machine.gcc && !machine.clang)
    return invalid("the machine has neither gcc nor clang: nothing can be compiled");
  if (domain.cls != LoopClass::kPacked) return space_of_connected(group, domain, machine);
  Space space = finished(space_packed(domain, machine), machine);
  if (space.seeds.empty())
    return unimplemented("no schedule is legal on ", machine.target->name, " for all unconnected parts of the group");
  return space;
}

absl::StatusOr<Kernel> lower(const Graph& group, const Domain& domain, const Schedule& schedule,
                             const Machine& machine) {
  absl::StatusOr<Kernel> kernel = domain.cls == LoopClass::kPacked ? lower_packed(group, domain, schedule, machine)
                                                                   : lower_connected(group, domain, schedule, machine);
  // Where all results of exp are rounded to narrower floats, the approximate exp instruction of a GPU is exact enough.
  // CPUs have no such instruction.
  if (kernel.ok() && machine.target->is_gpu() && rounds_all_exps(group))
    each_instr(kernel->body, [](Instr& instr) {
      for (ExprNode& node : instr.expr)
        node.rounded = node.kind == ExprNode::Kind::kOp && node.op == Op::exp && node.dtype != DType::f64;
    });
  return kernel;
}

}  // namespace wl
