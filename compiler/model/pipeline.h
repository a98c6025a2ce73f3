// The latency model of G. Huang et al., "ALCOP: Automatic Load-Compute Pipelining in Deep Learning Compiler for
// AI-GPUs" (MLSys 2023), for contractions on GPUs. The loads of a loop are hidden behind computation, since copies are
// issued ahead (stages) and other loops run beside it, at two levels: device memory to shared memory, and shared memory
// to registers. The model leaves out bandwidth, which is added here: a loop takes at least as long as its bytes do (the
// limit of DeepCuts).
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/space.h"
#include "compiler/target/target.h"

namespace wl {

// The ns of a loop of `turns` iterations, each of which loads what it then uses. `stages`: iterations in flight at
// once; 1: nothing is loaded ahead. `beside`: how many such loops share the unit that computes.
double pipelined_ns(double load_ns, double use_ns, double turns, double stages, double beside);

// The extents of a contraction's domain.
struct ProductExtents {
  ProductLoops loops;
  double depth = 1;                          // elements that are summed up
  double fresh_rows = 1, fresh_columns = 1;  // input elements of each operand per element that the loops read
  int64_t bytes = 4;                         // of an element in computation
  DType dtype = DType::f32;                  // of the sums
};
ProductExtents product_extents(const Graph& group, const Domain& domain);

// The time in ns that a schedule of space_gpu_contract() should take on a machine with lanes (a GPU or its simulator).
// Parts of a step along K are those of one block that has a multiprocessor alone.
struct GpuContractTime {
  double ns = 0;                            // of the whole kernel
  double products = 0, shared = 0, l2 = 0;  // of a step: multiplying; reading shared memory; reading L2
  double cache = 0, memory = 0;             // of a step: reading the cache behind the dies' L2s; reading memory
  double use = 0;                           // of a step, once its data has arrived
  double steps = 0, beside = 1, waves = 1;  // of a block; blocks of a multiprocessor; rounds of blocks
};
GpuContractTime gpu_contract_time(const Schedule& schedule, const ProductExtents& product, const Machine& machine);
double gpu_contract_ns(const Schedule& schedule, const ProductExtents& product, const Machine& machine);

}  // namespace wl
