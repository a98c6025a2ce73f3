// Whether a kernel that replaced another one makes the programs slower that run it: the batches that time a program
// with either kernel, and what follows from the times (docs/design/service.md#kernels-tried-in-place). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "server/jobs/whole.h"

namespace wl {

// A program that runs a kernel beside others: an answered job's graph, with the records that are served for its groups.
struct ProgramOfJob {
  Graph graph;  // the job's graph in the layout of its cover
  Machine machine;
  JobResult result;
  Records records;  // for every group of the result
  bool cold = false;
};

// Names of the two chains of a batch.
inline constexpr char kBeforeChain[] = "before", kAfterChain[] = "after";

// A batch of two chains of a program, one with each kernel, and the lower bound in ns of the program's time.
struct ProgramBatch {
  Batch batch;
  double floor_ns = 0;
};

// Returns the batch that times a program with the record `before` in place of the program's record of its key.
// FailedPrecondition: the program cannot run so, since the graph's inputs or outputs are not those of its answer, a
// record is missing, or no step runs the key.
absl::StatusOr<ProgramBatch> both_ways(const ProgramOfJob& program, const KernelRecord& before);

// What was measured of one program: the trials of both_ways(), named like the chains; empty: no worker could run it.
struct TimedProgram {
  std::string name;  // the job's label
  std::vector<Trial> trials;
};

// What follows from the times of some programs.
struct InPlaceVerdict {
  bool tried = false;   // whether some program was timed with both kernels, or failed with the new one alone
  bool slower = false;  // whether the old kernel should be served again
  double before_ns = 0, after_ns = 0;  // sums of the times of the programs that were timed with both
  int64_t calls = 0;                   // number of samples of these programs
  std::string message;                 // what was seen, for people
};

// The old kernel should be served again if the programs take more than 1 % longer with the new kernel (geometric mean
// over the programs), or if one fails with it and runs without it.
InPlaceVerdict judge_in_place(const std::vector<TimedProgram>& programs);

}  // namespace wl
