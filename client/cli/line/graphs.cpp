// The commands about one graph or bundle.
#include <functional>

#include "client/cli/line/common_options.h"
#include "client/cli/values.h"
#include "compiler/base/libraries.h"
#include "proto/trace.h"

namespace wl {
namespace {

// Adds the flags that say whose objects are used. Unless `with` is null, each flag may only be given with that option.
void add_trust(CLI::App* sub, Options& options, CLI::Option* with = nullptr) {
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

void add_out(CLI::App* sub, Options& options, const std::string& says) {
  add_trust(sub, options, sub->add_option("--out", options.out, says)->type_name("DIR"));
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

void add_libraries(CLI::App* sub, Options& options) {
  sub->add_option(
         "--libraries", options.tune.libraries,
         "which library products may call: onednn on CPUs, cublaslt on NVIDIA's GPUs, hipblaslt on AMD's. A bundle "
         "with a kernel that calls one needs it")
      ->capture_default_str()
      ->check(one_of(library_choices()))
      ->type_name("L");
}

void add_bind(CLI::App* sub, Options& options) {
  add_parsed(sub, "--bind", "extent of a symbolic dimension, e.g. batch=8, or several, e.g. n=64,128; repeatable",
             "NAME=N[,N..]",
             [&options](const std::string& text) -> absl::Status {
               WL_ASSIGN_OR_RETURN(auto assignment, parse_assignment(text));
               WL_ASSIGN_OR_RETURN(options.bind[assignment.first], parse_extents(assignment.second, text));
               return absl::OkStatus();
             })
      ->expected(1)
      ->take_all();
}

void add_graph(CLI::App* sub, Options& options) {
  add_bind(sub, options);
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
  add_libraries(sub, options);
}

void add_patience(CLI::App* sub, Options& options) {
  add_parsed(
      sub, "--wait-for-worker",
      "end a job that no worker has served for this time, with exit code 4: 90, 90s, 5m, 1h; for ever unless said",
      "TIME", [&options](const std::string& text) -> absl::Status {
        WL_ASSIGN_OR_RETURN(options.wait_for_worker_s, parse_seconds(text));
        return absl::OkStatus();
      });
}

void add_search(CLI::App* sub, Options& options) {
  sub->add_option("--trials", options.tune.trials, "candidates per distinct group (default: by --effort)")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->type_name("N");
  add_parsed(sub, "--budget", "stop after this time: 90, 90s, 5m, 1h", "TIME",
             [&options](const std::string& text) -> absl::Status {
               WL_ASSIGN_OR_RETURN(options.tune.budget_s, parse_seconds(text));
               return absl::OkStatus();
             });
  sub->add_option("--effort", options.tune.effort, "quick, default or thorough")
      ->capture_default_str()
      ->check(one_of({"quick", "default", "thorough"}))
      ->type_name("E");
  sub->add_flag("--kernels-alone", options.tune.kernels_alone,
                "with --cover stitched or planned: choose by the times of kernels alone, without timing whole covers");
  sub->add_option("--at-once", options.tune.at_once,
                  "rounds of a group that are measured at once; 0: as many as there are workers for it. With 1 the "
                  "candidates do not depend on how many workers there are")
      ->check(CLI::Range(0, 1024));
  sub->add_option("--strategy", options.tune.strategy, "how candidates are proposed:"
#define WL_STRATEGY(name, says) "\n" #name ": " says
#include "compiler/search/strategies.def"
#undef WL_STRATEGY
                  )
      ->capture_default_str()
      ->type_name("S");
  sub->add_option("--seed", options.tune.seed, "seed of the random numbers in the search")
      ->capture_default_str()
      ->type_name("N");
  auto* cached = sub->add_flag("--require-cached", options.tune.require_cached,
                               "never search: exit 3 when any group is not in the store");
  sub->add_flag("--retune", options.tune.retune, "search again although the store has an answer")->excludes(cached);
}

// Adds the options for the values of a program's inputs and weights.
void add_given(CLI::App* sub, Options& options) {
  RunOptions& run = options.run;
  add_parsed(sub, "--input", "a .npy file for one input; repeatable", "NAME=FILE",
             [&run](const std::string& text) -> absl::Status {
               WL_ASSIGN_OR_RETURN(auto assignment, parse_assignment(text));
               run.inputs[assignment.first] = assignment.second;
               return absl::OkStatus();
             })
      ->expected(1)
      ->take_all();
  sub->add_option("--weights", run.weights,
                  "arrays by input name: the .onnx file, an .npz, a folder of .npy files; repeatable")
      ->expected(1)
      ->take_all()
      ->type_name("PATH");
  sub->add_option("--seed", run.seed, "seed of inputs that are not given")->capture_default_str()->type_name("N");
}

void add_run(CLI::App* sub, Options& options) {
  RunOptions& run = options.run;
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
  add_given(sub, options);
  sub->add_option("--output-dir", run.output_dir, "write NAME.npy of every output")->type_name("DIR");
  sub->add_flag("--save-inputs", run.save_inputs, "with --output-dir: also write inputs/NAME.npy of every input");
  sub->add_option("--device", run.device, "the GPU for GPU kernels (default: the first that can run them)")
      ->type_name("cuda:N|hip:N");
  sub->add_option("--threads", run.threads, "limit of threads (default: as tuned)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
}

// Adds the commands about a bundle: run, export and report.
void add_bundle_commands(CLI::App& app, Options& options) {
  CLI::App* run = command(app, options, "run", "run a tuned bundle, or a graph with what the store has",
                          "warploom run tuned --check --repeat 20");
  run->add_option("DIR|FILE", options.input, "the bundle or graph")->required();
  add_run(run, options);
  add_trust(run, options);
  add_graph(run, options);
  add_connection(run, options);
  add_json(run, options);

  CLI::App* out = command(app, options, "export", "a bundle as sources that need nothing of Warploom, with a self-test",
                          "warploom export tuned --weights model.onnx --out bert && cmake -S bert -B build");
  out->add_option("DIR", options.input, "the bundle")->required();
  out->add_option("--out", options.out, "folder of the sources; replaces an earlier export")
      ->required()
      ->type_name("DIR");
  out->add_option("--name", options.export_name, "of the library and its functions (default: as the folder)")
      ->type_name("NAME");
  out->add_flag("--run", options.export_run,
                "let the bundle's kernels compute what the self-test expects; for graphs that are too large for the "
                "evaluation in double precision");
  add_given(out, options);
  add_bind(out, options);

  CLI::App* report = command(app, options, "report", "the report of a bundle as a page: times, roofline, graph",
                             "warploom report tuned --html tuned.html");
  report->add_option("DIR", options.input, "the bundle")->required();
  add_html(report, options)->required();
  add_bind(report, options);
  add_connection(report, options);
}

}  // namespace

void add_graph_commands(CLI::App& app, Options& options) {
  CLI::App* tune = command(app, options, "tune", "tune a graph: .onnx, or .graph canonical text",
                           "warploom tune model.onnx --trials 64 --out tuned");
  tune->add_option("FILE", options.input, "the graph")->required();
  add_out(tune, options, "write a bundle that `warploom run` needs nothing else for");
  add_graph(tune, options);
  add_search(tune, options);
  add_connection(tune, options);
  add_json(tune, options);
  add_html(tune, options);
  add_progress(tune, options);

  CLI::App* batch =
      command(app, options, "batch", "tune the models of a file, with a bundle for each; goes on if run again",
              "warploom batch nightly.toml --server HOST:7411");
  batch->add_option("FILE", options.input, "TOML: out, [[model]], and options of tune (client/cli/batch/batch_file.h)")
      ->required();
  batch->add_option("--jobs", options.jobs_at_once, "jobs at once at a coordinator")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  add_trust(batch, options);
  add_connection(batch, options);
  add_json(batch, options);

  for (CLI::App* sub : {tune, batch}) add_patience(sub, options);
  for (CLI::App* sub : {tune, batch})
    add_parsed(sub, "--trace", "trace id for logs, 32 hexadecimal digits; of TRACEPARENT or a new one unless said",
               "ID", [&options](const std::string& text) {
                 const auto trace = parse_trace(text);
                 if (trace.ok()) options.trace = *trace;
                 return trace.status();
               });

  add_bundle_commands(app, options);

  CLI::App* get =
      command(app, options, "get", "fetch what the store has for a graph or a problem key; exit 3 on a miss",
              "warploom get model.onnx --out tuned");
  get->add_option("FILE|KEY", options.input,
                  "the graph, or the key of one group or its first digits, from `warploom records`")
      ->required();
  add_out(get, options, "write a bundle (of a key: source, object and record)");
  add_graph(get, options);
  add_connection(get, options);
  add_json(get, options);

  CLI::App* inspect =
      command(app, options, "inspect", "what the compiler makes of a graph, or what a bundle launches; needs no device",
              "warploom inspect model.onnx --stage source");
  inspect->add_option("FILE", options.input, "the graph, whose stored result is shown if there is one, or a bundle")
      ->required();
  inspect
      ->add_option("--stage", options.stage,
                   "graph, space (what can be chosen for each kernel), plan, kernel, source or asm")
      ->capture_default_str()
      ->check(one_of({"graph", "space", "plan", "kernel", "source", "asm"}))
      ->type_name("STAGE");
  inspect->add_flag("--simplify-only", options.simplify_only,
                    "stage graph: rewrite rules applied, not cut into groups");
  inspect->add_flag("--why", options.why, "stage plan: why each group is what it is, and what else was priced");
  inspect->add_option("--svg", options.svg, "stage plan: write a picture of the graph with its groups coloured")
      ->type_name("FILE");
  add_graph(inspect, options);
  add_connection(inspect, options);
}

}  // namespace wl
