// Reads batch files: TOML that lists models, the sizes and targets to tune them for, and the folder of their bundles.
//
//   out = "bundles"               the folder of all bundles; relative paths begin at the folder of the batch file
//   targets = ["cpu"]             any key of a model except file, name and bind may stand here, for all models
//   trials = 64
//
//   [[model]]
//   file = "bert.onnx"
//   name = "bert"                 default: the file's name without folder and extension
//   bind = { batch = [1, 8] }     as --bind of `warploom tune`: one bundle with kernels for each size
//   targets = ["cpu:avx2", "cuda:sm_90a"]
#pragma once

#include <string>
#include <vector>

#include "client/cli/options.h"
#include "compiler/base/job.h"
#include "compiler/base/status.h"

namespace wl {

// A run: one model for one target.
struct BatchRun {
  std::string name;         // name of the run, MODEL/TARGET, such as "bert/cuda-sm_90a"
  std::string file;         // path of the model's graph
  std::string out;          // folder of the model's bundle
  BindValues bind;          // for each symbolic dimension, the extents to tune for
  bool allow_tf32 = false;  // whether products of f32 may round factors to tf32
  TuneOptions options;
};

struct BatchFile {
  std::string out;  // path of the folder in which the bundles of all runs are
  std::vector<BatchRun> runs;
};

// Parses the text of a batch file. `path`: the file, to which its relative paths refer. InvalidArgument names the file,
// the line and the key, and says what was expected there.
absl::StatusOr<BatchFile> parse_batch(const std::string& text, const std::string& path);

}  // namespace wl
