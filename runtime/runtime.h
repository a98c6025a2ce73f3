// Everything that running a compiled kernel in this process needs. For CPUs: memory with red zones (buffer.h), a pool
// of threads that executes the blocks of a launch (pool.h) and shared objects (object.h), all included here. For GPUs:
// gpu_device.h and gpu_kernel.h, which are included separately. The runner measures candidates with it and the client
// runs bundles with it, so both have the same placement and launch cost. Nothing here reads environment variables or
// prints.
#pragma once

#include "runtime/buffer.h"
#include "runtime/object.h"
#include "runtime/pool.h"
