// The rights that a runner gives up before it loads untrusted code: core files, writing files, starting processes,
// opening sockets, signalling others, outliving its parent. Best effort where a system lacks a mechanism: the parent's
// deadline and its kill of the process group depend on none of them.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace wl {

// `parent`: the process with which this one must end. Exits at once if it has ended already. A runner that does not
// execute foreign code itself (because a GPU does, or because it only calls a compiler) keeps files and system calls,
// since drivers write to devices.
void enter_sandbox(pid_t parent, bool runs_foreign_code);

// Limits this process to about `seconds` more of CPU time.
void limit_cpu(int64_t seconds);
// Limits this process to about `bytes` of private memory in all (heap and anonymous), so that a kernel that allocates
// without end gets a null pointer before the machine runs out of memory.
void limit_memory(int64_t bytes);

}  // namespace wl
