// A tuned graph at run time: buffers, and steps that call kernels on them one after the other. Intermediate values
// share one arena. An Executor runs a Program (executor.h); a bundle is a Program on disk (bundle.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/weights/fold_weights.h"

namespace wl {

enum class Place { kInput, kOutput, kArena };  // the kind of memory in which a buffer is placed

struct ProgramBuffer {
  std::string name;  // name of the input or output; "%12" for an intermediate
  DType dtype = DType::f32;
  Shape shape;
  Place place = Place::kArena;
  int64_t offset = 0;   // offset of the buffer in the arena, in bytes; used only if the place is kArena
  Fill fill;            // how the buffer's values are generated when no data are given; used only for inputs
  uint64_t stream = 0;  // number of the random stream that generates the buffer's values; used only for inputs
  int64_t bytes() const { return elements(shape) * size_of(dtype); }
};

struct ProgramKernel {
  std::string key;    // problem key of the group that the kernel was tuned for
  std::string plan;   // plan of the kernel as text
  std::string graph;  // canonical text of the group that the kernel computes
  Source source;
  int inputs = 0, outputs = 0;  // how many input and output arguments the kernel has; inputs come first
  std::string object;           // bytes of the kernel's shared object; empty in a program that was loaded from disk
  std::string object_path;      // path of the kernel's shared object, in a program that was loaded from disk
};

struct ProgramStep {
  int kernel = 0;
  std::vector<int> args;  // indices of the buffers that the step passes to its kernel, in call order
};

struct ProgramOutput {
  std::string name;
  int buffer = 0;  // index of the output's buffer, which may also be that of another output or of an input
};

class UseMeter;  // client/program/uses.h

struct Program {
  std::string graph_text;  // canonical text of the tuned graph, with which `warploom run --check` compares the results
  std::string graph_hash;
  std::string target, device, fingerprint;
  std::map<std::string, int64_t> bind;  // extents of symbolic dimensions, by name
  std::vector<std::string> weights;     // names of the graph's inputs that are weights, including folded ones
  std::vector<FoldedWeight> folded;     // how folded weights are computed from other weights
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramOutput> outputs;
  std::vector<ProgramKernel> kernels;  // the distinct kernels; several steps may call the same one
  std::vector<ProgramStep> steps;
  int64_t arena_bytes = 0;
  std::shared_ptr<UseMeter> meter = {};  // counts what executors of the program run; null: nothing is counted
};

// Whether the input with that name is a weight, folded or not.
bool is_weight(const Program& program, const std::string& name);

// Returns the number of the buffer of an input, which may be a weight; -1 if no input has that name.
int input_buffer(const Program& program, const std::string& name);

// Checks the steps, and assigns offsets in the arena to the intermediates. InvalidArgument: a step has more or fewer
// arguments than its kernel, stores to an input, or reads a value before a step has stored it; or an output that has
// elements is stored by no step.
absl::Status lay_out(Program& program);

// Sizes of a program's memory in bytes.
struct MemoryUse {
  int64_t inputs = 0, outputs = 0;
  int64_t arena = 0;          // bytes of the arena, which holds all intermediate values
  int64_t intermediates = 0;  // bytes that the intermediate values would take if none reused another's memory
  // The largest total bytes of intermediate values that are live at the same time; no arena can be smaller.
  int64_t live = 0;
};
MemoryUse memory_of(const Program& program);

}  // namespace wl
