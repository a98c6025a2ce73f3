// What a runner gives up before it loads code nobody trusts: core files, writing files, starting processes, opening
// sockets, signalling others, outliving its parent. Best effort where a system lacks a mechanism: the parent's deadline
// and its kill of the process group do not depend on any of it.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace wl {

// `parent`: the process whose end must end this one. Exits at once when it has already ended. A runner that does not
// run foreign code itself (a GPU does, or a compiler is asked) keeps files and system calls: drivers write to devices.
void enter_sandbox(pid_t parent, bool runs_foreign_code);

// Lets this process use about `seconds` more of CPU time.
void limit_cpu(int64_t seconds);
// Lets it map about `bytes` of private memory in all (heap and anonymous), so that a kernel that allocates without end
// meets a null pointer before the machine runs out.
void limit_memory(int64_t bytes);

}  // namespace wl
