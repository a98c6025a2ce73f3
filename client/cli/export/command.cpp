// The command export.
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "client/cli/cli.h"
#include "client/cli/exit_code.h"
#include "client/cli/export/export.h"
#include "client/program/bundle.h"
#include "client/program/files.h"
#include "client/program/json.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAbout = "export.json";  // by which a folder is known as an export

// Only an export and an empty folder are replaced.
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

std::string first_wrong(const std::vector<OutputCheck>& checks) {
  for (const OutputCheck& check : checks)
    if (check.wrong > 0)
      return cat("step ", check.step, ", ", check.name, ": ", check.wrong, " of ", check.samples, " samples");
  return "";
}

}  // namespace

absl::StatusOr<int> export_command(Context& context) {
  const Options& options = context.options;
  WL_RETURN_IF_ERROR(may_become_export(options.out));
  WL_ASSIGN_OR_RETURN(const std::string folder, folder_of_size(options));
  WL_ASSIGN_OR_RETURN(const Program program, load_bundle(folder));
  ExportOptions made{options.export_name.empty() ? identifier_of(options.out) : options.export_name, {}};
  if (made.name != identifier_of(made.name))
    return invalid("--name ", made.name, " is no name for a library of C; ", identifier_of(made.name), " is");
  WL_ASSIGN_OR_RETURN(made.flags, context.local.flags_of(program.target));
  RunOptions run = options.run;
  run.check = true;
  run.check_by = CheckBy::kSteps;
  ExportedFiles files;
  WL_ASSIGN_OR_RETURN(const RunResult result, run_program(program, run, [&](const Executor& executor) -> absl::Status {
                        WL_ASSIGN_OR_RETURN(files, exported_files(executor, made));
                        return absl::OkStatus();
                      }));
  if (!result.correct())
    return absl::DataLossError(
        cat("nothing was exported: the bundle computes wrong values here: ", first_wrong(result.checks)));
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
