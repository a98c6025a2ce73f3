#include "compiler/schedule/launch.h"

namespace wl {

void set_launch(Kernel& kernel, std::string name, const Schedule& schedule, const Machine& machine) {
  kernel.name = std::move(name);
  if (kernel.wave > 0) {
    kernel.team = static_cast<int>(schedule.get("team", 1));
    kernel.teams = static_cast<int>(schedule.get("teams", kernel.wave));
    kernel.threads = kernel.team * kernel.teams;
    kernel.blocks = static_cast<int>(schedule.get("blocks", 0));
    kernel.compiler = machine.target->family == "sim"    ? (machine.gcc ? "gcc" : "clang")
                      : machine.target->family == "cuda" ? "nvrtc"
                                                         : "hip";
    return;
  }
  kernel.threads = static_cast<int>(schedule.get("threads", machine.threads));
  kernel.compiler = schedule.get("compiler", 0) == 0 ? "gcc" : "clang";
}

}  // namespace wl
