// Plans and measures the device check (tools/device_check.py is its front end):
//   device_check plan TARGET RUNNER FOLDER [--quick] [--candidates N] [--only WORD]... [--plans FILE]
//       on the machine with Warploom: compiles and judges candidates of every workload, or of those whose name has one
//       of the words, and computes the oracle's values; needs no GPU. Each line of FILE is a word and a plan, which is
//       a candidate of the workloads whose name has the word
//   device_check run FOLDER RUNNER RESULT
//       on the machine with the GPU: checks and times the candidates; needs only the driver. RESULT is written anew
//       after every workload
// Exit codes: 0 done, 1 wrong usage, 3 this machine has no such device (RESULT says so), 7 failed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "absl/strings/str_split.h"
#include "bench/device/plans.h"
#include "compiler/base/code.h"
#include "compiler/base/sha256.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/plan/group.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/search/strategy.h"
#include "proto/wire.h"
#include "worker/compile.h"
#include "worker/device_runner.h"
#include "worker/measure.h"

namespace wl {
namespace {

using Json = nlohmann::json;
constexpr int kUsage = 1, kNoDevice = 3, kFailed = 7;
constexpr int64_t kCopyBytes = int64_t{256} << 20;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// What a plan asks for.
struct Wishes {
  bool quick = false;              // small workloads
  int candidates = 12;             // of a workload, at most, beside the plans below
  std::vector<std::string> only;   // words of the names of workloads; empty: all
  std::vector<std::string> plans;  // lines "WORD PLAN": a plan for the workloads whose name has the word
};

bool has_one_of(const std::string& name, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return name.find(word) != std::string::npos; });
}

// Returns the candidates of a workload: the plans that were asked for; default schedules; then what the portfolio
// proposes before any measurement.
absl::StatusOr<std::vector<Candidate>> candidates_of(const DeviceWorkload& workload, const Graph& graph,
                                                     const Machine& machine, const Wishes& wishes) {
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze(graph, machine));
  WL_ASSIGN_OR_RETURN(const Space space, space_of(graph, domain, machine));
  std::vector<Point> points;
  for (const std::string& line : wishes.plans) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (line.empty() || !has_one_of(workload.name, {parts.first})) continue;
    WL_ASSIGN_OR_RETURN(Point point, space.parse(parts.second));
    points.push_back(std::move(point));
  }
  const int wanted = static_cast<int>(points.size()) + wishes.candidates;
  points.insert(points.end(), space.seeds.begin(), space.seeds.end());
  for (Point& point : strategy_named("portfolio").value()->propose(space, {}, 3 * wanted, 1))
    points.push_back(std::move(point));
  std::vector<Candidate> out;
  std::set<std::string> seen;
  for (const Point& point : points) {
    if (static_cast<int>(out.size()) >= wanted) break;
    const auto kernel = lower(graph, domain, space.schedule(point), machine);
    if (!kernel.ok()) continue;
    auto source = emit(*kernel, machine);
    if (source.ok() && seen.insert(source->text).second)
      out.push_back({static_cast<int64_t>(out.size()), space.text(point), *std::move(source)});
  }
  return out;
}

// The copy kernel with which everything is compared: several forms with wide accesses and many of them in flight, of
// which the best counts.
Batch copy_batch(const Machine& machine, int64_t bytes) {
  Batch batch;
  batch.id = "copy";
  batch.problem.key = sha256_hex("copy");
  const int64_t elements = bytes / 8;  // every element is an f32 that is read once and written once
  for (const bool output : {false, true}) {
    BufferSpec spec;
    spec.name = output ? "y" : "x";
    spec.shape = {elements};
    spec.output = output;
    batch.problem.buffers.push_back(spec);
  }
  for (const char* store : {"wl_store", "wl_stream"}) {
    for (const int64_t steps : {1, 2, 4, 8}) {
      Candidate candidate;
      candidate.trial = static_cast<int64_t>(batch.candidates.size());
      candidate.plan = cat("copy ", store, " ", steps);
      Source& source = candidate.source;
      source.target = std::string(machine.target->name);
      source.prelude = prelude_text(*machine.target, 4);
      source.entry = cat("wl_copy_", candidate.trial);
      source.grid = elements / (1024 * steps);
      source.threads = 256;
      source.load_bytes = source.store_bytes = 16;
      source.text =
          cat("WL_KERNEL(", source.entry, ", ", source.grid, ", 256, WL_IN(f32, p0, ", elements, "), WL_OUT(f32, p1, ",
              elements, ")) {\n  WL_ENTER;\n  const long at = block*", 1024 * steps, "L + thread*4;\n");
      for (int64_t s = 0; s < steps; ++s)
        append(&source.text, "  f32v t", s, " = wl_load<f32v, 4>(p0 + at + ", 1024 * s, ");\n");
      for (int64_t s = 0; s < steps; ++s)
        append(&source.text, "  ", store, "<4>(p1 + at + ", 1024 * s, ", t", s, ");\n");
      source.text += "}\n";
      batch.candidates.push_back(std::move(candidate));
    }
  }
  const BufferSpec& x = batch.problem.buffers[0];
  for (uint64_t seed : {1, 2}) {
    Check check{seed, {}};
    for (int64_t i = 0; i < elements; i += elements / 61 + 1)
      check.samples.push_back({1, i, fill_value(x.fill, x.dtype, seed, x.stream, static_cast<uint64_t>(i)), 0});
    batch.checks.push_back(std::move(check));
  }
  return batch;
}

// Compiles and judges a batch, keeps the accepted candidates, and writes everything to a folder.
absl::Status plan_one(Batch batch, const MeasureOptions& options, const std::string& folder) {
  std::filesystem::create_directories(folder);
  batch.recipe.interleave = true;
  batch.recipe.cold = true;
  batch.recipe.min_repeats = 10;
  batch.keep_objects = true;  // an object is kept only if it holds one kernel
  WL_ASSIGN_OR_RETURN(const std::vector<Compiled> compiled, compile_batch(batch, options, folder, [](int) {}));
  std::vector<Candidate> kept;
  std::string facts;
  for (size_t i = 0; i < compiled.size(); ++i) {
    if (compiled[i].outcome != Outcome::kCorrect) continue;
    const std::string object = cat(folder, "/", kept.size(), ".code");
    std::error_code error;
    std::filesystem::copy_file(compiled[i].object, object, std::filesystem::copy_options::overwrite_existing, error);
    append(&facts, code_text(compiled[i].code), "\n");
    batch.candidates[i].trial = static_cast<int64_t>(kept.size());
    // Only the code is copied to the other machine: a prelude takes 50 kilobytes.
    batch.candidates[i].source.prelude.clear();
    kept.push_back(batch.candidates[i]);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".bin") std::filesystem::remove(entry.path());
  if (kept.empty()) return invalid("no candidate of ", batch.id, " is worth running");
  batch.candidates = std::move(kept);
  write_file(folder + "/facts", facts);
  write_file(folder + "/batch", encode(batch));
  return absl::OkStatus();
}

absl::Status plan_workload(const DeviceWorkload& workload, const Graph& graph, const Machine& machine,
                           const MeasureOptions& options, const std::string& folder, const Wishes& wishes) {
  Batch batch;
  batch.id = workload.name;
  batch.problem = {sha256_hex(workload.name), buffers_of(graph)};
  batch.limits = code_limits(machine.target->gpu);
  for (uint64_t seed : {uint64_t{1}, uint64_t{20260501}}) {
    WL_ASSIGN_OR_RETURN(Check check, make_check(graph, seed));
    batch.checks.push_back(std::move(check));
  }
  WL_ASSIGN_OR_RETURN(batch.candidates, candidates_of(workload, graph, machine, wishes));
  return plan_one(std::move(batch), options, cat(folder, "/", workload.name));
}

int plan(const std::string& target, const std::string& runner, const std::string& folder, const Wishes& wishes) {
  const bool quick = wishes.quick;
  const auto row = target_named(target);
  if (!row.ok()) return kUsage;
  Machine machine;
  machine.target = *row;
  MeasureOptions options;
  options.runner = runner;
  ReusedState state;
  options.state = &state;
  Json index = {{"format", 1}, {"target", target}, {"workloads", Json::array()}};
  Batch copy = copy_batch(machine, quick ? int64_t{1} << 20 : kCopyBytes);
  copy.limits = code_limits((*row)->gpu);
  absl::Status status = plan_one(std::move(copy), options, folder + "/copy");
  index["copy_bytes"] = quick ? int64_t{1} << 20 : kCopyBytes;
  for (const DeviceWorkload& workload : device_workloads(quick)) {
    if (!status.ok()) break;
    if (!wishes.only.empty() && !has_one_of(workload.name, wishes.only)) continue;
    const auto graph = parse(workload.graph);
    status = graph.ok() ? plan_workload(workload, *graph, machine, options, folder, wishes) : graph.status();
    if (!status.ok()) {
      status = invalid(workload.name, ": ", status.message());
      break;
    }
    index["workloads"].push_back({{"name", workload.name},
                                  {"op", workload.op},
                                  {"dtype", workload.dtype},
                                  {"shape", workload.shape},
                                  {"operations", workload.operations},
                                  {"bytes", bytes_moved(*graph)}});
    std::fprintf(stderr, "planned %s\n", workload.name.c_str());
  }
  if (!status.ok()) {
    std::fprintf(stderr, "device_check: %s\n", std::string(status.message()).c_str());
    return kFailed;
  }
  write_file(folder + "/index.json", index.dump(1) + "\n");
  return 0;
}

// Reads a batch and its compiled code from a folder, and measures it.
absl::StatusOr<Measured> measure_folder(const std::string& folder, MeasureOptions options, Batch* out) {
  WL_ASSIGN_OR_RETURN(*out, decode_batch(read_file(folder + "/batch")));
  out->keep_objects = false;
  std::vector<Compiled> compiled;
  std::istringstream facts(read_file(folder + "/facts"));
  for (const Candidate& candidate : out->candidates) {
    std::string line;
    std::getline(facts, line);
    WL_ASSIGN_OR_RETURN(const CodeFacts code, parse_code(line));
    compiled.push_back({Outcome::kCorrect, "", cat(folder, "/", candidate.trial, ".code"), 0, code});
  }
  options.compiled = &compiled;
  return measure(*out, options);
}

Json summary(const Batch& batch, const Measured& measured, int64_t bytes) {
  const Trial* best = nullptr;
  std::map<std::string, int> outcomes;
  int64_t samples = 0;
  for (const Check& check : batch.checks) samples += static_cast<int64_t>(check.samples.size());
  Json failed = Json::array(), trials = Json::array();
  for (const Trial& trial : measured.trials) {
    ++outcomes[kOutcomeNames[static_cast<int>(trial.outcome)]];
    if (trial.outcome != Outcome::kCorrect) {
      failed.push_back({{"plan", trial.plan}, {"message", trial.message}});
      continue;
    }
    trials.push_back({{"plan", trial.plan}, {"ns", median_of(trial.samples_ns)}});
    if (best == nullptr || undisturbed_ns(trial.samples_ns) < undisturbed_ns(best->samples_ns)) best = &trial;
  }
  Json out = {{"bytes", bytes},
              {"values_checked", samples * outcomes["correct"]},
              {"outcomes", outcomes},
              {"failed", failed},
              {"trials", trials}};
  if (best == nullptr) return out;
  const double ns = median_of(best->samples_ns);
  out["best"] = {{"plan", best->plan},
                 {"ns", ns},
                 {"gb_per_s", static_cast<double>(bytes) / ns},
                 {"samples_ns", best->samples_ns},
                 {"max_error", best->max_error},
                 {"bound", best->bound},
                 {"code", code_text(best->code)},
                 {"clock_mhz", best->clock_mhz}};
  return out;
}

// Returns a line about a workload's best candidate.
std::string describe(const Json& row) {
  std::string out = row["name"].get<std::string>();
  if (!row["failed"].empty()) append(&out, ", ", row["failed"].size(), " failed: ", row["failed"][0].dump());
  if (!row.contains("best")) return out;
  const double ns = row["best"]["ns"];
  append(&out, ": ", absl::StrFormat("%.1f us, %.0f GB/s", ns / 1e3, row["best"]["gb_per_s"].get<double>()));
  if (const double operations = row["operations"]; operations > 0)
    append(&out, absl::StrFormat(", %.1f Tflop/s", operations / ns / 1e3));
  return out;
}

int finish(const std::string& path, const Json& result, int code) {
  write_file(path, result.dump(1) + "\n");
  std::printf("%s: %s\n", path.c_str(), result["status"].get<std::string>().c_str());
  return code;
}

int run(const std::string& folder, const std::string& runner, const std::string& path) {
  const Json index = Json::parse(read_file(folder + "/index.json"), nullptr, false);
  if (index.is_discarded()) {
    std::fprintf(stderr, "device_check: %s has no index.json; `plan` writes it\n", folder.c_str());
    return kUsage;
  }
  Json result = {{"format", 1}, {"target", index["target"]}};
  const Gpus gpus = find_gpus(runner);
  const std::string target = index["target"];
  const auto gpu = std::find_if(gpus.found.begin(), gpus.found.end(),
                                [&](const Gpus::Gpu& found) { return found.device.target == target; });
  if (gpu == gpus.found.end()) {
    result["status"] = cat("no device for ", target, " here");
    result["missing"] = gpus.missing;
    for (const Gpus::Gpu& found : gpus.found) result["found"].push_back(found.device.target);
    return finish(path, result, kNoDevice);
  }
  result["device"] = {{"name", gpu->device.name},
                      {"fingerprint", gpu->device.fingerprint()},
                      {"details", gpu->device.details},
                      {"compiler_versions", gpu->device.compiler_versions}};
  MeasureOptions options;
  options.runner = runner;
  options.work_dir = std::filesystem::temp_directory_path().string();
  options.gpus = {*gpu};
  ReusedState state;
  options.state = &state;
  int wrong = 0;
  double copy_rate = 0;
  const auto measure_copy = [&] {
    Batch batch;
    const auto measured = measure_folder(folder + "/copy", options, &batch);
    if (!measured.ok()) return measured.status();
    Json row = summary(batch, *measured, index["copy_bytes"]);
    if (row.contains("best")) copy_rate = std::max(copy_rate, row["best"]["gb_per_s"].get<double>());
    result["copy"].push_back(std::move(row));
    return absl::OkStatus();
  };
  absl::Status status = measure_copy();
  for (const Json& workload : index["workloads"]) {
    if (!status.ok()) break;
    const std::string name = workload["name"];
    Batch batch;
    const auto measured = measure_folder(cat(folder, "/", name), options, &batch);
    if (!measured.ok()) {
      status = measured.status();
      break;
    }
    Json row = summary(batch, *measured, workload["bytes"]);
    for (const char* key : {"name", "op", "dtype", "shape", "operations"}) row[key] = workload[key];
    wrong += row["failed"].empty() ? 0 : 1;
    std::fprintf(stderr, "measured %s\n", describe(row).c_str());
    result["workloads"].push_back(std::move(row));
    result["status"] = "not finished";
    write_file(path, result.dump(1) + "\n");
  }
  // The copy is measured before and after, and the better result counts.
  if (status.ok()) status = measure_copy();
  result["copy_gb_per_s"] = copy_rate;
  for (Json& row : result["workloads"])
    if (row.contains("best") && copy_rate > 0)
      row["best"]["of_copy"] = row["best"]["gb_per_s"].get<double>() / copy_rate;
  result["status"] = !status.ok() ? cat("failed: ", std::string(status.message()))
                     : wrong > 0  ? cat(wrong, " workloads have candidates that failed")
                                  : "measured";
  return finish(path, result, status.ok() ? 0 : kFailed);
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  CLI::App app("plans and measures the device check; tools/device_check.py is its front end");
  app.require_subcommand(1);
  std::string target, runner, folder, result, plans;
  wl::Wishes wishes;
  CLI::App* const plan = app.add_subcommand("plan", "compile and judge candidates of every workload; needs no GPU");
  plan->add_option("TARGET", target, "a row of `warploom targets`")->required();
  plan->add_option("RUNNER", runner, "the program warploom-runner")->required()->check(CLI::ExistingFile);
  plan->add_option("FOLDER", folder, "where the plans go")->required();
  plan->add_flag("--quick", wishes.quick, "small workloads, one of each op");
  plan->add_option("--candidates", wishes.candidates, "of a workload, at most, beside given plans")
      ->check(CLI::Range(1, 1000));
  plan->add_option("--only", wishes.only, "workloads whose name has this word")->allow_extra_args(false);
  plan->add_option("--plans", plans, "lines \"WORD PLAN\": candidates of the workloads whose name has the word")
      ->check(CLI::ExistingFile);
  CLI::App* const run = app.add_subcommand("run", "check and time the candidates; needs only the GPU's driver");
  run->add_option("FOLDER", folder, "with the plans")->required()->check(CLI::ExistingDirectory);
  run->add_option("RUNNER", runner, "starts the program warploom-runner")->required()->check(CLI::ExistingFile);
  run->add_option("RESULT", result, "the file to write, JSON")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : wl::kUsage;
  }
  if (!plans.empty()) wishes.plans = absl::StrSplit(wl::read_file(plans), '\n');
  return plan->parsed() ? wl::plan(target, runner, folder, wishes) : wl::run(folder, runner, result);
}
