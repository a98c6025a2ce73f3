// The latency model of G. Huang et al., "ALCOP: Automatic Load-Compute Pipelining in Deep Learning Compiler for
// AI-GPUs" (MLSys 2023), for contractions on GPUs: loads of a loop are hidden behind what is computed meanwhile, by
// copies that are issued ahead (stages) and by others that run beside it, at two levels: device memory to shared
// memory, and shared memory to registers. What it misses is bandwidth: a loop takes at least as long as its bytes do
// (DeepCuts' limit).
#pragma once

#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"
#include "compiler/target/target.h"

namespace wl {

// The ns of a loop of `turns` iterations, each of which loads what it then uses. `stages`: iterations in flight at
// once; 1: nothing is loaded ahead. `beside`: how many such loops share the unit that computes.
double pipelined_ns(double load_ns, double use_ns, double turns, double stages, double beside);

// The extents of a contraction's domain.
struct ProductExtents {
  double rows = 1, columns = 1;  // of one product
  double depth = 1;              // elements that are summed up
  double outer = 1;              // products
  int64_t bytes = 4;             // of an element while it is computed with
  DType dtype = DType::f32;      // of the sums
};
ProductExtents product_extents(const Graph& group, const Domain& domain);

// What a schedule of space_gpu_contract() should take on a machine with lanes, in ns.
double gpu_contract_ns(const Schedule& schedule, const ProductExtents& product, const Machine& machine);

}  // namespace wl
