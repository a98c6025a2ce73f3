// The rights that a runner gives up before it loads untrusted code: core files, writing files, starting processes and
// threads, opening sockets, signalling other processes, and outliving its parent. This is the inner wall of the
// sandbox; the bubblewrap sandbox in which a worker starts its runners (drivers/bubblewrap.h) is the outer one. A right
// for which the system lacks a mechanism is kept: the parent can kill the runner at its deadline all the same. All
// resource limits are hard.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace wl {

// Called when the runner starts. `parent`: the process with which this one must end; exits at once if it has already
// ended. A runner that does not execute foreign code itself (because a GPU does, or because it only calls a compiler)
// may still write files and make the system calls of drivers and compilers. A runner that does must call seal() before
// the first foreign instruction.
void enter_sandbox(pid_t parent, bool runs_foreign_code);

// Restricts this process to the system calls of a candidate, no new threads, and about `cpu_s` more seconds of CPU
// time. `libraries`: also permits what libraries need that generate code at run time.
void seal(int64_t cpu_s, bool libraries);
// Limits this process to about `bytes` of private memory (heap and anonymous mappings), so that a kernel that allocates
// without end gets a null pointer before the machine runs out of memory.
void limit_memory(int64_t bytes);

}  // namespace wl
