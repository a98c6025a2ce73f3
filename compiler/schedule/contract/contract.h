// Contractions with elementwise work on their operands and results. What can be chosen, and the kernel, for CPUs and
// GPUs.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

Space space_contract(const Graph& group, const Domain& domain, const Machine& machine);
// On GPUs: a block owns a tile of rows x columns, and each thread a register tile of it.
Space space_gpu_contract(const Graph& group, const Domain& domain, const Machine& machine);
// Of such a contraction: 32-bit registers of a thread that computes with elements of so many words, and bytes of shared
// memory of a block, whose elements have so many bytes.
int64_t contract_registers(const Schedule& schedule, int64_t words);
int64_t contract_shared(const Schedule& schedule, int64_t bytes);

absl::StatusOr<Kernel> lower_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine);
absl::StatusOr<Kernel> lower_gpu_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                          const Machine& machine);

}  // namespace wl
