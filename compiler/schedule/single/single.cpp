#include "compiler/schedule/single/single.h"

#include <algorithm>

#include "compiler/kernel/verify.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/data_movement.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/transpose/transpose.h"

namespace wl {
namespace {

absl::StatusOr<Kernel> kernel_of(const Graph& group, const Domain& domain, const Schedule& schedule,
                                 const Machine& machine) {
  // Where no output has an element, the kernel has no blocks.
  if (std::any_of(domain.parallel.begin(), domain.parallel.end(),
                  [&](AtomId a) { return domain.atoms[a].extent == 0; })) {
    Kernel nothing = KernelBuilder(group, machine).finish();
    nothing.name = "nothing";
    nothing.grid = 0;
    return nothing;
  }
  const bool gpu = machine.target->is_gpu();
  switch (domain.cls) {
    case LoopClass::kMap:
      if (gpu && schedule[kStaged] != 0) return lower_gpu_transpose(group, domain, schedule, machine);
      if (gpu) return lower_nest(group, domain, schedule, machine);
      if (transposes(domain, machine)) return lower_transpose(group, domain, schedule, machine);
      return lower_nest(group, domain, schedule, machine);
    case LoopClass::kRows:
    case LoopClass::kColumns:
      return lower_nest(group, domain, schedule, machine);
    case LoopClass::kContract:
      if (gpu) return lower_gpu_contract(group, domain, schedule, machine);
      return lower_contract(group, domain, schedule, machine);
    case LoopClass::kStitched:
    case LoopClass::kPacked:
      break;
  }
  WL_CHECK(false, "a group of class ", name_of(domain.cls), " is not one loop nest");
}

// Returns Unimplemented if a kernel uses elementary functions or remainders of doubles, because these come from a
// library that the compilers of some targets lack.
absl::Status check_functions(const std::vector<Instr>& body, const Target& target) {
  for (const Instr& instr : body) {
    for (const ExprNode& node : instr.expr) {
      if (node.kind != ExprNode::Kind::kOp || node.dtype != DType::f64) continue;
      if (info(node.op).cost >= 10 || node.op == Op::fmod || node.op == Op::mod)
        return unimplemented(name_of(node.op), " of f64 has no spelling for ", target.name);
    }
    WL_RETURN_IF_ERROR(check_functions(instr.body, target));
  }
  return absl::OkStatus();
}

}  // namespace

Space space_single(const Graph& group, const Domain& domain, const Machine& machine) {
  const bool gpu = machine.target->is_gpu();
  switch (domain.cls) {
    case LoopClass::kMap:
      if (gpu) return space_gpu_tiles(group, domain, machine);
      return (transposes(domain, machine) ? space_transpose : space_map)(group, domain, machine);
    case LoopClass::kRows:
      return (gpu ? space_gpu_rows : space_rows)(group, domain, machine);
    case LoopClass::kColumns:
      return (gpu ? space_gpu_tiles : space_columns)(group, domain, machine);
    case LoopClass::kContract:
      return (gpu ? space_gpu_contract : space_contract)(group, domain, machine);
    case LoopClass::kStitched:
    case LoopClass::kPacked:
      break;
  }
  WL_CHECK(false, "a group of class ", name_of(domain.cls), " is not one loop nest");
}

absl::StatusOr<Kernel> lower_single(const Graph& group, const Domain& domain, const Schedule& schedule,
                                    const Machine& machine) {
  WL_ASSIGN_OR_RETURN(Kernel kernel, kernel_of(group, domain, schedule, machine));
  if (schedule[kStreamLoads] != 0) stream_loads(kernel, group, domain);
  const Target& target = *machine.target;
  if (target.is_gpu() && (target.features & kF64Functions) == 0)
    WL_RETURN_IF_ERROR(check_functions(kernel.body, target));
  WL_RETURN_IF_ERROR(verify(kernel));
  return kernel;
}

}  // namespace wl
