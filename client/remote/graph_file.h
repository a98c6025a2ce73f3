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
  std::vector<FoldedWeight> folded;     // how folded weights are computed from other weights
  std::string label;                    // name of the graph's file, without its folder
  std::map<std::string, int64_t> bind;  // for each symbolic dimension, the extent that it was given
};

// Reads an .onnx file or canonical text (a .graph file, or one that begins like canonical text). `bind`: extents of
// symbolic dimensions. `panels`: widths, in columns, of the panels in which weights of products may be stored
// (panels_for()); empty: weights keep their order. `weights`: names of those inputs that are weights, which canonical
// text does not say. `tf32`: products of f32 may round factors to tf32. Error messages name the file.
absl::StatusOr<GraphFile> read_graph(const std::string& path, const std::map<std::string, int64_t>& bind,
                                     const std::vector<int64_t>& panels, const std::vector<std::string>& weights = {},
                                     bool tf32 = false);

// Returns the widths of panels for read_graph() on a target; for "cpu" (a CPU that is not known yet), those of AVX-512.
// Empty: there is no such target.
std::vector<int64_t> panels_for(const std::string& target);

// A function that returns the compiled object of a record.
using FetchObject = std::function<absl::StatusOr<std::string>(const KernelRecord& record)>;

// Fetches the records and objects that a result names, and makes a Program of them. Equal results give equal programs.
// DataLoss: the result does not fit the graph, or its records. Other errors are those of `service` and `object_of`.
absl::StatusOr<Program> fetch_program(Service& service, const FetchObject& object_of, const JobResult& result,
                                      const GraphFile& file);

}  // namespace wl
