// Contractions.
#include "compiler/plan/space_common.h"

namespace wl {

Space space_contract(const Graph&, const Domain&, const Machine& machine) {
  Space space;
  space.axes = {threads_axis(machine), compiler_axis(machine)};
  space.seeds = {{0, 0}};
  return space;
}

}  // namespace wl
