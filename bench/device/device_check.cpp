// The two halves of the device check (tools/device_check.py is its front end):
//   device_check plan TARGET RUNNER FOLDER [--quick] [--candidates N] [--only WORD]... [--plans FILE]
//                   [--random FIRST:COUNT]
//       on the machine with Warploom: compiles candidates of every workload, or of those whose name has one of the
//       words, judges their code, and computes the oracle's values; needs no GPU. Each line of FILE is a word and a
//       plan, a further candidate of the workloads whose name has the word. The groups of COUNT random graphs, from
//       seed FIRST on, are checked too
//   device_check run FOLDER RUNNER RESULT
//       on the machine with the GPU: checks and times the candidates; needs only a GPU driver. RESULT is written anew
//       after every workload
// Exit codes: 0 done, 1 wrong usage, 3 this machine has no such device (RESULT says so), 7 failed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_split.h"
#include "bench/device/candidates.h"
#include "bench/device/random_groups.h"
#include "compiler/base/code.h"
#include "compiler/base/libraries.h"
#include "compiler/base/sha256.h"
#include "compiler/domain/group.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
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

// Compiles a batch, judges its code, and writes the accepted candidates with their objects to a folder.
absl::Status plan_one(Batch batch, const MeasureOptions& options, const std::string& folder) {
  std::filesystem::create_directories(folder);
  batch.recipe.interleave = true;
  batch.recipe.cold = true;
  batch.recipe.min_repeats = 10;
  batch.keep_objects = true;  // with this flag, each kernel has an object of its own
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
    // The machine with the GPU gets the compiled code, so the prelude of the source is not needed any more; it would
    // add 50 kilobytes to every candidate.
    batch.candidates[i].source.prelude.clear();
    kept.push_back(batch.candidates[i]);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".bin") std::filesystem::remove(entry.path());
  if (kept.empty())
    return invalid("no candidate of ", batch.id, " is worth running",
                   compiled.empty() ? "" : cat("; the last one: ", compiled.back().message));
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
  if (wishes.quick || workload.op == kRandomGroup) batch.recipe.budget_ns = 1'000'000;
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
  std::vector<DeviceWorkload> workloads = device_workloads(quick);
  auto random = random_groups(wishes.random.first, wishes.random.second, machine);
  if (!random.ok()) {
    std::fprintf(stderr, "device_check: %s\n", std::string(random.status().message()).c_str());
    return kFailed;
  }
  std::move(random->begin(), random->end(), std::back_inserter(workloads));
  Batch copy = copy_batch(machine, quick ? int64_t{1} << 20 : kCopyBytes);
  copy.limits = code_limits((*row)->gpu);
  absl::Status status = plan_one(std::move(copy), options, folder + "/copy");
  index["copy_bytes"] = quick ? int64_t{1} << 20 : kCopyBytes;
  for (const DeviceWorkload& workload : workloads) {
    if (!status.ok()) break;
    if (workload.op != kRandomGroup && !wishes.only.empty() && !has_one_of(workload.name, wishes.only)) continue;
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

// Reads a batch and its compiled code from a folder, and measures it without the candidates that call a library which
// the device does not have.
absl::StatusOr<Measured> measure_folder(const std::string& folder, MeasureOptions options, Batch* out) {
  WL_ASSIGN_OR_RETURN(*out, decode_batch(read_file(folder + "/batch")));
  out->keep_objects = false;
  std::vector<Compiled> compiled;
  std::istringstream facts(read_file(folder + "/facts"));
  const std::string library = library_in(options.gpus[0].device.libraries);
  for (const Candidate& candidate : std::exchange(out->candidates, {})) {
    std::string line;
    std::getline(facts, line);
    if (!candidate.source.library.empty() && candidate.source.library != library) continue;
    out->candidates.push_back(candidate);
    WL_ASSIGN_OR_RETURN(const CodeFacts code, parse_code(line));
    compiled.push_back({Outcome::kCorrect, "", cat(folder, "/", candidate.trial, ".code"), 0, code});
  }
  options.compiled = &compiled;
  return measure(*out, options);
}

Json summary(const Batch& batch, const Measured& measured, int64_t bytes) {
  const Trial *best = nullptr, *of_library = nullptr;
  std::map<std::string, int> outcomes;
  int64_t samples = 0;
  for (const Check& check : batch.checks) samples += static_cast<int64_t>(check.samples.size());
  Json failed = Json::array(), trials = Json::array();
  for (const Trial& trial : measured.trials) {
    ++outcomes[kOutcomeNames[static_cast<int>(trial.outcome)]];
    // The kernel asks for a library algorithm that the library on this machine does not offer.
    if (trial.outcome == Outcome::kRejected) continue;
    if (trial.outcome != Outcome::kCorrect) {
      failed.push_back({{"plan", trial.plan}, {"message", trial.message}});
      continue;
    }
    trials.push_back({{"plan", trial.plan}, {"ns", median_of(trial.samples_ns)}});
    const Trial*& fastest = library_of_plan(trial.plan) == nullptr ? best : of_library;
    if (fastest == nullptr || undisturbed_ns(trial.samples_ns) < undisturbed_ns(fastest->samples_ns)) fastest = &trial;
  }
  Json out = {{"bytes", bytes},
              {"values_checked", samples * outcomes["correct"]},
              {"outcomes", outcomes},
              {"failed", failed},
              {"trials", trials}};
  if (of_library != nullptr)
    out["library"] = {{"plan", of_library->plan},
                      {"ns", median_of(of_library->samples_ns)},
                      {"samples_ns", of_library->samples_ns},
                      {"max_error", of_library->max_error}};
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

// Returns a line of the check's printed output: the outcome of a workload and its best candidate.
std::string describe(const Json& row) {
  std::string out = row["name"].get<std::string>();
  if (!row["failed"].empty()) append(&out, ", ", row["failed"].size(), " failed: ", row["failed"][0].dump());
  if (!row.contains("best")) return out;
  const double ns = row["best"]["ns"];
  append(&out, ": ", absl::StrFormat("%.1f us, %.0f GB/s", ns / 1e3, row["best"]["gb_per_s"].get<double>()));
  if (const double operations = row["operations"]; operations > 0)
    append(&out, absl::StrFormat(", %.1f Tflop/s", operations / ns / 1e3));
  if (row.contains("library"))
    append(&out, absl::StrFormat(", %.2f of its library", row["library"]["ns"].get<double>() / ns));
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
                      {"compiler_versions", gpu->device.compiler_versions},
                      {"libraries", gpu->device.libraries}};
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
  // The copy kernel is measured before and after the workloads, and the better result counts.
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
  plan->add_option("--random", wishes.random, "FIRST:COUNT: the groups of so many random graphs too, by seed")
      ->delimiter(':');
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
