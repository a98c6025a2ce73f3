// Ends this process with the one that started it.
#pragma once

#include <cstdint>

#include "compiler/base/status.h"

namespace wl {

// Watches a process from now on, on a thread of its own. When it has ended, or had already, this process gets a SIGTERM
// and, if it is still there two seconds later, ends at once with exit code 6. InvalidArgument: no process has this id
// or could have it.
absl::Status end_with(int64_t process);

}  // namespace wl
