// A tuned graph at run time: buffers, and steps that call kernels on them one after the other. Intermediate values
// share one arena. An Executor runs a Program (executor.h); a bundle is a Program on disk (bundle.h).
#pragma once

#include <cstdint>
#include <map>
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
  int64_t offset = 0;   // offset in bytes in the arena; kArena only
  Fill fill;            // how values are generated when no data are given; kInput only
  uint64_t stream = 0;  // number of the generator's stream for the values; kInput only
  int64_t bytes() const { return elements(shape) * size_of(dtype); }
};

struct ProgramKernel {
  std::string key;    // problem key of the group that the kernel was tuned for
  std::string plan;   // plan text of the kernel
  std::string graph;  // canonical text of that group, which the kernel computes
  Source source;
  int inputs = 0, outputs = 0;  // numbers of input and output arguments; inputs come first
  std::string object;           // bytes of the shared object; empty in a program loaded from disk
  std::string object_path;      // path of the object, in a program loaded from disk
};

struct ProgramStep {
  int kernel = 0;
  std::vector<int> args;  // indices of the argument buffers, in call order
};

struct ProgramOutput {
  std::string name;
  int buffer = 0;  // number of a buffer, which may also be that of another output or of an input
};

struct Program {
  std::string graph_text;  // canonical text of the tuned graph, with which --check compares
  std::string graph_hash;
  std::string target, device, fingerprint;
  std::map<std::string, int64_t> bind;  // extents of symbolic dimensions, by name
  std::vector<std::string> weights;     // names of the inputs that are weights, including folded ones
  std::vector<FoldedWeight> folded;     // how folded weights are computed from other weights
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramOutput> outputs;
  std::vector<ProgramKernel> kernels;  // each distinct kernel once, used by any number of steps
  std::vector<ProgramStep> steps;
  int64_t arena_bytes = 0;
};

// Whether the input with that name is a weight, folded or not.
bool is_weight(const Program& program, const std::string& name);

// Returns the number of the buffer of an input, which may be a weight; -1 if no input has that name.
int input_buffer(const Program& program, const std::string& name);

// Checks the steps, and assigns offsets in the arena to the intermediates. InvalidArgument: a step has another number
// of arguments than its kernel, stores to an input or reads a value before a step has stored it, or no step stores an
// output that has elements.
absl::Status lay_out(Program& program);

// Sizes of a program's memory in bytes.
struct MemoryUse {
  int64_t inputs = 0, outputs = 0;
  int64_t arena = 0;          // bytes of the arena that holds all intermediates
  int64_t intermediates = 0;  // bytes that the intermediates would take without reuse
  int64_t live = 0;           // the largest total size of values that are live at the same time; no arena can be
                              // smaller
};
MemoryUse memory_of(const Program& program);

}  // namespace wl
