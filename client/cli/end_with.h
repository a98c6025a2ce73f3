// Ends this process when another one ends, such as the one that started it.
#pragma once

#include <cstdint>

#include "compiler/base/status.h"

namespace wl {

// Watches another process from now on, on a thread of its own. When that process has ended (or if it had before), this
// one gets a SIGTERM and, if it still runs two seconds later, ends at once with exit code 6. InvalidArgument: the
// number cannot be the id of a process, or is that of a thread.
absl::Status end_with(int64_t process);

}  // namespace wl
