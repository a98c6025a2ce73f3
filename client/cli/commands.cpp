#include "client/cli/commands.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_join.h"
#include "client/cli/compose.h"
#include "client/cli/exit_code.h"
#include "client/cli/table.h"
#include "client/program/bucket.h"
#include "client/program/bundle.h"
#include "client/program/files.h"
#include "client/program/json.h"
#include "client/program/manifest.h"
#include "client/remote/report.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

Json run_json(const Program& program, const RunOptions& options, const RunResult& result) {
  const MemoryUse memory = memory_of(program);
  Json json = {{"format", kReportFormat},
               {"hash", program.graph_hash},
               {"target", program.target},
               {"bind", Json(program.bind)},
               {"calls", program.steps.size()},
               {"arena_bytes", memory.arena},
               {"memory",
                {{"inputs", memory.inputs},
                 {"outputs", memory.outputs},
                 {"intermediates", memory.intermediates},
                 {"live", memory.live}}},
               {"threads", result.threads},
               {"device", result.device},
               {"seed", options.values.seed},
               {"given_inputs", result.given},
               {"generated_inputs", result.generated}};
  if (options.check) {
    json["correct"] = result.correct();
    json["check_by"] = result.by_steps ? "steps" : "whole";
    if (result.by_steps) json["steps_make_graph"] = result.composed;
    json["check"] = Json::array();
    for (const OutputCheck& check : result.checks) {
      json["check"].push_back({{"output", check.name},
                               {"step", check.step},
                               {"samples", check.samples},
                               {"wrong", check.wrong},
                               {"max_error", check.max_error},
                               {"bound", check.bound},
                               {"index", check.index},
                               {"expected", check.expected},
                               {"found", check.found}});
    }
  }
  if (!result.samples_ns.empty()) {
    json["time"] = {{"repeats", result.samples_ns.size()},
                    {"median_ns", median_of(result.samples_ns)},
                    {"min_ns", *std::min_element(result.samples_ns.begin(), result.samples_ns.end())},
                    {"samples_ns", result.samples_ns}};
  }
  if (!result.steps_ns.empty()) {
    json["steps"] = Json::array();
    for (size_t i = 0; i < result.steps_ns.size(); ++i)
      json["steps"].push_back({{"kernel", program.steps[i].kernel},
                               {"key", program.kernels[program.steps[i].kernel].key},
                               {"what", describe_group(program.kernels[program.steps[i].kernel].graph)},
                               {"median_ns", median_of(result.steps_ns[i])},
                               {"min_ns", *std::min_element(result.steps_ns[i].begin(), result.steps_ns[i].end())}});
  }
  return json;
}

std::string bytes_text(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 1 << 10) return cat(bytes, " B");
  if (bytes < 1 << 20) return absl::StrFormat("%.3g KiB", value / (1 << 10));
  return absl::StrFormat("%.4g MiB", value / (1 << 20));
}

void print_check(const OutputCheck& check) {
  std::printf("%s %s: %d samples, %d wrong, max error %s, bound %s\n", check.wrong == 0 ? "ok" : "WRONG",
              check.step < 0 ? check.name.c_str() : cat("step ", check.step, " ", check.name).c_str(), check.samples,
              check.wrong, number_text(check.max_error).c_str(), number_text(check.bound).c_str());
}

// Prints the outcome of a check. For a check by steps, prints only the wrong values, a summary and the value closest to
// its bound.
void print_checks(const RunResult& result) {
  if (!result.by_steps) {
    for (const OutputCheck& check : result.checks) print_check(check);
    return;
  }
  int samples = 0, wrong = 0, steps = 0;
  const OutputCheck* nearest = nullptr;
  for (const OutputCheck& check : result.checks) {
    samples += check.samples;
    wrong += check.wrong > 0;
    steps = std::max(steps, check.step + 1);
    if (check.wrong > 0) print_check(check);
    if (check.bound > 0 &&
        (nearest == nullptr || check.max_error * nearest->bound > nearest->max_error * check.bound)) {
      nearest = &check;
    }
  }
  std::printf("%s %d steps, each checked by itself: %d samples, %d values wrong; together they are %s\n",
              wrong == 0 ? "ok" : "WRONG", steps, samples, wrong,
              result.composed ? "the graph" : "not proven to be the graph");
  if (nearest != nullptr) {
    std::printf("nearest to its bound: ");
    print_check(*nearest);
  }
}

// Prints a table of the kernels, sorted by the time of all their steps, with the share of each in the whole.
void print_steps(const Program& program, const RunResult& result) {
  struct Row {
    size_t kernel = 0;
    int steps = 0;
    double ns = 0;
  };
  std::vector<Row> rows(program.kernels.size());
  double all = 0;
  for (size_t i = 0; i < result.steps_ns.size(); ++i) {
    Row& row = rows[program.steps[i].kernel];
    row.kernel = program.steps[i].kernel;
    ++row.steps;
    const double ns = median_of(result.steps_ns[i]);
    row.ns += ns;
    all += ns;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.ns > b.ns; });
  Table table({{"what"}, {"calls", true}, {"each", true}, {"all", true}, {"share", true}}, wants_colour(STDOUT_FILENO));
  for (const Row& row : rows)
    if (row.steps > 0)
      table.add({describe_group(program.kernels[row.kernel].graph), cat(row.steps), time_text(row.ns / row.steps),
                 time_text(row.ns), absl::StrFormat("%.1f %%", 100 * row.ns / all)});
  std::printf("%s", table.text().c_str());
}

// Runs a program and prints the results.
absl::StatusOr<int> run_and_report(const Program& program, const RunCommandOptions& options) {
  WL_ASSIGN_OR_RETURN(RunResult result, run_program(program, options.run));
  WL_RETURN_IF_ERROR(write_report(options.json, text_of(run_json(program, options.run, result))));
  if (options.json != "-") {
    const std::string size = bind_text(program.bind);
    const std::string where = result.threads > 0 ? cat(result.threads, " threads") : result.device;
    std::printf("ran %zu kernels on %s, %s%s%s; intermediates take %s (%s without reuse)\n", program.steps.size(),
                where.c_str(), program.target.c_str(), size.empty() ? "" : ", tuned for ", size.c_str(),
                bytes_text(program.arena_bytes).c_str(), bytes_text(memory_of(program).intermediates).c_str());
    if (!result.generated.empty()) std::printf("random values: %s\n", absl::StrJoin(result.generated, ", ").c_str());
    print_checks(result);
    if (!result.samples_ns.empty()) {
      std::printf("time: median %s, min %s of %zu runs\n", time_text(median_of(result.samples_ns)).c_str(),
                  time_text(undisturbed_ns(result.samples_ns)).c_str(), result.samples_ns.size());
    }
    if (!result.steps_ns.empty()) print_steps(program, result);
    if (!options.run.output_dir.empty()) std::printf("outputs: %s\n", options.run.output_dir.c_str());
  }
  if (!result.correct()) {
    auto wrong =
        std::find_if(result.checks.begin(), result.checks.end(), [](const auto& check) { return check.wrong > 0; });
    return absl::FailedPreconditionError(
        absl::StrFormat("output %s is wrong: element %d is %.9g, expected %.9g within %.3g", wrong->name, wrong->index,
                        wrong->found, wrong->expected, wrong->bound));
  }
  return kExitDone;
}

absl::StatusOr<std::string> text_of_stage(const InspectedGroup& group, const std::string& stage, Local& local) {
  if (stage == "graph") return group.graph;
  if (stage == "space") return group.space;
  if (stage == "plan") return group.plan;
  if (stage == "kernel") return group.kernel;
  if (stage == "source") return group.source.text;
  return local.assemble(group.source);
}

}  // namespace

absl::StatusOr<GraphFile> read_input(const Context& context, const GraphOptions& options, const Bind& bind) {
  return read_graph(options.file, bind, context.local.panels(options.tune.target, context.embedded), options.weights,
                    options.allow_tf32);
}

absl::StatusOr<Bind> one_size(const std::string& command, const BindValues& bind) {
  std::vector<Bind> sizes = combinations(bind);
  if (sizes.size() != 1) return invalid("--bind: `", command, "` takes one extent for every name");
  return sizes[0];
}

absl::StatusOr<std::string> folder_of_size(const std::string& command, const std::string& bundle,
                                           const BindValues& bind, const std::map<std::string, std::string>& inputs) {
  WL_ASSIGN_OR_RETURN(const Bind size, one_size(command, bind));
  WL_ASSIGN_OR_RETURN(const std::vector<Bucket> buckets, list_buckets(bundle));
  size_t bucket = 0;
  if (buckets.size() > 1 || !size.empty()) {
    std::map<std::string, Shape> shapes;
    for (const auto& [name, path] : inputs) {
      WL_ASSIGN_OR_RETURN(std::string bytes, read_file(path, most_array_bytes()));
      WL_ASSIGN_OR_RETURN(Array array, parse_npy(bytes, path));
      shapes[name] = array.shape;
    }
    WL_ASSIGN_OR_RETURN(bucket, pick_bucket(buckets, size, shapes));
  }
  return buckets[bucket].folder;
}

absl::StatusOr<int> run_command(Context& context, const RunCommandOptions& options) {
  const GraphOptions& graph = options.graph;
  if (is_folder(graph.file)) {
    WL_ASSIGN_OR_RETURN(const std::string folder,
                        folder_of_size("run", graph.file, graph.bind, options.run.values.inputs));
    WL_ASSIGN_OR_RETURN(Program program, load_bundle(folder));
    return run_and_report(program, options);
  }
  WL_ASSIGN_OR_RETURN(const Bind bind, one_size("run", graph.bind));
  WL_ASSIGN_OR_RETURN(GraphFile file, read_input(context, graph, bind));
  WL_ASSIGN_OR_RETURN(Job job, stored_job(context, file, graph.tune));
  if (!job.result) return why_no_result(job);
  WL_ASSIGN_OR_RETURN(Program program,
                      fetch_program(context.service, objects_of(context, options.trust), *job.result, file));
  // Kernels are loaded from files in this temporary folder, which PendingFolder removes, since nothing commits it.
  WL_ASSIGN_OR_RETURN(const std::string temporary, temporary_folder());
  WL_ASSIGN_OR_RETURN(PendingFolder folder, PendingFolder::create(temporary + "/warploom-run"));
  for (ProgramKernel& kernel : program.kernels) {
    kernel.object_path = cat(folder.path(), "/", object_file(kernel.source));
    WL_RETURN_IF_ERROR(write_file(kernel.object_path, kernel.object));
  }
  return run_and_report(program, options);
}

namespace {

// Inspects the kernels that the bundle launches; planning the bundle's graph again could choose other kernels.
absl::StatusOr<Inspection> inspect_bundle(Context& context, const InspectOptions& options, const std::string& stage,
                                          bool why) {
  WL_ASSIGN_OR_RETURN(const std::string folder, folder_of_size("inspect", options.graph.file, options.graph.bind));
  WL_ASSIGN_OR_RETURN(const Program program, load_bundle(folder));
  if (options.simplify_only)
    return context.service.inspect(program.graph_text, options.graph.tune, stage, /*simplify_only=*/true);
  WL_ASSIGN_OR_RETURN(const std::string report, read_file(cat(folder, "/report.json")));
  WL_ASSIGN_OR_RETURN(Inspection out, context.service.inspect(result_of(program, report), stage, why));
  if (stage != "source") return out;
  // Another version may print the source of a plan in another way, so the bundle's own source is shown.
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    WL_ASSIGN_OR_RETURN(std::string text, read_file(cat(folder, "/", source_path(program.kernels[i]))));
    Source& shown = out.groups[i].source;
    if (text.find(shown.text) != std::string::npos) continue;
    shown = program.kernels[i].source;
    shown.text = std::move(text);
  }
  return out;
}

absl::StatusOr<Inspection> inspect_graph(Context& context, const InspectOptions& options, const std::string& stage,
                                         bool why) {
  WL_ASSIGN_OR_RETURN(const Bind bind, one_size("inspect", options.graph.bind));
  WL_ASSIGN_OR_RETURN(const GraphFile file, read_input(context, options.graph, bind));
  TuneOptions tune = options.graph.tune;
  if (context.embedded) {
    WL_ASSIGN_OR_RETURN(tune.device, context.local.device_for(tune.target, /*must_run=*/false));
  }
  return context.service.inspect(file.text, tune, stage, options.simplify_only, why);
}

}  // namespace

absl::StatusOr<int> inspect_command(Context& context, const InspectOptions& options) {
  const std::string stage = options.stage == "asm" ? "source" : options.stage;
  const bool why = options.why || !options.svg.empty();
  if (why && options.stage != "plan")
    return invalid(options.why ? "--why" : "--svg",
                   " explains which ops share a kernel; it goes with --stage plan, not ", options.stage);
  WL_ASSIGN_OR_RETURN(const Inspection inspection, is_folder(options.graph.file)
                                                       ? inspect_bundle(context, options, stage, why)
                                                       : inspect_graph(context, options, stage, why));
  if (!options.svg.empty()) WL_RETURN_IF_ERROR(write_file(options.svg, inspection.picture));
  if (options.why) {
    std::fputs(inspection.why.c_str(), stdout);
    return kExitDone;
  }
  if (inspection.groups.empty()) std::fputs(inspection.graph.c_str(), stdout);
  for (size_t i = 0; i < inspection.groups.size(); ++i) {
    const InspectedGroup& group = inspection.groups[i];
    WL_ASSIGN_OR_RETURN(const std::string text, text_of_stage(group, options.stage, context.local));
    std::printf("# g%zu: %s, %s, occurs %ld times, key %s\n", i, describe_group(group.graph).c_str(),
                group.tuned ? "tuned" : "default schedule", group.count, group.key.c_str());
    if (options.stage == "plan" && !group.space.empty())
      std::printf("# %s; --stage space lists the choices\n", group.space.substr(0, group.space.find('\n')).c_str());
    std::fputs(text.c_str(), stdout);
    if (!text.ends_with('\n')) std::fputs("\n", stdout);
  }
  return kExitDone;
}

absl::StatusOr<int> targets_command(Local& local, const TargetsOptions& options) {
  const Device& device = local.device();
  const Local::Gpus gpus = local.gpus();
  Table table({{"target"}, {"compile"}, {"run"}, {"missing"}}, wants_colour(STDOUT_FILENO));
  Json json = {{"format", kReportFormat},
               {"device", device.name},
               {"threads", device.threads},
               {"compilers", device.compilers},
               {"compiler_versions", device.compiler_versions},
               {"libraries", device.libraries},
               {"gpus", Json::array()},
               {"missing_gpus", gpus.missing},
               {"targets", Json::array()}};
  std::string text = cat(device.name, ", ", device.threads, " threads; ",
                         device.compilers.empty() ? "no compiler found" : device.compiler_versions, "\n");
  append(&text, "libraries for --libraries: ", device.libraries.empty() ? "none found" : device.libraries, "\n");
  for (const auto& [name, gpu] : gpus.found) {
    append(&text, name, ": ", gpu.name, ", ", gpu.target, ", ", gpu.threads, " units, L2 ", bytes_text(gpu.l2_bytes),
           "; ", gpu.compiler_versions, gpu.libraries.empty() ? "" : cat("; ", gpu.libraries), "; ", gpu.details, "\n");
    json["gpus"].push_back({{"name", name},
                            {"device", gpu.name},
                            {"target", gpu.target},
                            {"libraries", gpu.libraries},
                            {"units", gpu.threads},
                            {"l2_bytes", gpu.l2_bytes},
                            {"compiler_versions", gpu.compiler_versions},
                            {"details", gpu.details},
                            {"fingerprint", gpu.fingerprint()}});
  }
  for (const std::string& line : gpus.missing) append(&text, line, "\n");
  for (const Local::TargetRow& row : local.targets()) {
    const bool standard = row.name == device.target;
    table.add({row.name, row.compilers.empty() ? "no" : row.compilers,
               row.runs_on.empty() ? "no" : cat(row.runs_on, standard ? ", default" : ""), row.missing});
    json["targets"].push_back({{"name", row.name},
                               {"compile", !row.compilers.empty()},
                               {"run", !row.runs_on.empty()},
                               {"default", standard},
                               {"missing", row.missing}});
  }
  WL_RETURN_IF_ERROR(write_report(options.json, text_of(json)));
  if (options.json != "-") std::printf("%s%s", text.c_str(), table.text().c_str());
  return kExitDone;
}

}  // namespace wl
