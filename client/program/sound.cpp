#include "client/program/sound.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "client/program/bucket.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

constexpr std::string_view kPlaceNames[] = {"input", "output", "intermediate"};

// Whether two fills generate the same values of a dtype. Members that have no effect on values of that dtype are
// ignored.
bool same_fill(const Fill& a, const Fill& b, DType dtype) {
  if (!a.literal.empty() || !b.literal.empty()) return a.literal == b.literal;
  if (dtype == DType::b1) return true;
  return is_float(dtype) ? a.mean == b.mean && a.stddev == b.stddev : a.low == b.low && a.high == b.high;
}

absl::Status inputs_fit(const Program& program, const Graph& whole) {
  const std::vector<NodeId> inputs = whole.inputs();
  std::set<uint64_t> found;
  for (const ProgramBuffer& buffer : program.buffers) {
    if (buffer.place != Place::kInput) continue;
    if (buffer.stream >= inputs.size() || !found.insert(buffer.stream).second)
      return invalid("input ", buffer.name, " is not one of the graph's ", inputs.size(), " inputs");
    const Node& node = whole.nodes[inputs[buffer.stream]];
    if (node.text != buffer.name || node.dtype != buffer.dtype || node.shape != buffer.shape ||
        !same_fill(node.fill, buffer.fill, node.dtype)) {
      return invalid("input ", buffer.name, " is ", type_text(buffer.dtype, buffer.shape), ", input ", buffer.stream,
                     " of the graph is ", node.text, ", ", type_text(node.dtype, node.shape),
                     " (or its values are drawn in another way)");
    }
  }
  if (found.size() == inputs.size()) return absl::OkStatus();
  return invalid("the program has ", found.size(), " inputs, its graph ", inputs.size());
}

// Checks that each output of the program is in the buffer that the graph implies: the buffer with the output's own
// name, or the buffer of an input or of another output that has the same value.
absl::Status outputs_are_placed(const Program& program, const Graph& graph) {
  std::map<int, NodeId> value_in;  // for each buffer that holds an output, the node whose value it holds
  std::set<int> named;             // buffers that are inputs, or have the name of an output that they hold
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const ProgramOutput& output = program.outputs[o];
    const ProgramBuffer& buffer = program.buffers[output.buffer];
    const Node& node = graph.nodes[graph.outputs[o].node];
    const bool is_input = node.op == Op::input && node.text == buffer.name;
    const auto [at, fresh] = value_in.try_emplace(output.buffer, graph.outputs[o].node);
    if (buffer.place == Place::kArena || (buffer.place == Place::kInput) != is_input ||
        at->second != graph.outputs[o].node)
      return invalid("output ", output.name, " is not where the graph has it: the buffer ", buffer.name);
    if (buffer.place != Place::kOutput || buffer.name == output.name) named.insert(output.buffer);
  }
  for (const ProgramOutput& output : program.outputs)
    if (!named.contains(output.buffer))
      return invalid("output ", output.name, " is in the buffer of ", program.buffers[output.buffer].name);
  return absl::OkStatus();
}

absl::Status outputs_fit(const Program& program, const Graph& whole) {
  if (program.outputs.size() != whole.outputs.size())
    return invalid("the program has ", program.outputs.size(), " outputs, its graph ", whole.outputs.size());
  for (size_t o = 0; o < whole.outputs.size(); ++o) {
    const ProgramOutput& output = program.outputs[o];
    const ProgramBuffer& buffer = program.buffers[output.buffer];
    const Node& node = whole.nodes[whole.outputs[o].node];
    if (output.name != whole.outputs[o].name || buffer.dtype != node.dtype || buffer.shape != node.shape) {
      return invalid("output ", o, " is ", output.name, ", ", type_text(buffer.dtype, buffer.shape),
                     ", that of the graph is ", whole.outputs[o].name, ", ", type_text(node.dtype, node.shape));
    }
  }
  const absl::Status placed = outputs_are_placed(program, whole);
  if (placed.ok()) return placed;
  // If simplifying the graph merges the values of several outputs into one node, these outputs may also share a buffer.
  WL_ASSIGN_OR_RETURN(const Graph simple, simplify(whole));
  return outputs_are_placed(program, simple).ok() ? absl::OkStatus() : placed;
}

// The arguments of a kernel according to its graph: first the inputs, then the outputs.
struct Arguments {
  int inputs = 0;
  std::vector<TensorInfo> all;
};

absl::StatusOr<Arguments> arguments_of(const ProgramKernel& kernel) {
  const auto graph = parse(kernel.graph);
  if (!graph.ok())
    return invalid("the graph of kernel ", kernel.source.entry, " is broken: ", std::string(graph.status().message()));
  Arguments out;
  for (const NodeId id : graph->inputs())
    out.all.push_back({graph->nodes[id].text, graph->nodes[id].dtype, graph->nodes[id].shape});
  out.inputs = static_cast<int>(out.all.size());
  for (const Output& output : graph->outputs)
    out.all.push_back({output.name, graph->nodes[output.node].dtype, graph->nodes[output.node].shape});
  if (out.inputs != kernel.inputs || static_cast<int>(out.all.size()) != kernel.inputs + kernel.outputs) {
    return invalid("kernel ", kernel.source.entry, " is said to have ", kernel.inputs, " inputs and ", kernel.outputs,
                   " outputs, its graph has ", out.inputs, " and ", out.all.size() - static_cast<size_t>(out.inputs));
  }
  return out;
}

absl::Status call_fits(const Program& program, size_t call, const Arguments& arguments) {
  const ProgramStep& step = program.steps[call];
  const std::string& entry = program.kernels[step.kernel].source.entry;
  for (size_t a = 0; a < step.args.size(); ++a) {
    const ProgramBuffer& buffer = program.buffers[step.args[a]];
    const TensorInfo& wanted = arguments.all[a];
    if (buffer.dtype != wanted.dtype || elements(buffer.shape) != elements(wanted.shape)) {
      return invalid("call ", call, " gives ", buffer.name, ", ", type_text(buffer.dtype, buffer.shape), ", to kernel ",
                     entry, ", whose argument ", a, " is ", type_text(wanted.dtype, wanted.shape));
    }
    const bool is_result = a >= static_cast<size_t>(arguments.inputs);
    if (is_result && std::count(step.args.begin(), step.args.end(), step.args[a]) > 1)
      return invalid("call ", call, " of kernel ", entry, " stores to ", buffer.name,
                     ", which is another argument too");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_sound(const Program& program) {
  const auto whole = parse(program.graph_text);
  if (!whole.ok()) return invalid("its graph is broken: ", std::string(whole.status().message()));
  if (graph_hash(*whole) != program.graph_hash) return invalid("its graph has another hash than it says");
  WL_RETURN_IF_ERROR(inputs_fit(program, *whole));
  WL_RETURN_IF_ERROR(outputs_fit(program, *whole));
  std::vector<Arguments> of_kernel;
  for (const ProgramKernel& kernel : program.kernels) {
    WL_ASSIGN_OR_RETURN(of_kernel.emplace_back(), arguments_of(kernel));
  }
  for (size_t call = 0; call < program.steps.size(); ++call)
    WL_RETURN_IF_ERROR(call_fits(program, call, of_kernel[program.steps[call].kernel]));
  return absl::OkStatus();
}

std::string launch_text(const Program& program, int kernel) {
  const Source& source = program.kernels[kernel].source;
  std::string text = cat("// Launched with grid ", source.grid, ", threads ", source.threads, ", scratch ",
                         source.scratch_bytes, ", passes ", source.passes, ", workspace ", source.work_bytes,
                         ", library ", source.library.empty() ? "none" : source.library, ".\n");
  for (size_t call = 0; call < program.steps.size(); ++call) {
    const ProgramStep& step = program.steps[call];
    if (step.kernel != kernel) continue;
    append(&text, "// Call ", call, ":");
    for (size_t a = 0; a < step.args.size(); ++a) {
      const ProgramBuffer& buffer = program.buffers[step.args[a]];
      append(&text,
             a == 0                                                     ? " "
             : a == static_cast<size_t>(program.kernels[kernel].inputs) ? " -> "
                                                                        : ", ",
             kPlaceNames[static_cast<int>(buffer.place)], " ", step.args[a], " ",
             type_text(buffer.dtype, buffer.shape));
    }
    text += ".\n";
  }
  return text;
}

}  // namespace wl
