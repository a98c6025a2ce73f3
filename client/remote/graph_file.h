// Reads graph files, and turns a finished job into a Program.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/program/program.h"
#include "client/remote/service.h"

namespace wl {

struct GraphFile {
  Graph graph;
  std::string text;                     // canonical text of the graph
  std::vector<std::string> weights;     // names of the inputs that are weights, including folded ones
  std::vector<FoldedWeight> folded;     // how to compute the folded ones from other weights
  std::string label;                    // the file's name without its folder
  std::map<std::string, int64_t> bind;  // extents given to the symbolic dimensions, by name
};

// Reads .onnx, or canonical text (.graph, or a file that begins like it), which does not say itself which of its inputs
// are weights. Products find their weights in panels of so many columns (panels_for()), none: in their own order.
// `tf32`: products of f32 may have factors of tf32. Error messages name the file.
absl::StatusOr<GraphFile> read_graph(const std::string& path, const std::map<std::string, int64_t>& bind,
                                     const std::vector<int64_t>& panels, const std::vector<std::string>& weights = {},
                                     bool tf32 = false);

// The widths of panels for read_graph(): of a target, or of CPUs of a kind that is not known yet ("cpu"). None for a
// target that there is not.
std::vector<int64_t> panels_for(const std::string& target);

// Returns the object of a record.
using FetchObject = std::function<absl::StatusOr<std::string>(const KernelRecord& record)>;

// Fetches the records and objects that the result names, and lays out its buffers. Deterministic: the same result gives
// the same program.
absl::StatusOr<Program> fetch_program(Service& service, const FetchObject& object_of, const JobResult& result,
                                      const GraphFile& file);

}  // namespace wl
