// Children in a bubblewrap: own namespaces, no network, an empty root with the system's programs and libraries
// read-only, a /tmp of bounded size, no capabilities, and the end of the child when this process ends. A child sees
// nothing else of this machine: no file of the worker, no process, no socket.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/drivers/process.h"

namespace wl {

// How the children of a worker are kept apart from the machine.
enum class Sandbox {
  kNone,        // as processes of this user: they read what the user may read
  kBubblewrap,  // each in a bubblewrap
};
const char* name_of(Sandbox sandbox);

struct Box {
  std::vector<std::string> read = {};  // files and folders beyond the system's that the child sees, at the same paths
  std::string work = {};               // folder that the child may write, seen as /work, its working folder; may be ""
  int64_t tmp_bytes = int64_t{1} << 28;
  bool processes = false;  // mounts /proc, of the child's own processes
  bool gpus = false;       // shows the device nodes and libraries of GPUs
  int filter_fd = -1;      // descriptor, in the child, of a program for seccomp (drivers/system_calls.h)
};

// Changes `options` so that its program runs in a box. Its environment must not be inherited. The folders of PATH and
// LD_LIBRARY_PATH in that environment are visible, and the libraries and headers beside a folder called bin.
void put_in(const Box& box, Process::Options& options);

// Whether this machine can make boxes: FailedPrecondition says what is missing, and what to do.
absl::Status sandbox_works();
// The last words of such a message: how to do without.
extern const char* const kWithoutSandbox;

}  // namespace wl
