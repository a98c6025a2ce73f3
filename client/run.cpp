#include "client/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "client/arena.h"
#include "client/files.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

using Place = ProgramBuffer::Place;

std::string shape_text(DType dtype, const Shape& shape) {
  std::string text = cat(name_of(dtype), "[");
  for (size_t i = 0; i < shape.size(); ++i) append(&text, i ? "," : "", shape[i]);
  return text + "]";
}

// How far `found` is from `expected` in units of `bound`; infinite when the two differ in kind.
double relative_error(double expected, double bound, double found) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::isnan(expected)) return std::isnan(found) ? 0 : kInfinity;
  if (std::isinf(expected)) return found == expected ? 0 : kInfinity;
  double error = std::fabs(found - expected);
  if (!(error > 0)) return std::isnan(error) ? kInfinity : 0;
  return bound > 0 ? error / bound : kInfinity;
}

absl::Status fill_inputs(Executor& executor, const RunOptions& options, RunResult& result) {
  const Program& program = executor.program();
  std::map<std::string, Array> arrays;
  if (!options.weights.empty()) {
    WL_ASSIGN_OR_RETURN(std::string bytes, read_file(options.weights));
    WL_ASSIGN_OR_RETURN(arrays, parse_npz(bytes, options.weights));
  }
  std::map<std::string, std::string> unused = options.inputs;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    const ProgramBuffer& buffer = program.buffers[i];
    if (buffer.place != Place::kInput) continue;
    if (auto file = options.inputs.find(buffer.name); file != options.inputs.end()) {
      WL_ASSIGN_OR_RETURN(std::string bytes, read_file(file->second));
      WL_ASSIGN_OR_RETURN(Array array, parse_npy(bytes, file->second));
      WL_RETURN_IF_ERROR(executor.set(i, array));
      unused.erase(buffer.name);
    } else if (auto array = arrays.find(buffer.name); array != arrays.end()) {
      WL_RETURN_IF_ERROR(executor.set(i, array->second));
    } else {
      executor.generate(i, options.seed);
      continue;
    }
    result.given.push_back(buffer.name);
  }
  if (!unused.empty()) {
    std::string names;
    for (const ProgramBuffer& buffer : program.buffers) {
      if (buffer.place == Place::kInput) append(&names, names.empty() ? "" : ", ", buffer.name);
    }
    return invalid("no input is named ", unused.begin()->first, "; the inputs are ", names);
  }
  return absl::OkStatus();
}

// Which elements are worth looking at does not depend on the inputs' values; what they should be does. Replaces the
// latter by what the oracle makes of the inputs in the executor's memory.
absl::Status expect_from_memory(const Executor& executor, const Graph& graph, Check& check) {
  const Program& program = executor.program();
  std::vector<NodeId> inputs = graph.inputs();
  std::map<NodeId, int> buffer_of;
  for (NodeId id : inputs) {
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      if (program.buffers[i].place == Place::kInput && program.buffers[i].name == graph.nodes[id].text) {
        buffer_of[id] = static_cast<int>(i);
      }
    }
    if (!buffer_of.contains(id)) return invalid("graph.txt has the input ", graph.nodes[id].text, ", the manifest not");
  }
  std::vector<Query> queries;
  for (const Output& output : graph.outputs) queries.push_back({output.node, {}});
  for (const Check::Sample& sample : check.samples) {
    queries[static_cast<size_t>(sample.buffer) - inputs.size()].indices.push_back(sample.index);
  }
  InputReader reader = [&](NodeId id, int64_t index) {
    return load_element(graph.nodes[id].dtype, executor.data(buffer_of.at(id)), static_cast<uint64_t>(index));
  };
  WL_ASSIGN_OR_RETURN(auto values, evaluate(graph, reader, queries));
  check.samples.clear();
  for (size_t o = 0; o < queries.size(); ++o) {
    for (size_t i = 0; i < queries[o].indices.size(); ++i) {
      const Value& value = values[o][i];
      if (!std::isfinite(value.bound)) continue;  // any result would pass
      check.samples.push_back({static_cast<int>(inputs.size() + o), queries[o].indices[i], value.value, value.bound});
    }
  }
  return absl::OkStatus();
}

absl::Status save(const Executor& executor, const std::string& folder, const std::string& name, int buffer) {
  const ProgramBuffer& value = executor.program().buffers[buffer];
  std::string file = name;
  for (char& c : file) {
    if (c == '/' || static_cast<unsigned char>(c) < 32) c = '_';
  }
  std::string_view bytes(static_cast<const char*>(executor.data(buffer)), static_cast<size_t>(value.bytes()));
  return write_file(cat(folder, "/", file, ".npy"), npy_bytes(value.dtype, value.shape, bytes));
}

}  // namespace

absl::StatusOr<Executor> Executor::create(const Program& program, int threads) {
  Executor executor;
  executor.program_ = &program;
  int wanted = 1;
  int64_t scratch = 0;
  std::vector<BlockFunction> entries;
  for (const ProgramKernel& kernel : program.kernels) {
    WL_ASSIGN_OR_RETURN(SharedObject object, SharedObject::open(kernel.object_path));
    WL_ASSIGN_OR_RETURN(void* entry, object.symbol(kernel.source.entry));
    entries.push_back(reinterpret_cast<BlockFunction>(entry));
    executor.objects_.push_back(std::move(object));
    wanted = std::max(wanted, kernel.source.threads);
    scratch = std::max(scratch, kernel.source.scratch_bytes);
  }
  executor.pool_ = std::make_unique<Pool>(threads > 0 ? std::min(threads, wanted) : wanted);
  WL_RETURN_IF_ERROR(executor.pool_->reserve_scratch(scratch));

  WL_ASSIGN_OR_RETURN(Buffer arena, Buffer::create(program.arena_bytes));
  int64_t index = 0;
  for (const ProgramBuffer& buffer : program.buffers) {
    if (buffer.place == Place::kArena) {
      executor.arguments_.push_back(arena.data() + buffer.offset);
      continue;
    }
    WL_ASSIGN_OR_RETURN(Buffer memory, Buffer::create(buffer.bytes(), stagger_of(++index)));
    executor.arguments_.push_back(memory.data());
    executor.buffers_.push_back(std::move(memory));
  }
  executor.buffers_.push_back(std::move(arena));

  for (const ProgramStep& step : program.steps) {
    const Source& source = program.kernels[step.kernel].source;
    Call call;
    call.launch = {entries[step.kernel], source.grid, source.threads, source.scratch_bytes};
    for (int buffer : step.args) call.args.push_back(executor.arguments_[buffer]);
    executor.calls_.push_back(std::move(call));
  }
  return executor;
}

void Executor::generate(int buffer, uint64_t seed) {
  const ProgramBuffer& value = program_->buffers[buffer];
  fill_range(value.fill, value.dtype, seed, value.stream, 0, static_cast<uint64_t>(elements(value.shape)),
             data(buffer));
}

absl::Status Executor::set(int buffer, const Array& array) {
  const ProgramBuffer& value = program_->buffers[buffer];
  if (array.dtype != value.dtype || array.shape != value.shape) {
    return invalid("input ", value.name, " is ", shape_text(value.dtype, value.shape), ", the given array is ",
                   shape_text(array.dtype, array.shape));
  }
  std::memcpy(data(buffer), array.bytes.data(), array.bytes.size());
  return absl::OkStatus();
}

void Executor::poison_results() {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const ProgramBuffer& value = program_->buffers[i];
    if (value.place != Place::kInput) poison(value.dtype, arguments_[i], elements(value.shape));
  }
  pool_->spoil_scratch();
}

void Executor::run() {
  for (const Call& call : calls_) {
    if (call.launch.grid > 0) pool_->launch(call.launch, call.args.data());
  }
}

absl::StatusOr<std::vector<OutputCheck>> check_outputs(const Executor& executor, uint64_t seed, bool all_generated) {
  const Program& program = executor.program();
  WL_ASSIGN_OR_RETURN(Graph graph, parse(program.graph_text));
  WL_ASSIGN_OR_RETURN(Check check, make_check(graph, seed));
  if (!all_generated) WL_RETURN_IF_ERROR(expect_from_memory(executor, graph, check));

  if (graph.outputs.size() != program.outputs.size()) return invalid("graph.txt and manifest.json name other outputs");
  std::vector<OutputCheck> results;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    OutputCheck result;
    result.name = graph.outputs[o].name;
    const ProgramBuffer& buffer = program.buffers[program.outputs[o].buffer];
    const Node& node = graph.nodes[graph.outputs[o].node];
    if (program.outputs[o].name != result.name || buffer.dtype != node.dtype || buffer.shape != node.shape) {
      return invalid("output ", result.name, ": graph.txt and manifest.json differ");
    }
    results.push_back(std::move(result));
  }
  size_t first_output = graph.inputs().size();
  std::vector<double> worst(results.size(), -1);
  for (const Check::Sample& sample : check.samples) {
    size_t o = static_cast<size_t>(sample.buffer) - first_output;
    OutputCheck& result = results[o];
    int buffer = program.outputs[o].buffer;
    double found =
        load_element(program.buffers[buffer].dtype, executor.data(buffer), static_cast<uint64_t>(sample.index));
    double error = relative_error(sample.expected, sample.bound, found);
    ++result.samples;
    if (error > 1) ++result.wrong;
    if (error <= worst[o]) continue;
    worst[o] = error;
    result.max_error = std::isfinite(sample.expected) ? std::fabs(found - sample.expected) : 0;
    result.bound = sample.bound;
    result.index = sample.index;
    result.expected = sample.expected;
    result.found = found;
  }
  return results;
}

bool RunResult::correct() const {
  return std::all_of(checks.begin(), checks.end(), [](const OutputCheck& check) { return check.wrong == 0; });
}

absl::StatusOr<RunResult> run_program(const Program& program, const RunOptions& options) {
  RunResult result;
  WL_ASSIGN_OR_RETURN(Executor executor, Executor::create(program, options.threads));
  result.threads = executor.threads();
  WL_RETURN_IF_ERROR(fill_inputs(executor, options, result));
  executor.poison_results();
  executor.run();
  if (options.check) {
    WL_ASSIGN_OR_RETURN(result.checks, check_outputs(executor, options.seed, result.given.empty()));
  }
  if (!options.output_dir.empty()) {
    WL_RETURN_IF_ERROR(make_folders(options.output_dir));
    for (const ProgramOutput& output : program.outputs) {
      WL_RETURN_IF_ERROR(save(executor, options.output_dir, output.name, output.buffer));
    }
    if (options.save_inputs) {
      std::string folder = options.output_dir + "/inputs";
      WL_RETURN_IF_ERROR(make_folders(folder));
      for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
        if (program.buffers[i].place != Place::kInput) continue;
        WL_RETURN_IF_ERROR(save(executor, folder, program.buffers[i].name, i));
      }
    }
  }
  if (options.repeat > 0) {
    for (int i = 0; i < 2; ++i) executor.run();
    for (int i = 0; i < options.repeat; ++i) {
      auto start = std::chrono::steady_clock::now();
      executor.run();
      auto time = std::chrono::steady_clock::now() - start;
      result.samples_ns.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    }
  }
  return result;
}

}  // namespace wl
