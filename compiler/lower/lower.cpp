#include "compiler/lower/lower.h"

#include "compiler/lower/contract.h"
#include "compiler/lower/loops.h"
#include "compiler/lower/transpose.h"

namespace wl {

absl::StatusOr<Kernel> lower(const Graph& group, const Domain& domain, const Schedule& schedule,
                             const Machine& machine) {
  switch (domain.cls) {
    case LoopClass::kMap:
      if (transposes(domain, machine)) return lower_transpose(group, domain, schedule, machine);
      return LoopLowering(group, domain, schedule, machine).run();
    case LoopClass::kRows:
    case LoopClass::kColumns:
      return LoopLowering(group, domain, schedule, machine).run();
    case LoopClass::kContract:
      return ContractLowering(group, domain, schedule, machine).run();
  }
  return invalid("loop class ", static_cast<int>(domain.cls));
}

}  // namespace wl
