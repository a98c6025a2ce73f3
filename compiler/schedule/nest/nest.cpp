#include "compiler/schedule/nest/nest.h"

#include "compiler/schedule/nest/cpu.h"
#include "compiler/schedule/nest/gpu.h"

namespace wl {

absl::StatusOr<Kernel> lower_nest(const Graph& group, const Domain& domain, const Schedule& schedule,
                                  const Machine& machine) {
  if (machine.target->is_gpu()) return GpuRows(group, domain, schedule, machine).run();
  return CpuRows(group, domain, schedule, machine).run();
}

}  // namespace wl
