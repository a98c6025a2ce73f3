// The rights that a runner gives up before it loads untrusted code: core files, writing files, starting processes and
// threads, opening sockets, signalling others, outliving its parent. This is the inner wall; the box in which a worker
// starts its runners (drivers/bubblewrap.h) is the outer one. Best effort where a system lacks a mechanism: the
// parent's deadline and its kill of the runner depend on none of them. All limits are hard.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace wl {

// `parent`: the process with which this one must end. Exits at once if it has ended already. A runner that does not
// execute foreign code itself (because a GPU does, or because it only calls a compiler) keeps files and the system
// calls of drivers and compilers. One that does calls seal() before the first foreign instruction.
void enter_sandbox(pid_t parent, bool runs_foreign_code);

// From here on this process has the system calls of a candidate only, no new threads, and about `cpu_s` seconds of CPU
// time. `libraries`: with what libraries need that make code at run time.
void seal(int64_t cpu_s, bool libraries);
// Limits this process to about `bytes` of private memory in all (heap and anonymous), so that a kernel that allocates
// without end gets a null pointer before the machine runs out of memory.
void limit_memory(int64_t bytes);

}  // namespace wl
