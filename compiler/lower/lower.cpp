#include "compiler/lower/lower.h"

#include <algorithm>

#include "compiler/lower/contract.h"
#include "compiler/lower/contract_team.h"
#include "compiler/lower/loops.h"
#include "compiler/lower/moves.h"
#include "compiler/lower/packed.h"
#include "compiler/lower/stitched.h"
#include "compiler/lower/transpose.h"
#include "compiler/lower/verify.h"

namespace wl {

namespace {

absl::StatusOr<Kernel> lower_class(const Graph& group, const Domain& domain, const Schedule& schedule,
                                   const Machine& machine) {
  // No output has an element: a kernel of no blocks.
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
      if (gpu && schedule.get("staged", 0) != 0) return lower_staged_transpose(group, domain, schedule, machine);
      if (gpu) return LoopLowering(group, domain, schedule, machine).run();
      if (transposes(domain, machine)) return lower_transpose(group, domain, schedule, machine);
      return LoopLowering(group, domain, schedule, machine).run();
    case LoopClass::kRows:
    case LoopClass::kColumns:
      return LoopLowering(group, domain, schedule, machine).run();
    case LoopClass::kContract:
      if (gpu) return lower_team_contract(group, domain, schedule, machine);
      return ContractLowering(group, domain, schedule, machine).run();
    case LoopClass::kStitched:
      return lower_stitched(group, domain, schedule, machine);
    case LoopClass::kPacked:
      return lower_packed(group, domain, schedule, machine);
  }
  return invalid("loop class ", static_cast<int>(domain.cls));
}

// Elementary functions of doubles are a library's, which not every target's compiler brings.
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

absl::StatusOr<Kernel> lower(const Graph& group, const Domain& domain, const Schedule& schedule,
                             const Machine& machine) {
  WL_ASSIGN_OR_RETURN(Kernel kernel, lower_class(group, domain, schedule, machine));
  if (schedule.get("load_past", 0) != 0) stream_loads(kernel, group, domain);
  const Target& target = *machine.target;
  if (target.is_gpu() && (target.gpu.features & kF64Functions) == 0)
    WL_RETURN_IF_ERROR(check_functions(kernel.body, target));
  WL_RETURN_IF_ERROR(verify(kernel));
  return kernel;
}

}  // namespace wl
