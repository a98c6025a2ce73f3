// The latency model of G. Huang et al., "ALCOP: Automatic Load-Compute Pipelining in Deep Learning Compiler for
// AI-GPUs" (MLSys 2023), for contractions on GPUs. Computation hides the loads of a loop, since copies are issued ahead
// (stages) and other loops run at the same time. This holds at two levels: from device memory to shared memory, and
// from shared memory to registers. ALCOP's model leaves out bandwidth. Here a loop also takes at least the time that
// transferring its bytes takes, as in the model of DeepCuts (PLDI 2021).
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/space.h"
#include "compiler/target/target.h"

namespace wl {

// Returns the time in ns of a loop of `turns` iterations, each of which loads data and then uses it. `stages`: how
// many iterations are in flight at once; 1: no data is loaded ahead. `beside`: how many such loops share the computing
// unit.
double pipelined_ns(double load_ns, double use_ns, double turns, double stages, double beside);

// The extents of a contraction, as the model needs them.
struct ProductExtents {
  ProductLoops loops;
  double depth = 1;  // extent of K: number of products that each sum adds up
  // For the left operand (which has the rows) and the right one (which has the columns): the number of its elements in
  // memory, divided by the number of elements that the loops read of it. This is below 1 where windows overlap.
  double fresh_rows = 1, fresh_columns = 1;
  int64_t bytes = 4;         // size in bytes of an element in the products: that of a sum, at least 4
  DType dtype = DType::f32;  // dtype of the sums
};
ProductExtents product_extents(const Graph& group, const Domain& domain);

// The predicted time in ns of a schedule of space_gpu_contract() on a GPU or its simulator. Times of a step along K
// are those of one block that has a multiprocessor to itself.
struct GpuContractTime {
  double ns = 0;  // time of the whole kernel in ns
  // Times in ns of a step along K: for multiplying, for reading shared memory, and for reading L2.
  double products = 0, shared = 0, l2 = 0;
  // Times in ns of a step along K: for reading the cache behind the L2s of several dies, and for reading memory.
  double cache = 0, memory = 0;
  double use = 0;  // ns for which a step along K uses its data once it is in shared memory
  // Steps along K of each block; blocks that share a multiprocessor; rounds in which the GPU runs all blocks.
  double steps = 0, beside = 1, waves = 1;
};
GpuContractTime gpu_contract_time(const Schedule& schedule, const ProductExtents& product, const Machine& machine);
double gpu_contract_ns(const Schedule& schedule, const ProductExtents& product, const Machine& machine);

}  // namespace wl
