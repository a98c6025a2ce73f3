#include "client/cli/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "compiler/ir/sample.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

// Returns how far `found` is from `expected` in units of `bound`; infinity when one is finite and the other is not.
double relative_error(double expected, double bound, double found) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::isnan(expected)) return std::isnan(found) ? 0 : kInfinity;
  if (std::isinf(expected)) return found == expected ? 0 : kInfinity;
  double error = std::fabs(found - expected);
  if (!(error > 0)) return std::isnan(error) ? kInfinity : 0;
  return bound > 0 ? error / bound : kInfinity;
}

class Comparison {
 public:
  void add(OutputCheck& check, int64_t index, const Value& expected, double found) {
    if (!std::isfinite(expected.bound)) return;  // with an infinite bound, every result would be right
    double error = relative_error(expected.value, expected.bound, found);
    ++check.samples;
    if (error > 1) ++check.wrong;
    if (error <= worst_) return;
    worst_ = error;
    check.max_error = std::isfinite(expected.value) ? std::fabs(found - expected.value) : 0;
    check.bound = expected.bound;
    check.index = index;
    check.expected = expected.value;
    check.found = found;
  }

 private:
  double worst_ = -1;
};

double element(const Executor& executor, int buffer, int64_t index) {
  return load_element(executor.program().buffers[buffer].dtype, executor.data(buffer), static_cast<uint64_t>(index));
}

// Compares elements of every output i (buffers[i]), at the places queries[i], with expected[i], and counts them in
// checks[i].
void compare(const Executor& executor, const std::vector<Query>& queries,
             const std::vector<std::vector<Value>>& expected, const std::vector<int>& buffers,
             std::vector<OutputCheck>& checks) {
  for (size_t o = 0; o < queries.size(); ++o) {
    Comparison comparison;
    for (size_t i = 0; i < queries[o].indices.size(); ++i) {
      const int64_t index = queries[o].indices[i];
      comparison.add(checks[o], index, expected[o][i], element(executor, buffers[o], index));
    }
  }
}

// Returns a function by which the oracle reads the program's inputs from the executor's memory.
absl::StatusOr<InputReader> inputs_in_memory(const Executor& executor, const Graph& graph) {
  const Program& program = executor.program();
  std::map<NodeId, int> buffer_of;
  for (NodeId id : graph.inputs()) {
    const int buffer = input_buffer(program, graph.nodes[id].text);
    if (buffer < 0) return invalid("graph.txt has the input ", graph.nodes[id].text, ", the manifest not");
    buffer_of[id] = buffer;
  }
  return [&executor, buffer_of](NodeId id, int64_t index) { return element(executor, buffer_of.at(id), index); };
}

DType dtype_of(const Executor& executor, size_t output) {
  const Program& program = executor.program();
  return program.buffers[static_cast<size_t>(program.outputs[output].buffer)].dtype;
}

}  // namespace

absl::StatusOr<Graph> graph_of(const Program& program) {
  WL_ASSIGN_OR_RETURN(Graph graph, parse(program.graph_text));
  if (graph.outputs.size() != program.outputs.size()) return invalid("graph.txt and manifest.json name other outputs");
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const ProgramBuffer& buffer = program.buffers[program.outputs[o].buffer];
    const Node& node = graph.nodes[graph.outputs[o].node];
    const std::string& name = graph.outputs[o].name;
    if (program.outputs[o].name != name || buffer.dtype != node.dtype || buffer.shape != node.shape) {
      return invalid("output ", name, ": graph.txt and manifest.json differ");
    }
  }
  return graph;
}

absl::StatusOr<std::vector<ExpectedOutput>> expected_outputs(const Executor& executor, const Graph& graph,
                                                             uint64_t seed) {
  WL_ASSIGN_OR_RETURN(const InputReader reader, inputs_in_memory(executor, graph));
  const std::vector<Query> queries = sample_queries(graph, seed);
  WL_ASSIGN_OR_RETURN(const auto values, evaluate(graph, reader, queries));
  std::vector<ExpectedOutput> expected(queries.size());
  for (size_t o = 0; o < queries.size(); ++o) {
    const DType dtype = dtype_of(executor, o);
    for (size_t i = 0; i < queries[o].indices.size(); ++i) {
      const Value& value = values[o][i];
      if (!std::isfinite(value.bound)) continue;  // with an infinite bound, every result would be right
      expected[o].indices.push_back(queries[o].indices[i]);
      expected[o].bounds.push_back(value.bound);
      char element[8] = {};
      if (is_float(dtype) || dtype == DType::b1)
        store_element(dtype, element, 0, value.value);
      else
        std::memcpy(element, &value.whole, sizeof element);
      expected[o].elements.append(element, static_cast<size_t>(size_of(dtype)));
    }
  }
  return expected;
}

std::vector<ExpectedOutput> found_outputs(const Executor& executor, const Graph& graph, uint64_t seed) {
  std::vector<Query> queries = sample_queries(graph, seed);
  std::vector<ExpectedOutput> found(queries.size());
  for (size_t o = 0; o < queries.size(); ++o) {
    const auto bytes = static_cast<size_t>(size_of(dtype_of(executor, o)));
    const auto* memory = static_cast<const char*>(executor.data(executor.program().outputs[o].buffer));
    for (const int64_t index : queries[o].indices)
      found[o].elements.append(memory + static_cast<size_t>(index) * bytes, bytes);
    found[o].bounds.assign(queries[o].indices.size(), 0);
    found[o].indices = std::move(queries[o].indices);
  }
  return found;
}

absl::StatusOr<std::vector<OutputCheck>> check_outputs(const Executor& executor, uint64_t seed, bool all_generated) {
  const Program& program = executor.program();
  WL_ASSIGN_OR_RETURN(const Graph graph, graph_of(program));
  std::vector<OutputCheck> checks(program.outputs.size());
  std::vector<int> buffers;
  for (size_t o = 0; o < checks.size(); ++o) {
    buffers.push_back(program.outputs[o].buffer);
    checks[o].name = program.outputs[o].name;
  }
  InputReader reader = generated_inputs(graph, seed);
  if (!all_generated) {
    WL_ASSIGN_OR_RETURN(reader, inputs_in_memory(executor, graph));
  }
  const std::vector<Query> queries = sample_queries(graph, seed);
  WL_ASSIGN_OR_RETURN(const auto expected, evaluate(graph, reader, queries));
  compare(executor, queries, expected, buffers, checks);
  return checks;
}

absl::StatusOr<std::vector<OutputCheck>> check_steps(Executor& executor, uint64_t seed) {
  const Program& program = executor.program();
  std::vector<Graph> graphs;
  for (const ProgramKernel& kernel : program.kernels) {
    WL_ASSIGN_OR_RETURN(Graph graph, parse(kernel.graph));
    graphs.push_back(std::move(graph));
  }
  std::vector<OutputCheck> checks;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    const Graph& graph = graphs[step.kernel];
    const std::vector<NodeId> inputs = graph.inputs();
    if (inputs.size() + graph.outputs.size() != step.args.size()) {
      return invalid("step ", s, " has ", step.args.size(), " arguments, its graph ", inputs.size(), " + ",
                     graph.outputs.size());
    }
    WL_RETURN_IF_ERROR(executor.poison_step(static_cast<int>(s)));
    WL_RETURN_IF_ERROR(executor.run_step(static_cast<int>(s)));

    std::vector<int> argument(graph.nodes.size(), -1);
    for (size_t i = 0; i < inputs.size(); ++i) argument[inputs[i]] = step.args[i];
    const InputReader reader = [&](NodeId id, int64_t index) { return element(executor, argument[id], index); };
    const std::vector<Query> queries = sample_queries(graph, seed + s);
    WL_ASSIGN_OR_RETURN(const auto expected, evaluate(graph, reader, queries));
    const std::vector<int> stored(step.args.begin() + static_cast<ptrdiff_t>(inputs.size()), step.args.end());
    std::vector<OutputCheck> found(stored.size());
    for (size_t o = 0; o < stored.size(); ++o) {
      found[o].name = program.buffers[stored[o]].name;
      found[o].step = static_cast<int>(s);
    }
    compare(executor, queries, expected, stored, found);
    for (size_t o = 0; o < stored.size(); ++o) {
      const ProgramBuffer& buffer = program.buffers[stored[o]];
      // Integers are not checked, since an integer result may equal the poison by chance.
      if (!is_float(buffer.dtype)) continue;
      int64_t first = 0;
      const int64_t left = count_poison(buffer.dtype, executor.data(stored[o]), elements(buffer.shape), &first);
      if (left == 0) continue;
      found[o].wrong += static_cast<int>(std::min<int64_t>(left, std::numeric_limits<int>::max() / 2));
      found[o].index = first;
      found[o].found = std::numeric_limits<double>::quiet_NaN();
    }
    checks.insert(checks.end(), found.begin(), found.end());
  }
  return checks;
}

double work_of(const Graph& graph) {
  double work = 0;
  for (const Node& node : graph.nodes) {
    double each = 1;
    if (node.op == Op::contract) {
      // An element of a contraction is a sum over those index letters of the left operand that the output does not
      // have.
      const auto einsum = parse_einsum(node.text);
      if (!einsum.ok()) continue;
      const Shape& left = graph.nodes[node.operands[0]].shape;
      for (size_t i = 0; i < einsum->a.size(); ++i) {
        if (einsum->out.find(einsum->a[i]) == std::string::npos) each *= static_cast<double>(left[i]);
      }
    } else if (class_of(node.op) == OpClass::kReduce) {
      work += static_cast<double>(elements(graph.nodes[node.operands[0]].shape));
    }
    work += each * static_cast<double>(elements(node.shape));
  }
  return work;
}

}  // namespace wl
