#include "client/cli/compose.h"

#include <algorithm>
#include <map>

#include "client/program/json.h"
#include "compiler/base/sha256.h"
#include "compiler/ir/compose/compose.h"
#include "compiler/ir/layout/channels_last.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

// The largest number of threads, and the largest size of a cache in bytes, that are accepted from a bundle's report.
constexpr int64_t kMostThreads = 1 << 16, kMostBytes = int64_t{1} << 40;

// Returns a hash of the expression of each output. The hash depends neither on the numbers of nodes nor on the order of
// commutative operands, because simplification orders operands by these numbers.
std::vector<std::string> meaning_of(const Graph& graph) {
  std::vector<std::string> meaning;
  int64_t inputs = 0;
  for (const Node& node : graph.nodes) {
    Encoder encoder("warploom.meaning", 1);
    encoder.text(name_of(node.op)).text(type_text(node.dtype, node.shape)).real(node.value);
    if (node.op == Op::input) {
      encoder.integer(inputs++);
    } else {
      encoder.text(node.text);
    }
    for (const std::vector<int64_t>* list : {&node.ints, &node.ints2}) {
      encoder.integer(static_cast<int64_t>(list->size()));
      for (int64_t value : *list) encoder.integer(value);
    }
    std::vector<std::string> operands;
    for (NodeId operand : node.operands) operands.push_back(meaning[operand]);
    if (is_commutative(node.op)) std::sort(operands.begin(), operands.end());
    for (const std::string& operand : operands) encoder.text(operand);
    meaning.push_back(encoder.hash());
  }
  std::vector<std::string> outputs;
  for (const Output& output : graph.outputs) outputs.push_back(meaning[output.node]);
  return outputs;
}

int64_t count_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  const int64_t count = found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  return count > 0 && count <= kMostBytes ? count : 0;
}

// Returns the device of a program, with those members that the cost model and the limits of kernels need.
Device device_of(const Program& program, const Json& report) {
  Device device;
  device.target = program.target;
  device.name = program.device;
  device.threads = 1;
  for (const ProgramKernel& kernel : program.kernels) {
    const Source& source = kernel.source;
    if (!source.library.empty()) device.libraries = source.library;
    if (!source.compiler.empty() &&
        std::find(device.compilers.begin(), device.compilers.end(), source.compiler) == device.compilers.end())
      device.compilers.push_back(source.compiler);
  }
  const auto environment = report.find("environment");
  if (environment == report.end()) return device;
  const auto host = environment->find("host");
  if (host == environment->end()) return device;
  device.threads = static_cast<int>(std::clamp<int64_t>(count_in(*host, "threads"), 1, kMostThreads));
  device.l1_bytes = count_in(*host, "l1_bytes");
  device.l2_bytes = count_in(*host, "l2_bytes");
  device.l3_bytes = count_in(*host, "l3_bytes");
  return device;
}

}  // namespace

JobResult result_of(const Program& program, const std::string& report) {
  constexpr ResultBuffer::Kind kKinds[] = {ResultBuffer::Kind::kInput, ResultBuffer::Kind::kOutput,
                                           ResultBuffer::Kind::kIntermediate};  // in the order of the enumeration Place
  JobResult result;
  for (const ProgramKernel& kernel : program.kernels) {
    GroupResult& group = result.groups.emplace_back();
    group.key = kernel.key;
    group.graph = kernel.graph;
    group.plan = kernel.plan;
  }
  for (const ProgramStep& step : program.steps) {
    result.steps.push_back({step.kernel, step.args});
    ++result.groups[step.kernel].count;
  }
  std::map<uint64_t, Binding> inputs;  // the program's inputs, in the order of the graph
  for (const ProgramBuffer& buffer : program.buffers) {
    const int number = static_cast<int>(result.buffers.size());
    result.buffers.push_back({buffer.name, buffer.dtype, buffer.shape, kKinds[static_cast<int>(buffer.place)]});
    if (buffer.place == Place::kInput) inputs[buffer.stream] = {buffer.name, number};
  }
  for (auto& [place, input] : inputs) result.inputs.push_back(std::move(input));
  for (const ProgramOutput& output : program.outputs) result.outputs.push_back({output.name, output.buffer});
  result.device = device_of(program, Json::parse(report, nullptr, /*allow_exceptions=*/false));
  return result;
}

absl::StatusOr<bool> steps_make(const Program& program, const Graph& whole) {
  WL_ASSIGN_OR_RETURN(const Composition composed, compose(result_of(program)));
  WL_ASSIGN_OR_RETURN(const Graph one, simplify(composed.graph));
  WL_ASSIGN_OR_RETURN(const Graph other, simplify(whole));
  if (meaning_of(one) == meaning_of(other)) return true;
  // If the cover stores values between kernels channels last, the whole graph has to be compared in that form.
  WL_ASSIGN_OR_RETURN(const Graph stored, channels_last(other));
  WL_ASSIGN_OR_RETURN(const Graph another, simplify(stored));
  return meaning_of(one) == meaning_of(another);
}

}  // namespace wl
