#include "compiler/lower/moves.h"

#include <algorithm>
#include <functional>

#include "compiler/plan/moves.h"

namespace wl {
namespace {

void each_instr(std::vector<Instr>& body, const std::function<void(Instr&)>& visit) {
  for (Instr& instr : body) {
    visit(instr);
    each_instr(instr.body, visit);
  }
}

}  // namespace

void stream_loads(Kernel& kernel, const Graph& group, const Domain& domain) {
  const std::vector<NodeId> inputs = group.inputs();
  std::vector<int> readers(kernel.buffers.size(), 0);
  each_instr(kernel.body, [&](Instr& instr) {
    if (instr.op == InstrOp::kLoad || instr.op == InstrOp::kGather) ++readers[instr.slice.buffer];
  });
  const std::vector<NodeId> once = inputs_read_once(group, domain);
  each_instr(kernel.body, [&](Instr& instr) {
    if (instr.op != InstrOp::kLoad || instr.slice.buffer >= static_cast<BufferId>(inputs.size())) return;
    instr.streaming = readers[instr.slice.buffer] == 1 &&
                      std::find(once.begin(), once.end(), inputs[instr.slice.buffer]) != once.end();
  });
}

}  // namespace wl
