#include "client/cli/run.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/compose.h"
#include "client/onnx_weights/visit.h"
#include "client/program/files.h"
#include "client/program/folded.h"
#include "client/program/weights.h"
#include "compiler/base/suggest.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

// Number of operations (work_of()) up to which the oracle of the whole graph takes seconds. Larger programs are checked
// by steps.
constexpr double kWholeWork = 2e9;

std::string input_names(const Program& program, const FoldedWeights& folded) {
  std::vector<std::string> names;
  for (const ProgramBuffer& buffer : program.buffers) {
    if (buffer.place == Place::kInput && !folded.is_folded(buffer.name)) names.push_back(buffer.name);
  }
  for (const TensorInfo& operand : folded.operands()) {
    if (std::find(names.begin(), names.end(), operand.name) == names.end()) names.push_back(operand.name);
  }
  return absl::StrJoin(names, ", ");
}

// Returns the names of the weights that have a value neither in the bundle nor in a file.
std::set<std::string> without_values(const Program& program, const FoldedWeights& folded,
                                     const std::set<std::string>& given) {
  std::set<std::string> names = folded.missing();
  for (const ProgramBuffer& buffer : program.buffers) {
    const bool is_input = buffer.place == Place::kInput && is_weight(program, buffer.name);
    if (is_input && buffer.fill.literal.empty() && !given.contains(buffer.name) && !folded.is_folded(buffer.name))
      names.insert(buffer.name);
  }
  return names;
}

std::string_view bytes_of(const Executor& executor, int buffer) {
  const ProgramBuffer& value = executor.program().buffers[buffer];
  return {static_cast<const char*>(executor.data(buffer)), static_cast<size_t>(value.bytes())};
}

absl::Status save(const std::string& folder, const std::string& name, DType dtype, const Shape& shape,
                  std::string_view bytes) {
  std::string file = name;
  for (char& c : file) {
    if (c == '/' || static_cast<unsigned char>(c) < 32) c = '_';
  }
  return write_file(cat(folder, "/", file, ".npy"), npy_bytes(dtype, shape, bytes));
}

// Saves the inputs under the names that the model has for them. A folded weight that merely reorders one weight is
// saved as that weight; any other folded weight is saved as it is.
absl::Status save_inputs(const Executor& executor, const std::string& folder) {
  const Program& program = executor.program();
  WL_RETURN_IF_ERROR(make_folders(folder));
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    const ProgramBuffer& value = program.buffers[i];
    if (value.place != Place::kInput) continue;
    const auto folded = std::find_if(program.folded.begin(), program.folded.end(),
                                     [&](const FoldedWeight& weight) { return weight.name == value.name; });
    const auto operand =
        folded == program.folded.end() ? std::nullopt : operand_of_moved(*folded, bytes_of(executor, i));
    if (!operand) {
      WL_RETURN_IF_ERROR(save(folder, value.name, value.dtype, value.shape, bytes_of(executor, i)));
      continue;
    }
    const Node& input = folded->from.nodes[folded->from.inputs()[0]];
    WL_RETURN_IF_ERROR(save(folder, input.text, input.dtype, input.shape, *operand));
  }
  return absl::OkStatus();
}

absl::Status run_and_check(Executor& executor, const RunOptions& options, RunResult& result) {
  WL_RETURN_IF_ERROR(executor.poison_results());
  if (!options.check) return executor.run();
  const Program& program = executor.program();
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(program.graph_text));
  result.by_steps =
      options.check_by == CheckBy::kSteps || (options.check_by == CheckBy::kAuto && work_of(graph) > kWholeWork);
  if (!result.by_steps) {
    WL_RETURN_IF_ERROR(executor.run());
    WL_ASSIGN_OR_RETURN(result.checks, check_outputs(executor, options.values.seed, result.given.empty()));
    return absl::OkStatus();
  }
  WL_ASSIGN_OR_RETURN(result.composed, steps_make(program, graph));
  WL_ASSIGN_OR_RETURN(result.checks, check_steps(executor, options.values.seed));
  return absl::OkStatus();
}

}  // namespace

absl::Status fill_inputs(Executor& executor, const ValueOptions& options, RunResult& result) {
  const Program& program = executor.program();
  FoldedWeights folded(program);
  std::map<std::string, int> buffer_of;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].place == Place::kInput) buffer_of[program.buffers[i].name] = static_cast<int>(i);
  }
  for (const auto& [name, buffer] : buffer_of) {
    if (folded.is_folded(name) && !program.buffers[buffer].fill.literal.empty())
      WL_RETURN_IF_ERROR(executor.generate(buffer, 0));
  }
  std::set<std::string> given;
  // Sets an input or a weight. Returns false if the program has none called `name`.
  const auto set = [&](const std::string& name, DType dtype, const Shape& shape,
                       std::string_view bytes) -> absl::StatusOr<bool> {
    const auto found = buffer_of.find(name);
    if (found == buffer_of.end() && !folded.reads(name)) return false;
    if (folded.reads(name)) WL_RETURN_IF_ERROR(folded.set(name, dtype, shape, bytes, executor));
    if (found != buffer_of.end() && !folded.is_folded(name))
      WL_RETURN_IF_ERROR(executor.set(found->second, dtype, shape, bytes));
    given.insert(name);
    return true;
  };
  for (const std::string& path : options.weights) {
    size_t used = 0;
    WL_RETURN_IF_ERROR(visit_arrays(
        path,
        [&](const std::string& name, DType dtype, const Shape& shape, std::string_view bytes) -> absl::Status {
          // Files may hold more arrays than the program reads, such as folded weights or those of other models.
          WL_ASSIGN_OR_RETURN(const bool read, set(name, dtype, shape, bytes));
          used += read ? 1 : 0;
          return absl::OkStatus();
        },
        visit_onnx));
    if (used == 0 && !without_values(program, folded, given).empty()) {
      return invalid("no array in ", path, " bears the name of an input; the inputs are ",
                     input_names(program, folded));
    }
  }
  for (const auto& [name, path] : options.inputs) {
    if (!buffer_of.contains(name) && !folded.reads(name))
      return invalid("no input is named ", name, suggestion(name, absl::StrSplit(input_names(program, folded), ", ")),
                     "; the inputs are ", input_names(program, folded));
    WL_ASSIGN_OR_RETURN(std::string bytes, read_file(path, most_array_bytes()));
    WL_ASSIGN_OR_RETURN(Array array, parse_npy(bytes, path));
    WL_RETURN_IF_ERROR(set(name, array.dtype, array.shape, array.bytes).status());
  }
  WL_RETURN_IF_ERROR(folded.finish(executor));
  const std::set<std::string> missing = folded.missing(/*begun=*/true);
  if (!missing.empty()) {
    return invalid("weight ", *missing.begin(),
                   " is not given, but one that is multiplied with it before the first run is; give both");
  }
  const std::set<std::string> weights = without_values(program, folded, given);
  if (!options.inputs.empty() && !weights.empty()) {
    return invalid("weight ", *weights.begin(), weights.size() == 1 ? "" : cat(" and ", weights.size() - 1, " others"),
                   weights.size() == 1 ? " has no value" : " have no values",
                   "; where an --input is given, weights are not made up: give them with --weights FILE");
  }
  result.generated.assign(weights.begin(), weights.end());
  for (const auto& [name, buffer] : buffer_of) {
    if (given.contains(name) || folded.is_folded(name)) continue;
    if (!is_weight(program, name) && program.buffers[buffer].fill.literal.empty()) result.generated.push_back(name);
    WL_RETURN_IF_ERROR(executor.generate(buffer, options.seed));
  }
  WL_RETURN_IF_ERROR(folded.generate(options.seed, executor));
  result.given.assign(given.begin(), given.end());
  return absl::OkStatus();
}

bool RunResult::correct() const {
  return std::all_of(checks.begin(), checks.end(), [](const OutputCheck& check) { return check.wrong == 0; });
}

absl::StatusOr<RunResult> run_program(const Program& program, const RunOptions& options) {
  RunResult result;
  WL_ASSIGN_OR_RETURN(Executor executor,
                      Executor::create(program, {.threads = options.threads, .device = options.device}));
  result.threads = executor.threads();
  result.device = executor.device();
  WL_RETURN_IF_ERROR(fill_inputs(executor, options.values, result));
  WL_RETURN_IF_ERROR(run_and_check(executor, options, result));
  if (!options.output_dir.empty()) {
    WL_RETURN_IF_ERROR(make_folders(options.output_dir));
    for (const ProgramOutput& output : program.outputs) {
      const ProgramBuffer& value = program.buffers[output.buffer];
      WL_RETURN_IF_ERROR(
          save(options.output_dir, output.name, value.dtype, value.shape, bytes_of(executor, output.buffer)));
    }
    if (options.save_inputs) WL_RETURN_IF_ERROR(save_inputs(executor, options.output_dir + "/inputs"));
  }
  if (options.repeat > 0) {
    WL_ASSIGN_OR_RETURN(result.samples_ns, executor.time(options.repeat));
    if (options.profile) {
      WL_ASSIGN_OR_RETURN(result.steps_ns, executor.profile(options.repeat));
    }
  }
  return result;
}

}  // namespace wl
