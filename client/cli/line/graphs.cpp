// Adds the commands about one graph or bundle to the command line.
#include <functional>

#include "client/cli/line/common_options.h"
#include "client/cli/values.h"
#include "compiler/base/libraries.h"
#include "proto/trace.h"

namespace wl {
namespace {

// Adds the flags that say whose compiled kernels are used. Unless `with` is null, each flag may only be given with that
// option.
void add_trust(CLI::App* sub, TrustOptions& options, CLI::Option* with = nullptr) {
  CLI::Option* build = sub->add_flag("--build-locally", options.build_locally,
                                     "compile the kernels here, instead of using objects that others compiled");
  CLI::Option* trust =
      sub->add_flag("--trust-workers", options.trust_workers,
                    "use objects although nobody but the workers that sent them gives a word for them");
  trust->excludes(build);
  if (with == nullptr) return;
  build->needs(with);
  trust->needs(with);
}

void add_out(CLI::App* sub, ResultOptions& options, const std::string& says) {
  add_trust(sub, options.trust, sub->add_option("--out", options.out, says)->type_name("DIR"));
}

// Adds an option whose values are read by `parse`. An error (absl::Status) of `parse` becomes an error of the command
// line.
template <typename Parse>
CLI::Option* add_parsed(CLI::App* sub, const std::string& name, const std::string& says, const std::string& type,
                        Parse parse) {
  return sub
      ->add_option(
          name,
          [parse, name](const CLI::results_t& values) {
            for (const std::string& value : values) {
              absl::Status status = parse(value);
              if (!status.ok()) throw CLI::ValidationError(name, std::string(status.message()));
            }
            return true;
          },
          says)
      ->type_name(type);
}

void add_libraries(CLI::App* sub, TuneOptions& options) {
  sub->add_option(
         "--libraries", options.libraries,
         "which library products may call: onednn on CPUs, cublaslt on NVIDIA's GPUs, hipblaslt on AMD's. A bundle "
         "with a kernel that calls one needs it")
      ->capture_default_str()
      ->check(one_of(library_choices()))
      ->type_name("L");
}

void add_bind(CLI::App* sub, BindValues& bind) {
  add_parsed(sub, "--bind", "extent of a symbolic dimension, e.g. batch=8, or several, e.g. n=64,128; repeatable",
             "NAME=N[,N..]",
             [&bind](const std::string& text) -> absl::Status {
               WL_ASSIGN_OR_RETURN(auto assignment, parse_assignment(text));
               WL_ASSIGN_OR_RETURN(bind[assignment.first], parse_extents(assignment.second, text));
               return absl::OkStatus();
             })
      ->expected(1)
      ->take_all();
}

void add_graph(CLI::App* sub, GraphOptions& options) {
  add_bind(sub, options.bind);
  sub->add_option(
         "--weight", options.weights,
         "an input of a .graph file whose values stay the same, as those of an .onnx file's weights do; repeatable")
      ->expected(1)
      ->take_all()
      ->type_name("NAME");
  sub->add_flag("--allow-tf32", options.allow_tf32,
                "products of f32 may multiply factors of 10 bits (TF32), by the matrix instructions of NVIDIA's GPUs; "
                "results are then checked with that error");
  sub->add_option("--target", options.tune.target, "cpu, or a row of `warploom targets`")
      ->capture_default_str()
      ->type_name("T");
  sub->add_option("--cover", options.tune.cover, "which ops share a kernel at most:"
#define WL_COVER(function, name, layout, refines, judged, above_greedy, simpler, most_ops, says) "\n" name ": " says
#include "compiler/cover/table/covers.def"
#undef WL_COVER
                  )
      ->capture_default_str()
      ->type_name("C");
  sub->add_option_function<std::string>(
         "--measure", [&options](const std::string& how) { options.tune.cold = how == "cold"; },
         "warm (default) or cold: whether a kernel finds its data in cache")
      ->check(one_of({"cold", "warm"}))
      ->type_name("HOW");
  add_libraries(sub, options.tune);
}

void add_patience(CLI::App* sub, JobOptions& options) {
  add_parsed(
      sub, "--wait-for-worker",
      "end a job that no worker has served for this time, with exit code 4: 90, 90s, 5m, 1h; for ever unless said",
      "TIME", [&options](const std::string& text) -> absl::Status {
        WL_ASSIGN_OR_RETURN(options.wait_for_worker_s, parse_seconds(text));
        return absl::OkStatus();
      });
}

void add_trace(CLI::App* sub, JobOptions& options) {
  add_parsed(sub, "--trace", "trace id for logs, 32 hexadecimal digits; of TRACEPARENT or a new one unless said", "ID",
             [&options](const std::string& text) {
               const auto trace = parse_trace(text);
               if (trace.ok()) options.trace = *trace;
               return trace.status();
             });
}

std::string efforts_text() {
  std::string text = "how much is done before the answer:";
  for (const Effort& row : kEfforts) append(&text, "\n", row.name, ": ", row.says);
  return text;
}

void add_search(CLI::App* sub, TuneOptions& options) {
  CLI::Option* trials =
      sub->add_option("--trials", options.trials, "candidates per distinct group (default: by --effort)")
          ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
          ->type_name("N");
  add_parsed(sub, "--budget", "stop after this time: 90, 90s, 5m, 1h", "TIME",
             [&options](const std::string& text) -> absl::Status {
               WL_ASSIGN_OR_RETURN(options.budget_s, parse_seconds(text));
               return absl::OkStatus();
             });
  CLI::Option* effort = sub->add_option("--effort", options.effort, efforts_text())
                            ->capture_default_str()
                            ->check(one_of(effort_names()))
                            ->type_name("E");
  sub->add_flag_callback(
         "--now", [&options] { options.effort = "now"; }, "the same as --effort now")
      ->excludes(effort)
      ->excludes(trials);
  sub->add_flag("--kernels-alone", options.kernels_alone,
                "with --cover stitched or planned: choose by the times of kernels alone, without timing whole covers");
  sub->add_flag("--background", options.background, "search only while no other work waits for the workers");
  sub->add_option("--at-once", options.at_once,
                  "rounds of a group that are measured at once; 0: as many as there are workers for it. With 1 the "
                  "candidates do not depend on how many workers there are")
      ->check(CLI::Range(0, 1024));
  sub->add_option("--strategy", options.strategy, "how candidates are proposed:"
#define WL_STRATEGY(name, says) "\n" #name ": " says
#include "compiler/search/strategies.def"
#undef WL_STRATEGY
                  )
      ->capture_default_str()
      ->type_name("S");
  sub->add_option("--seed", options.seed, "seed of the random numbers in the search")
      ->capture_default_str()
      ->type_name("N");
  auto* cached = sub->add_flag("--require-cached", options.require_cached,
                               "never search: exit 3 when any group is not in the store");
  sub->add_flag("--retune", options.retune, "search again although the store has an answer")->excludes(cached);
}

// Adds the options for the values of a program's inputs and weights.
void add_given(CLI::App* sub, ValueOptions& values) {
  add_parsed(sub, "--input", "a .npy file for one input; repeatable", "NAME=FILE",
             [&values](const std::string& text) -> absl::Status {
               WL_ASSIGN_OR_RETURN(auto assignment, parse_assignment(text));
               values.inputs[assignment.first] = assignment.second;
               return absl::OkStatus();
             })
      ->expected(1)
      ->take_all();
  sub->add_option("--weights", values.weights,
                  "arrays by input name: the .onnx file, an .npz, a folder of .npy files; repeatable")
      ->expected(1)
      ->take_all()
      ->type_name("PATH");
  sub->add_option("--seed", values.seed, "seed of inputs that are not given")->capture_default_str()->type_name("N");
}

void add_run(CLI::App* sub, RunOptions& run) {
  sub->add_flag("--check", run.check, "compare sampled outputs with the double-precision oracle; exit 5 when wrong");
  sub->add_option_function<std::string>(
         "--check-by",
         [&run](const std::string& how) {
           run.check = true;
           run.check_by = how == "whole" ? CheckBy::kWhole : how == "steps" ? CheckBy::kSteps : CheckBy::kAuto;
         },
         "compare with --check the whole graph at once, or every step by itself; auto (default): by size")
      ->check(one_of({"auto", "whole", "steps"}))
      ->type_name("HOW");
  CLI::Option* repeat =
      sub->add_option("--repeat", run.repeat, "time N runs")->check(CLI::Range(1, 1'000'000))->type_name("N");
  sub->add_flag("--profile", run.profile, "with --repeat: time N more runs kernel by kernel")->needs(repeat);
  add_given(sub, run.values);
  sub->add_option("--output-dir", run.output_dir, "write NAME.npy of every output")->type_name("DIR");
  sub->add_flag("--save-inputs", run.save_inputs, "with --output-dir: also write inputs/NAME.npy of every input");
  sub->add_option("--device", run.device, "the GPU for GPU kernels (default: the first that can run them)")
      ->type_name("cuda:N|hip:N");
  sub->add_option("--threads", run.threads, "limit of threads (default: as tuned)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
}

// These functions add one command each.
void add_run_command(CLI::App& app, Options& options) {
  RunCommandOptions& run = options.run;
  CLI::App* sub = command(app, options, "run", "run a tuned bundle, or a graph with what the store has",
                          "warploom run tuned --check --repeat 20");
  sub->add_option("DIR|FILE", run.graph.file, "the bundle or graph")->required();
  add_run(sub, run.run);
  add_trust(sub, run.trust);
  add_graph(sub, run.graph);
  add_connection(sub, options.connection);
  add_json(sub, run.json);
}

void add_export(CLI::App& app, Options& options) {
  ExportCommandOptions& out = options.export_bundle;
  CLI::App* sub = command(app, options, "export", "a bundle as sources that need nothing of Warploom, with a self-test",
                          "warploom export tuned --weights model.onnx --out bert && cmake -S bert -B build");
  sub->add_option("DIR", out.bundle, "the bundle")->required();
  sub->add_option("--out", out.out, "folder of the sources; replaces an earlier export")->required()->type_name("DIR");
  sub->add_option("--name", out.name, "of the library and its functions (default: as the folder)")->type_name("NAME");
  sub->add_flag("--run", out.run,
                "let the bundle's kernels compute what the self-test expects; for graphs that are too large for the "
                "evaluation in double precision");
  add_given(sub, out.values);
  add_bind(sub, out.bind);
}

void add_report(CLI::App& app, Options& options) {
  CLI::App* sub = command(app, options, "report", "the report of a bundle as a page: times, roofline, graph",
                          "warploom report tuned --html tuned.html");
  sub->add_option("DIR", options.report.bundle, "the bundle")->required();
  add_html(sub, options.report.html)->required();
  add_bind(sub, options.report.bind);
  add_connection(sub, options.connection);
}

void add_tune(CLI::App& app, Options& options) {
  TuneCommandOptions& tune = options.tune;
  CLI::App* sub = command(app, options, "tune", "tune a graph: .onnx, or .graph canonical text",
                          "warploom tune model.onnx --trials 64 --out tuned");
  sub->add_option("FILE", tune.graph.file, "the graph")->required();
  add_out(sub, tune.result, "write a bundle that `warploom run` needs nothing else for");
  add_graph(sub, tune.graph);
  add_search(sub, tune.graph.tune);
  add_connection(sub, options.connection);
  add_json(sub, tune.result.report.json);
  add_html(sub, tune.result.report.html);
  add_progress(sub, tune.progress);
  add_patience(sub, tune.job);
  add_trace(sub, tune.job);
}

void add_batch(CLI::App& app, Options& options) {
  BatchOptions& batch = options.batch;
  CLI::App* sub =
      command(app, options, "batch", "tune the models of a file, with a bundle for each; goes on if run again",
              "warploom batch nightly.toml --server HOST:7411");
  sub->add_option("FILE", batch.file, "TOML: out, [[model]], and options of tune (client/cli/batch/batch_file.h)")
      ->required();
  sub->add_option("--jobs", batch.jobs_at_once, "jobs at once at a coordinator")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  add_trust(sub, batch.trust);
  add_connection(sub, options.connection);
  add_json(sub, batch.json);
  add_patience(sub, batch.job);
  add_trace(sub, batch.job);
}

void add_get(CLI::App& app, Options& options) {
  GetOptions& get = options.get;
  CLI::App* sub =
      command(app, options, "get", "fetch what the store has for a graph or a problem key; exit 3 on a miss",
              "warploom get model.onnx --out tuned");
  sub->add_option("FILE|KEY", get.graph.file,
                  "the graph, or the key of one group or its first digits, from `warploom records`")
      ->required();
  add_out(sub, get.result, "write a bundle (of a key: source, object and record)");
  add_graph(sub, get.graph);
  add_connection(sub, options.connection);
  add_json(sub, get.result.report.json);
}

void add_inspect(CLI::App& app, Options& options) {
  InspectOptions& inspect = options.inspect;
  CLI::App* sub =
      command(app, options, "inspect", "what the compiler makes of a graph, or what a bundle launches; needs no device",
              "warploom inspect model.onnx --stage source");
  sub->add_option("FILE", inspect.graph.file, "the graph, whose stored result is shown if there is one, or a bundle")
      ->required();
  sub->add_option("--stage", inspect.stage,
                  "graph, space (what can be chosen for each kernel), plan, kernel, source or asm")
      ->capture_default_str()
      ->check(one_of({"graph", "space", "plan", "kernel", "source", "asm"}))
      ->type_name("STAGE");
  sub->add_flag("--simplify-only", inspect.simplify_only, "stage graph: rewrite rules applied, not cut into groups");
  sub->add_flag("--why", inspect.why, "stage plan: why each group is what it is, and what else was priced");
  sub->add_option("--svg", inspect.svg, "stage plan: write a picture of the graph with its groups coloured")
      ->type_name("FILE");
  add_graph(sub, inspect.graph);
  add_connection(sub, options.connection);
}

}  // namespace

void add_graph_commands(CLI::App& app, Options& options) {
  add_tune(app, options);
  add_batch(app, options);
  add_run_command(app, options);
  add_export(app, options);
  add_report(app, options);
  add_get(app, options);
  add_inspect(app, options);
}

}  // namespace wl
