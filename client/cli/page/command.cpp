// The command report, and the option --html of other commands.
#include <cstdio>

#include "client/cli/cli.h"
#include "client/cli/compose.h"
#include "client/cli/exit_code.h"
#include "client/cli/page/page.h"
#include "client/program/bucket.h"
#include "client/program/bundle.h"
#include "client/program/files.h"

namespace wl {
absl::Status write_page(Context& context, const SizedReport& report, const JobResult& result) {
  const Options& options = context.options;
  if (options.html.empty()) return absl::OkStatus();
  const std::string size = bind_text(report.bind);
  Page page{.title = size.empty() ? options.input : cat(options.input, ", ", size),
            .report = Json::parse(report.report, nullptr, /*allow_exceptions=*/false),
            .curves = context.curves.all()};
  if (!page.report.is_object()) return absl::DataLossError(cat("the report of ", options.input, " is no report"));
  page.limits = measured_limits(page.report);
  // If this version does not know the target, the cost model has no rates for it, and the page shows no limits.
  if (!page.limits.measured)
    if (const auto limits = context.local.limits_of(result.device); limits.ok()) page.limits = *limits;
  auto inspection = context.service.inspect(result, "graph", /*why=*/true);
  if (inspection.ok()) {
    page.picture = std::move(inspection->picture);
    page.why = std::move(inspection->why);
  } else {
    std::fprintf(stderr, "the page has no picture of the graph: %s\n",
                 std::string(inspection.status().message()).c_str());
  }
  WL_RETURN_IF_ERROR(write_file(options.html, page_html(page)));
  std::fprintf(options.json == "-" ? stderr : stdout, "page: %s\n", options.html.c_str());
  return absl::OkStatus();
}

absl::StatusOr<int> report_command(Context& context) {
  WL_ASSIGN_OR_RETURN(const std::string folder, folder_of_size(context.options));
  WL_ASSIGN_OR_RETURN(const Program program, load_bundle(folder));
  WL_ASSIGN_OR_RETURN(const std::string text, read_file(cat(folder, "/report.json")));
  WL_RETURN_IF_ERROR(write_page(context, {program.bind, text}, result_of(program, text)));
  return kExitDone;
}

}  // namespace wl
