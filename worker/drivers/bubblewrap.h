// Sandboxes made by bubblewrap, called boxes in the code. A child in a box has its own namespaces, no network, an empty
// root folder with the system's programs and libraries read-only, a /tmp of bounded size and no capabilities, and ends
// when this process ends. It sees nothing else of this machine: no files of the worker, no other processes, no sockets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/drivers/process.h"

namespace wl {

// How the children of a worker are isolated from the machine.
enum class Sandbox {
  kNone,        // children run in no sandbox: they may read and change what the user may
  kBubblewrap,  // each child runs in a sandbox of its own, made by bubblewrap
};
const char* name_of(Sandbox sandbox);

struct Box {
  std::vector<std::string> read = {};  // files and folders that the child may only read, besides those of the system
  // folder that the child may write; the child sees it as /work, where it starts; empty: none
  std::string work = {};
  int64_t tmp_bytes = int64_t{1} << 28;
  bool processes = false;  // whether to mount a /proc that shows only the processes of this sandbox
  bool gpus = false;       // whether the child sees the device nodes and libraries of GPUs
  int filter_fd = -1;      // the child's descriptor of a seccomp program (drivers/system_calls.h); -1: none
};

// Changes `options` so that the program runs in a sandbox that `box` describes. options.inherit_environment must be
// false. The program sees the folders of PATH and LD_LIBRARY_PATH in options.environment, and the libraries and headers
// beside a folder named bin.
void put_in(const Box& box, Process::Options& options);

// Tries to make a sandbox. FailedPrecondition says why this machine cannot make one, and what to do.
absl::Status sandbox_works();
// The end of error messages about missing sandboxes: how to continue without one.
extern const char* const kWithoutSandbox;

}  // namespace wl
