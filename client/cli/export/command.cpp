#include "client/cli/export/command.h"

#include <cstdio>
#include <filesystem>

#include "client/cli/exit_code.h"
#include "client/cli/export/export.h"
#include "client/program/bundle.h"
#include "client/program/files.h"
#include "client/program/json.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAbout = "export.json";  // a folder with this file is an export

// Checks that an export may be written to the folder. InvalidArgument: the folder exists, is not empty and is no export
// (which would be replaced).
absl::Status may_become_export(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return absl::OkStatus();
  if (fs::exists(fs::path(folder) / kAbout, error) || (fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    return absl::OkStatus();
  return invalid(folder, " exists and is not an export; --out names a new folder, or an export to replace");
}

absl::Status write_export(const std::string& folder, const ExportedFiles& files) {
  WL_ASSIGN_OR_RETURN(PendingFolder pending, PendingFolder::create(folder));
  for (const auto& [path, bytes] : files) {
    const std::string place = cat(pending.path(), "/", path);
    WL_RETURN_IF_ERROR(make_folders(fs::path(place).parent_path().string()));
    WL_RETURN_IF_ERROR(write_file(place, bytes));
  }
  return pending.commit();
}

// Number of operations (work_of()) up to which the oracle of the whole graph takes a minute or less.
constexpr double kMostWork = 2e10;

// Computes what the self-test expects with the oracle. No kernel of the bundle runs.
absl::StatusOr<std::vector<ExpectedOutput>> by_the_oracle(const Executor& executor, const Graph& graph, uint64_t seed) {
  if (const double work = work_of(graph); work > kMostWork)
    return invalid("the self-test of so large a graph would take long to make (", static_cast<int64_t>(work / 1e9),
                   " thousand million operations in double precision); --run lets the bundle's own kernels compute "
                   "what it expects, each of them checked: they are run here, so do it with a bundle that you trust");
  return expected_outputs(executor, graph, seed);
}

// Computes what the self-test expects with the kernels of the bundle, and compares each with the oracle of its group.
absl::StatusOr<std::vector<ExpectedOutput>> by_the_kernels(Executor& executor, const Graph& graph, uint64_t seed) {
  WL_RETURN_IF_ERROR(executor.poison_results());
  WL_ASSIGN_OR_RETURN(const std::vector<OutputCheck> checks, check_steps(executor, seed));
  for (const OutputCheck& check : checks)
    if (check.wrong > 0)
      return absl::DataLossError(cat("nothing was exported: the bundle computes wrong values here: step ", check.step,
                                     ", ", check.name, ": ", check.wrong, " of ", check.samples, " samples"));
  return found_outputs(executor, graph, seed);
}

}  // namespace

absl::StatusOr<int> export_command(Context& context, const ExportCommandOptions& options) {
  WL_RETURN_IF_ERROR(may_become_export(options.out));
  WL_ASSIGN_OR_RETURN(const std::string folder,
                      folder_of_size("export", options.bundle, options.bind, options.values.inputs));
  WL_ASSIGN_OR_RETURN(const Program program, load_bundle(folder));
  WL_RETURN_IF_ERROR(may_be_exported(program));
  ExportOptions made{options.name.empty() ? identifier_of(options.out) : options.name, {}};
  if (made.name != identifier_of(made.name))
    return invalid("--name ", made.name, " is no name for a library of C; ", identifier_of(made.name), " is");
  WL_ASSIGN_OR_RETURN(made.flags, context.local.flags_of(program.target));
  WL_ASSIGN_OR_RETURN(Executor executor,
                      options.run ? Executor::create(program, {}) : Executor::without_kernels(program));
  RunResult result;
  WL_RETURN_IF_ERROR(fill_inputs(executor, options.values, result));
  WL_ASSIGN_OR_RETURN(const Graph graph, graph_of(program));
  WL_ASSIGN_OR_RETURN(const std::vector<ExpectedOutput> expected,
                      options.run ? by_the_kernels(executor, graph, options.values.seed)
                                  : by_the_oracle(executor, graph, options.values.seed));
  WL_ASSIGN_OR_RETURN(ExportedFiles files, exported_files(executor, expected, made));
  const Json about = {{"name", made.name},
                      {"graph", program.graph_hash},
                      {"target", program.target},
                      {"warploom", WARPLOOM_VERSION},
                      {"given", result.given}};
  files.emplace_back(kAbout, text_of(about));
  WL_RETURN_IF_ERROR(write_export(options.out, files));
  std::printf("exported: %s (cmake -S %s -B build && cmake --build build && build/self_test)\n", options.out.c_str(),
              options.out.c_str());
  if (result.given.empty() && !program.weights.empty())
    std::printf("weights.bin has random values; --weights FILE gives the model's\n");
  return kExitDone;
}

}  // namespace wl
