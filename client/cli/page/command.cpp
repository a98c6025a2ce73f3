// The command report, and the option --html of others.
#include <cstdio>

#include "client/cli/cli.h"
#include "client/cli/exit_code.h"
#include "client/cli/page/page.h"
#include "client/program/bucket.h"
#include "client/program/bundle.h"
#include "client/program/files.h"

namespace wl {
namespace {

int64_t whole_number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

// The device of a bundle's report, as far as limits depend on it.
Device device_of(const Json& report) {
  Device device;
  if (!report.contains("target") || !report.contains("environment") || !report["environment"].contains("host"))
    return device;
  const Json& host = report["environment"]["host"];
  device.target = report["target"].value("name", "");
  device.name = report["target"].value("device", "");
  device.threads = static_cast<int>(whole_number(host, "threads"));
  device.l1_bytes = whole_number(host, "l1_bytes");
  device.l2_bytes = whole_number(host, "l2_bytes");
  device.l3_bytes = whole_number(host, "l3_bytes");
  return device;
}

}  // namespace

absl::Status write_page(Context& context, const SizedReport& report, const Device& device, const std::string& graph) {
  const Options& options = context.options;
  if (options.html.empty()) return absl::OkStatus();
  const std::string size = bind_text(report.bind);
  Page page{.title = size.empty() ? options.input : cat(options.input, ", ", size),
            .report = Json::parse(report.report, nullptr, /*allow_exceptions=*/false),
            .curves = context.curves.all()};
  if (!page.report.is_object()) return absl::DataLossError(cat("the report of ", options.input, " is no report"));
  // A target of a later version has no rates here; its page has no limits.
  if (const auto limits = context.local.limits_of(device); limits.ok()) page.limits = *limits;
  if (!graph.empty()) {
    TuneOptions tune = options.tune;
    tune.target = device.target;
    // The picture is what this machine's compilers would be given, as `inspect` shows it.
    if (context.embedded) {
      if (const auto here = context.local.device_for(device.target, /*must_run=*/false); here.ok()) tune.device = *here;
    }
    auto inspection = context.service.inspect(graph, tune, "plan", /*simplify_only=*/false, /*why=*/true);
    if (inspection.ok()) {
      page.picture = std::move(inspection->picture);
      page.why = std::move(inspection->why);
    } else {
      std::fprintf(stderr, "the page has no picture of the graph: %s\n",
                   std::string(inspection.status().message()).c_str());
    }
  }
  WL_RETURN_IF_ERROR(write_file(options.html, page_html(page)));
  std::fprintf(options.json == "-" ? stderr : stdout, "page: %s\n", options.html.c_str());
  return absl::OkStatus();
}

absl::StatusOr<int> report_command(Context& context) {
  WL_ASSIGN_OR_RETURN(const std::string folder, folder_of_size(context.options));
  WL_ASSIGN_OR_RETURN(const Program program, load_bundle(folder));
  WL_ASSIGN_OR_RETURN(const std::string text, read_file(cat(folder, "/report.json")));
  const Device device = device_of(Json::parse(text, nullptr, /*allow_exceptions=*/false));
  WL_RETURN_IF_ERROR(write_page(context, {program.bind, text}, device, program.graph_text));
  return kExitDone;
}

}  // namespace wl
