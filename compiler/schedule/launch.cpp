#include "compiler/schedule/launch.h"

namespace wl {

void set_launch(Kernel& kernel, std::string name, const Schedule& schedule, const Machine& machine) {
  kernel.name = std::move(name);
  if (kernel.wave > 0) {
    kernel.team = static_cast<int>(schedule[kTeam]);
    kernel.teams = static_cast<int>(schedule[kTeams]);
    kernel.threads = kernel.team * kernel.teams;
    kernel.blocks = static_cast<int>(schedule[kMinBlocks]);
    kernel.compiler = machine.target->family == "sim"    ? (machine.gcc ? "gcc" : "clang")
                      : machine.target->family == "cuda" ? "nvrtc"
                                                         : "hip";
    return;
  }
  kernel.threads = static_cast<int>(schedule[kThreads]);
  kernel.compiler = value_text(kCompiler, schedule[kCompiler]);
}

Affine turns_of_block(KernelBuilder& out, const Affine& place, int64_t count, int64_t blocks) {
  if (count % blocks == 0) return fixed(count / blocks);
  return affine(out.derived("turns", {sum(fixed(count - 1 + blocks), place, -1)}, blocks));
}

}  // namespace wl
