#include "client/cli/page/command.h"

#include <cstdio>

#include "client/cli/compose.h"
#include "client/cli/exit_code.h"
#include "client/cli/page/page.h"
#include "client/program/bucket.h"
#include "client/program/bundle.h"
#include "client/program/files.h"

namespace wl {

absl::Status write_page(Context& context, const std::string& input, const ReportOptions& to, const SizedReport& report,
                        const JobResult& result) {
  if (to.html.empty()) return absl::OkStatus();
  const std::string size = bind_text(report.bind);
  Page page{.title = size.empty() ? input : cat(input, ", ", size),
            .report = Json::parse(report.report, nullptr, /*allow_exceptions=*/false),
            .curves = context.curves.all()};
  if (!page.report.is_object()) return absl::DataLossError(cat("the report of ", input, " is no report"));
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
  WL_RETURN_IF_ERROR(write_file(to.html, page_html(page)));
  std::fprintf(to.json == "-" ? stderr : stdout, "page: %s\n", to.html.c_str());
  return absl::OkStatus();
}

absl::StatusOr<int> report_command(Context& context, const PageOptions& options) {
  WL_ASSIGN_OR_RETURN(const std::string folder, folder_of_size("report", options.bundle, options.bind));
  WL_ASSIGN_OR_RETURN(const Program program, load_bundle(folder));
  WL_ASSIGN_OR_RETURN(const std::string text, read_file(cat(folder, "/report.json")));
  WL_RETURN_IF_ERROR(
      write_page(context, options.bundle, {.html = options.html}, {program.bind, text}, result_of(program, text)));
  return kExitDone;
}

}  // namespace wl
