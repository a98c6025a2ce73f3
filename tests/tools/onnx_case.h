// One test case of the ONNX backend tests as Warploom runs it: import, cover, default schedule, sources; then the
// kernels in sequence over real memory. A case is a folder:
//
//   model.onnx, model1.onnx, ...   the model; later ones have more inputs as initializers, and are tried when the ones
//                                  before them cannot be imported
//   inputs.txt                     a line "NAME<tab>FILE" for each array that is given; FILE is a .npy in the folder
//   outputs.txt, out0.npy, ...     written by the run: a line "NAME<tab>FILE" for each output
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/base/status.h"
#include "compiler/cover/cover.h"
#include "compiler/ir/graph.h"
#include "compiler/target/target.h"

namespace wl::testing {

// Collects the distinct kernels of all cases.
class Kernels {
 public:
  // Returns the number of the kernel with this source. A new kernel is added; kernels with the same entry name are the
  // same kernel.
  int number_of(Source source);
  const std::vector<Candidate>& all() const { return candidates_; }
  const Source& operator[](int number) const { return candidates_[static_cast<size_t>(number)].source; }

 private:
  std::vector<Candidate> candidates_;
  std::map<std::string, int> by_entry_;
};

struct OnnxCase {
  struct Step {
    int kernel = 0;
    // node numbers in `graph` of the values that the kernel is called with, in the order of its arguments
    std::vector<NodeId> args;
  };
  std::string folder;
  int variant = 0;  // index of the first model of the case that could be imported
  Graph graph;      // the simplified graph of the imported model
  std::vector<Step> steps;
};

using CoverFunction = absl::StatusOr<Cover> (*)(const Graph&, const Machine&);

// Plans a case: imports its model, and adds the sources of its kernels to `kernels`. Reads files of `folder` only, and
// compiles nothing. Error messages begin with the stage that failed: "import: ", "cover: ", "plan: ", "lower: " or
// "emit: ".
absl::StatusOr<OnnxCase> prepare_case(const std::string& folder, CoverFunction cover, const Machine& machine,
                                      Kernels& kernels);

// Runs the case with its compiled kernels (`objects`: a path for each kernel) and writes the case's outputs. Memory
// has red zones, and outputs are poisoned first. Should be called in a child process, since a wrong kernel may crash
// the process.
absl::Status run_case(const OnnxCase& the_case, const Kernels& kernels, const std::vector<std::string>& objects);

}  // namespace wl::testing
