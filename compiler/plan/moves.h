// Facts about how the data of a group moves, which spaces of machines with lanes and their lowering share.
#pragma once

#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

// Inputs of which a walk over the whole domain reads no element twice: all their readers read the same, along every
// atom, and none by an index. Caches need not keep them, unless a kernel walks more than once.
std::vector<NodeId> inputs_read_once(const Graph& group, const Domain& domain);

}  // namespace wl
