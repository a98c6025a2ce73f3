// Everything that is needed to run a compiled kernel in this process. This header includes the part for CPUs: memory
// with red zones (buffer.h), a pool of threads that executes the blocks of a launch (pool.h) and shared objects
// (object.h). The part for GPUs is included separately: gpu_device.h and gpu_kernel.h. The runner measures candidates
// with this folder and the client runs bundles with it, so both place memory alike and have the same launch costs.
// Nothing here reads environment variables or prints.
#pragma once

#include "runtime/buffer.h"
#include "runtime/object.h"
#include "runtime/pool.h"
