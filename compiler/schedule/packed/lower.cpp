#include <algorithm>

#include "compiler/kernel/verify.h"
#include "compiler/schedule/inliner.h"
#include "compiler/schedule/launch.h"
#include "compiler/schedule/packed/packed.h"
#include "compiler/schedule/stitched/stitched.h"

namespace wl {
namespace {

absl::StatusOr<std::vector<Kernel>> lower_members(const Packed& packed, const Schedule& whole, const Machine& machine) {
  const Machine own = member_machine(machine);
  std::vector<Kernel> kernels;
  for (const Member& member : packed.members) {
    WL_ASSIGN_OR_RETURN(const Space space, space_of_connected(member.graph, member.domain, own));
    const Schedule schedule = member_schedule(space, member.kind, whole, own.target->is_gpu());
    WL_ASSIGN_OR_RETURN(Kernel kernel, lower_connected(member.graph, member.domain, schedule, own));
    if (kernel.passes().size() > 1 || kernel.cluster > 1)
      return invalid("a member of a packed group has passes or clusters; only single launches can be packed");
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace

absl::StatusOr<Kernel> lower_packed(const Graph& group, const Domain& domain, const Schedule& schedule,
                                    const Machine& machine) {
  const std::vector<Member>& members = domain.packed->members;
  WL_ASSIGN_OR_RETURN(std::vector<Kernel> kernels, lower_members(*domain.packed, schedule, machine));
  KernelBuilder out(group, machine);
  set_launch(out.kernel(), "packed", schedule, machine);
  Kernel& whole = out.kernel();
  int64_t blocks = 0, most = 0;
  for (const Kernel& kernel : kernels) {
    if (whole.wave > 0 && kernel.grid > 0 && (kernel.team != whole.team || kernel.teams != whole.teams))
      return invalid("all members of a packed group need the same threads; one has ", kernel.teams, " teams of ",
                     kernel.team, " threads, others ", whole.teams, " of ", whole.team);
    whole.unroll = std::max(whole.unroll, kernel.unroll);
    whole.accumulators = std::max(whole.accumulators, kernel.accumulators);
    blocks += kernel.grid;
    most = std::max(most, kernel.grid);
  }
  whole.grid = whole.wave > 0 ? blocks : std::min<int64_t>(most, whole.threads);
  int64_t first = 0;
  for (size_t m = 0; m < kernels.size(); ++m) {
    const int64_t grid = kernels[m].grid;
    if (grid == 0) continue;
    const VarId turn = out.loop_var("turn");
    std::vector<Affine> trips;
    Affine block;
    if (whole.wave > 0) {
      // The loop's variable is always 0. It is added to the member's block number, so that variables derived from this
      // number are computed inside the loop, and therefore only in the member's blocks.
      block = sum(affine(turn), affine(kBlockVar, 1, -first));
      trips = section_trips(first, first + grid);
    } else {
      const int64_t share = (grid + whole.grid - 1) / whole.grid;
      block = sum(affine(turn), affine(kBlockVar, share));
      trips = {fixed(share)};
      if (share * whole.grid != grid) trips.push_back(affine(kBlockVar, -share, grid));
    }
    const KernelInliner inliner(std::move(kernels[m]), {members[m].buffers, block, {}, {}, 0, static_cast<int>(m) + 1},
                                out);
    out.open_loop(turn, std::move(trips));
    out.push_all(inliner.body(/*barriers=*/true));
    out.close_loop();
    first += grid;
  }
  Kernel packed = out.finish();
  WL_RETURN_IF_ERROR(verify(packed));
  return packed;
}

}  // namespace wl
