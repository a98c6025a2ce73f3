// Describes the GPUs of this machine as devices for a worker: from the driver, the management library and the installed
// compilers. Called only in a runner, as everything that calls a driver, since drivers may hang or crash.
#pragma once

#include "worker/drivers/messages.h"

namespace wl {

// Returns every GPU that the drivers of this machine show, and a reason for each family without one.
DescribeAnswer describe_gpus();

}  // namespace wl
