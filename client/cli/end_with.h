// Ends this process when another process ends, such as the process that started it.
#pragma once

#include <cstdint>

#include "compiler/base/status.h"

namespace wl {

// Watches another process from now on, on a thread of its own. When that process ends (or has ended already), this
// process gets a SIGTERM and, if it still runs two seconds later, ends at once with exit code 6. InvalidArgument: the
// number cannot be the id of a process, or is a thread's id.
absl::Status end_with(int64_t process);

}  // namespace wl
