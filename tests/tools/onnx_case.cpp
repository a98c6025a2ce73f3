#include "tests/tools/onnx_case.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/numbers.h"
#include "client/program/files.h"
#include "client/program/npy.h"
#include "compiler/emit/emit.h"
#include "compiler/import/import.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"
#include "runtime/runtime.h"

namespace wl::testing {
namespace {

absl::Status at_stage(std::string_view stage, const absl::Status& status) {
  return absl::Status(status.code(), cat(stage, ": ", status.message()));
}

absl::StatusOr<Source> default_source(const Graph& group, const Machine& machine) {
  const auto domain = analyze(group, machine);
  if (!domain.ok()) return at_stage("plan", domain.status());
  const auto space = space_of(group, *domain, machine);
  if (!space.ok()) return at_stage("plan", space.status());
  if (space->seeds.empty()) return unimplemented("plan: no schedule is legal");
  const auto kernel = lower(group, *domain, space->schedule(space->seeds[0]), machine);
  if (!kernel.ok()) return at_stage("lower", kernel.status());
  if (const auto status = verify(*kernel); !status.ok()) return at_stage("lower", status);
  auto source = emit(*kernel, machine);
  return source.ok() ? std::move(source) : at_stage("emit", source.status());
}

// Reads the arrays that inputs.txt lists, by name.
absl::StatusOr<std::map<std::string, Array>> read_arrays(const std::string& folder) {
  std::map<std::string, Array> arrays;
  std::ifstream list(folder + "/inputs.txt");
  for (std::string line; std::getline(list, line);) {
    const size_t tab = line.rfind('\t');
    if (tab == std::string::npos) return invalid(folder, "/inputs.txt: a line without a tab: ", line);
    WL_ASSIGN_OR_RETURN(const std::string bytes, read_file(cat(folder, "/", line.substr(tab + 1))));
    WL_ASSIGN_OR_RETURN(arrays[line.substr(0, tab)], parse_npy(bytes, line.substr(tab + 1)));
  }
  return arrays;
}

// The buffers of the values that the kernels of a case read or write, and of the case's outputs.
class Memory {
 public:
  explicit Memory(const Graph& graph) : graph_(graph), buffers_(graph.nodes.size()), there_(graph.nodes.size()) {}

  absl::Status allocate(NodeId id) {
    if (there_[id]) return absl::OkStatus();
    const Node& node = graph_.nodes[id];
    WL_ASSIGN_OR_RETURN(buffers_[id], Buffer::create(graph_.bytes(id), 320 * id % 4096));
    if (node.op != Op::input) poison(node.dtype, data(id), elements(node.shape));
    there_[id] = true;
    return absl::OkStatus();
  }
  char* data(NodeId id) const { return buffers_[id].data(); }
  absl::Status check() const {
    for (NodeId id = 0; id < static_cast<NodeId>(buffers_.size()); ++id) {
      if (!there_[id]) continue;
      if (const auto status = buffers_[id].check_red_zones(); !status.ok())
        return absl::Status(status.code(), cat("run: value %", id, ": ", status.message()));
    }
    return absl::OkStatus();
  }

 private:
  const Graph& graph_;
  std::vector<Buffer> buffers_;
  std::vector<bool> there_;
};

absl::Status fill_input(const Node& node, const std::map<std::string, Array>& arrays, char* data) {
  const auto given = arrays.find(node.text);
  if (given == arrays.end()) {
    if (node.fill.literal.empty()) return invalid("run: no array for input ", node.text);
    fill_range(node.fill, node.dtype, 0, 0, 0, static_cast<uint64_t>(elements(node.shape)), data);
    return absl::OkStatus();
  }
  const Array& array = given->second;
  if (array.dtype != node.dtype || array.shape != node.shape) {
    return invalid("run: input ", node.text, " is ", type_text(node.dtype, node.shape), ", the array is ",
                   type_text(array.dtype, array.shape));
  }
  std::memcpy(data, array.bytes.data(), array.bytes.size());
  return absl::OkStatus();
}

absl::Status launch_all(const OnnxCase& the_case, const Kernels& kernels, const std::vector<std::string>& objects,
                        const Memory& memory) {
  Pool pool(2, false);
  std::map<std::string, SharedObject> loaded;
  for (const OnnxCase::Step& step : the_case.steps) {
    const Source& source = kernels[step.kernel];
    const std::string& path = objects[static_cast<size_t>(step.kernel)];
    if (!loaded.contains(path)) {
      WL_ASSIGN_OR_RETURN(loaded[path], SharedObject::open(path));
    }
    WL_ASSIGN_OR_RETURN(void* entry, loaded[path].symbol(source.entry));
    WL_RETURN_IF_ERROR(pool.reserve_scratch(source.scratch_bytes));
    WL_RETURN_IF_ERROR(pool.reserve_work(source.work_bytes));
    pool.spoil_scratch();
    std::vector<void*> args;
    for (NodeId id : step.args) args.push_back(memory.data(id));
    args.push_back(pool.workspace());
    if (source.grid > 0) {
      pool.launch(
          {reinterpret_cast<BlockFunction>(entry), source.grid, source.threads, source.scratch_bytes, source.passes},
          args.data());
    }
  }
  return absl::OkStatus();
}

}  // namespace

int Kernels::number_of(Source source) {
  const auto [at, fresh] = by_entry_.try_emplace(source.entry, static_cast<int>(candidates_.size()));
  if (fresh) candidates_.push_back({at->second, "", std::move(source)});
  return at->second;
}

absl::StatusOr<OnnxCase> prepare_case(const std::string& folder, CoverFunction cover, const Machine& machine,
                                      Kernels& kernels) {
  OnnxCase out;
  out.folder = folder;
  absl::StatusOr<Imported> imported = absl::NotFoundError("no model");
  absl::Status first;
  for (;; ++out.variant) {
    const std::string path = cat(folder, "/model", out.variant == 0 ? "" : cat(out.variant), ".onnx");
    if (out.variant > 0 && !std::filesystem::exists(path)) return at_stage("import", first);
    WL_ASSIGN_OR_RETURN(const std::string bytes, read_file(path));
    imported = import_onnx(bytes);
    if (imported.ok()) break;
    if (out.variant == 0) first = imported.status();
  }
  auto graph = simplify(imported->graph);
  if (!graph.ok()) return at_stage("simplify", graph.status());
  out.graph = *std::move(graph);
  const auto covered = cover(out.graph, machine);
  if (!covered.ok()) return at_stage("cover", covered.status());
  for (const Group& group : covered->groups) {
    // A group needs no kernel if all values that it stores are inputs of the graph.
    if (std::all_of(group.stores.begin(), group.stores.end(),
                    [&](NodeId id) { return out.graph.nodes[id].op == Op::input; }))
      continue;
    const Graph part = extract(out.graph, group);
    WL_ASSIGN_OR_RETURN(Source source, default_source(part, machine));
    OnnxCase::Step step{kernels.number_of(std::move(source)), {}};
    for (const BufferSpec& buffer : buffers_of(part)) {
      size_t number = 0;
      const std::vector<NodeId>& values = buffer.output ? group.stores : group.reads;
      WL_CHECK(absl::SimpleAtoi(buffer.name.substr(1), &number) && number < values.size(), "buffer ", buffer.name);
      step.args.push_back(values[number]);
    }
    out.steps.push_back(std::move(step));
  }
  return out;
}

absl::Status run_case(const OnnxCase& the_case, const Kernels& kernels, const std::vector<std::string>& objects) {
  const Graph& graph = the_case.graph;
  WL_ASSIGN_OR_RETURN(const auto arrays, read_arrays(the_case.folder));
  Memory memory(graph);
  for (NodeId id : graph.inputs()) {
    WL_RETURN_IF_ERROR(memory.allocate(id));
    WL_RETURN_IF_ERROR(fill_input(graph.nodes[id], arrays, memory.data(id)));
  }
  for (const OnnxCase::Step& step : the_case.steps)
    for (NodeId id : step.args) WL_RETURN_IF_ERROR(memory.allocate(id));
  for (const Output& output : graph.outputs) WL_RETURN_IF_ERROR(memory.allocate(output.node));
  WL_RETURN_IF_ERROR(launch_all(the_case, kernels, objects, memory));
  WL_RETURN_IF_ERROR(memory.check());
  std::string names;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const NodeId id = graph.outputs[o].node;
    const std::string_view bytes(memory.data(id), static_cast<size_t>(graph.bytes(id)));
    WL_RETURN_IF_ERROR(write_file(cat(the_case.folder, "/out", o, ".npy"),
                                  npy_bytes(graph.nodes[id].dtype, graph.nodes[id].shape, bytes)));
    append(&names, graph.outputs[o].name, "\tout", o, ".npy\n");
  }
  return write_file(the_case.folder + "/outputs.txt", names);
}

}  // namespace wl::testing
