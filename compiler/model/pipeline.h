// The latency model of G. Huang et al., "ALCOP: Automatic Load-Compute Pipelining in Deep Learning Compiler for
// AI-GPUs" (MLSys 2023), for contractions on GPUs. Computation hides the loads of a loop, since copies are issued ahead
// (stages) and other loops run at the same time. This holds at two levels: from device memory to shared memory, and
// from shared memory to registers. That model leaves out bandwidth. Here a loop also takes at least the time that its
// bytes need, which is the limit of DeepCuts.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/space.h"
#include "compiler/target/target.h"

namespace wl {

// Returns the ns of a loop of `turns` iterations, each of which loads data and then uses it. `stages`: iterations in
// flight at once; 1: nothing is loaded ahead. `beside`: number of such loops that share the computing unit.
double pipelined_ns(double load_ns, double use_ns, double turns, double stages, double beside);

// The extents of a contraction, as the model needs them.
struct ProductExtents {
  ProductLoops loops;
  double depth = 1;                          // number of elements that each sum adds up
  double fresh_rows = 1, fresh_columns = 1;  // elements of an operand's inputs per element that the loops read
  int64_t bytes = 4;                         // size of an element in the products
  DType dtype = DType::f32;                  // of the sums
};
ProductExtents product_extents(const Graph& group, const Domain& domain);

// The time in ns that a schedule of space_gpu_contract() should take on a GPU or its simulator. Times of a step along K
// are those of one block that has a multiprocessor alone.
struct GpuContractTime {
  double ns = 0;                            // time of the whole kernel
  double products = 0, shared = 0, l2 = 0;  // time of a step for multiplying, for reading shared memory, for reading L2
  double cache = 0, memory = 0;  // time of a step for reading the cache behind the dies' L2s, for reading memory
  double use = 0;                // time of a step once its data has arrived
  double steps = 0, beside = 1, waves = 1;  // steps of a block; blocks at once on a multiprocessor; rounds of blocks
};
GpuContractTime gpu_contract_time(const Schedule& schedule, const ProductExtents& product, const Machine& machine);
double gpu_contract_ns(const Schedule& schedule, const ProductExtents& product, const Machine& machine);

}  // namespace wl
