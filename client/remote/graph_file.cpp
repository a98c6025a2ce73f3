#include "client/remote/graph_file.h"

#include <filesystem>
#include <set>

#include "client/onnx_weights/external.h"
#include "client/program/files.h"
#include "client/program/sound.h"
#include "compiler/base/suggest.h"
#include "compiler/import/import.h"
#include "compiler/ir/text.h"
#include "compiler/target/target.h"

namespace wl {

absl::StatusOr<GraphFile> read_graph(const std::string& path, const std::map<std::string, int64_t>& bind,
                                     const std::vector<int64_t>& panels, const std::vector<std::string>& weights,
                                     bool tf32) {
  if (is_folder(path))
    return invalid("cannot read ", path, ": expected a graph file (.onnx or .graph), found a folder");
  WL_ASSIGN_OR_RETURN(std::string bytes, read_file(path));
  auto named = [&](const absl::Status& status) {
    return absl::Status(status.code(), cat(path, ": ", status.message()));
  };
  GraphFile file;
  file.bind = bind;
  file.label = std::filesystem::path(path).filename().string();
  const bool is_text = path.ends_with(".graph") || (!path.ends_with(".onnx") && bytes.starts_with("graph"));
  if (is_text) {
    if (!bind.empty())
      return invalid(path, ": --bind ", bind.begin()->first,
                     ": a .graph file has no symbolic dimensions; leave --bind out");
    auto graph = parse(bytes);
    if (!graph.ok()) return named(graph.status());
    std::set<std::string> given(weights.begin(), weights.end());
    std::vector<std::string> names;
    for (const NodeId id : graph->inputs()) names.push_back(graph->nodes[id].text);
    for (const NodeId id : graph->inputs())
      if (given.erase(graph->nodes[id].text) > 0) file.weights.push_back(graph->nodes[id].text);
    if (!given.empty())
      return invalid(path, ": --weight ", *given.begin(), ": the graph has no such input",
                     suggestion(*given.begin(), names));
    file.graph = *std::move(graph);
  } else {
    if (!weights.empty())
      return invalid(path, ": --weight ", weights[0], ": an .onnx file says itself what its weights are");
    auto imported = import_onnx(bytes, ImportOptions{bind, external_files_of(path)});
    if (!imported.ok()) return named(imported.status());
    file.graph = std::move(imported->graph);
    file.weights = std::move(imported->weights);
  }
  if (!is_text || !file.weights.empty()) {
    WL_ASSIGN_OR_RETURN(WeightFolding folding, fold_weights(file.graph, file.weights, panels));
    file.graph = std::move(folding.graph);
    file.weights = std::move(folding.weights);
    file.folded = std::move(folding.folded);
  }
  if (tf32) allow_tf32(file.graph);
  file.text = print(file.graph);
  return file;
}

std::vector<int64_t> panels_for(const std::string& target) {
  const auto row = target_named(target == "cpu" ? "cpu:avx512" : target);
  return row.ok() ? panel_widths(**row) : std::vector<int64_t>();
}

namespace {

absl::Status wrong_answer(std::string_view why) {
  return absl::DataLossError(cat("the coordinator's answer cannot be used: ", why));
}

}  // namespace

absl::StatusOr<Program> fetch_program(Service& service, const FetchObject& object_of, const JobResult& result,
                                      const GraphFile& file) {
  if (const std::string asked = graph_hash(file.graph); result.graph_hash != asked)
    return wrong_answer(cat("it is of the graph ", result.graph_hash, ", asked for was ", asked));
  Program program;
  program.graph_text = file.text;
  program.graph_hash = result.graph_hash;
  program.target = result.device.target;
  program.device = result.device.name;
  program.fingerprint = result.device.fingerprint();
  program.weights = file.weights;
  program.folded = file.folded;
  program.bind = file.bind;

  for (const ResultBuffer& buffer : result.buffers) {
    ProgramBuffer row{buffer.name, buffer.dtype, buffer.shape, Place::kArena, 0, {}, 0};
    if (buffer.kind == ResultBuffer::Kind::kInput) row.place = Place::kInput;
    if (buffer.kind == ResultBuffer::Kind::kOutput) row.place = Place::kOutput;
    program.buffers.push_back(std::move(row));
  }
  std::vector<NodeId> inputs = file.graph.inputs();
  if (inputs.size() != result.inputs.size()) return wrong_answer("it has other inputs than the graph");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Binding& binding = result.inputs[i];
    const Node& node = file.graph.nodes[inputs[i]];
    bool known = binding.buffer >= 0 && static_cast<size_t>(binding.buffer) < program.buffers.size();
    if (!known || binding.name != node.text) return wrong_answer("it has other inputs than the graph");
    ProgramBuffer& buffer = program.buffers[binding.buffer];
    buffer.name = node.text;
    buffer.fill = node.fill;
    buffer.stream = i;
  }
  for (const Binding& binding : result.outputs) program.outputs.push_back({binding.name, binding.buffer});

  std::vector<std::string> digests;
  for (const GroupResult& group : result.groups) digests.push_back(group.record_digest);
  WL_ASSIGN_OR_RETURN(std::vector<KernelRecord> records, service.get_records(digests));
  // If several groups have the same kernel, the program contains it once.
  std::map<std::string, int> by_entry;
  std::vector<int> kernel_of;
  for (size_t i = 0; i < records.size(); ++i) {
    KernelRecord& record = records[i];
    if (record.key != result.groups[i].key)
      return wrong_answer(
          cat("the record ", record.digest, " is of the key ", record.key, ", its group of ", result.groups[i].key));
    auto [at, fresh] = by_entry.try_emplace(record.source.entry, static_cast<int>(program.kernels.size()));
    kernel_of.push_back(at->second);
    if (!fresh) {
      if (program.kernels[at->second].source.text != record.source.text)
        return wrong_answer(cat("two kernels have the name ", record.source.entry));
      if (program.kernels[at->second].graph != record.graph)
        return wrong_answer(cat("the kernel ", record.source.entry,
                                " of an older version is that of two groups; `warploom tune --retune` makes "
                                "two of it"));
      continue;
    }
    ProgramKernel kernel;
    kernel.key = record.key;
    kernel.plan = record.plan;
    kernel.graph = record.graph;
    for (const BufferSpec& buffer : record.problem.buffers) ++(buffer.output ? kernel.outputs : kernel.inputs);
    WL_ASSIGN_OR_RETURN(kernel.object, object_of(record));
    kernel.source = std::move(record.source);
    program.kernels.push_back(std::move(kernel));
  }
  for (const Step& step : result.steps) {
    if (step.group < 0 || static_cast<size_t>(step.group) >= kernel_of.size()) {
      return wrong_answer("a step names no group");
    }
    program.steps.push_back({kernel_of[step.group], step.arguments});
  }
  for (const absl::Status& status : {lay_out(program), check_sound(program)})
    if (!status.ok()) return wrong_answer(std::string(status.message()));
  return program;
}

}  // namespace wl
