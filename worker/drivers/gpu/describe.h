// The GPUs of this machine as devices that a worker offers: what the driver tells, what the management library adds,
// and what compiles for them here. In a runner only, as everything that talks to a driver.
#pragma once

#include "worker/drivers/messages.h"

namespace wl {

// Every GPU that the drivers of this machine show, and for each family without one the reason.
DescribeAnswer describe_gpus();

}  // namespace wl
