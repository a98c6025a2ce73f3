// Describes the GPUs of this machine as devices that a worker offers: from the driver, the management library, and the
// compilers that are installed. Called in a runner only, as is everything that talks to a driver.
#pragma once

#include "worker/drivers/messages.h"

namespace wl {

// Returns every GPU that the drivers of this machine show, and the reason for each family without one.
DescribeAnswer describe_gpus();

}  // namespace wl
