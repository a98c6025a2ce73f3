// Everything that is needed to run a compiled kernel in this process. This header includes the part for CPUs: memory
// with red zones (buffer.h), a pool of threads that executes the blocks of a launch (pool.h) and shared objects
// (object.h). The headers for GPUs, gpu_device.h and gpu_kernel.h, are included separately. The runner measures
// candidates with the code of this folder and the client runs bundles with it, so kernel arguments are placed in memory
// alike and launches cost the same in both. This code neither reads environment variables nor prints.
#pragma once

#include "runtime/buffer.h"
#include "runtime/object.h"
#include "runtime/pool.h"
