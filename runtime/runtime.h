// What it takes to run a compiled kernel in this process, and no more. CPUs: memory with red zones (buffer.h), a pool
// of threads that shares out the blocks of a launch (pool.h) and shared objects (object.h), all included here. GPUs,
// where asked for: gpu_device.h and gpu_kernel.h. The runner measures candidates with it and the client runs bundles
// with it, so both see the same placement and the same launch cost. Nothing here reads environment variables or prints.
#pragma once

#include "runtime/buffer.h"
#include "runtime/object.h"
#include "runtime/pool.h"
