// What a tuned graph is at run time: buffers, and kernels called over them one after the other. Inputs and outputs are
// the caller's memory and never copied; intermediates share one arena. A bundle is a Program on disk (bundle.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/ir/fold_weights.h"
#include "compiler/ir/graph.h"

namespace wl {

enum class Place { kInput, kOutput, kArena };  // where a buffer of a program lies

struct ProgramBuffer {
  std::string name;  // of the input or output; "%12" for an intermediate
  DType dtype = DType::f32;
  Shape shape;
  Place place = Place::kArena;
  int64_t offset = 0;   // kArena: bytes
  Fill fill;            // kInput: how it is generated when no data is given
  uint64_t stream = 0;  // kInput: generator stream
  int64_t bytes() const { return elements(shape) * size_of(dtype); }
};

struct ProgramKernel {
  std::string key;    // problem key of the group it was tuned for
  std::string plan;   // text
  std::string graph;  // canonical text of that group: what the kernel makes of its inputs
  Source source;
  int inputs = 0, outputs = 0;  // arguments: all inputs, then all outputs
  std::string object;           // bytes of the shared object; empty in a program loaded from disk
  std::string object_path;      // where it lies, in a program loaded from disk
};

struct ProgramStep {
  int kernel = 0;
  std::vector<int> args;  // buffers, in call order
};

struct ProgramOutput {
  std::string name;
  int buffer = 0;  // two outputs may be one buffer, and an output may be an input's
};

struct Program {
  std::string graph_text;  // canonical text of the graph that was asked for: what --check compares with
  std::string graph_hash;
  std::string target, device, fingerprint;
  std::map<std::string, int64_t> bind;  // extents of the symbolic dimensions it was tuned for, by name
  std::vector<std::string> weights;     // names of the inputs that are weights, folded ones among them
  std::vector<FoldedWeight> folded;     // what computes those that are made from other weights
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramOutput> outputs;
  std::vector<ProgramKernel> kernels;  // distinct ones
  std::vector<ProgramStep> steps;
  int64_t arena_bytes = 0;
};

// Gives the intermediates their places in the arena, after checking that the steps make sense: argument counts are the
// kernels', every value is stored before it is read and every output that has elements is stored. Errors: Internal.
absl::Status lay_out(Program& program);

// Bytes of a program's memory.
struct MemoryUse {
  int64_t inputs = 0, outputs = 0;
  int64_t arena = 0;          // what the intermediates take
  int64_t intermediates = 0;  // what they would take without reuse
  int64_t live = 0;           // the most of them that is alive at once: no arena can be smaller
};
MemoryUse memory_of(const Program& program);

}  // namespace wl
