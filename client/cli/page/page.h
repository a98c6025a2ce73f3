// Formats a report (docs/report.md) as one HTML page without scripts and further files, with the curves of a search
// that was followed.
#pragma once

#include <string>
#include <vector>

#include "client/cli/cli.h"
#include "client/cli/progress.h"
#include "client/program/json.h"

namespace wl {

struct Page {
  std::string title;
  Json report;                     // the report that the page shows, of one size of the graph
  std::vector<Curve> curves = {};  // the groups' best times during the search; empty: the search was not followed
  Limits limits = {};
  // A picture of the graph with its groups, as SVG, and the explanation of the groups; may be empty.
  std::string picture = {}, why = {};
};

// Returns the peak rates that a worker measured, from a report; `measured` is false if the report has none.
Limits measured_limits(const Json& report);

// Formats the page. All texts of the report are escaped, since others chose the names in it; `picture`, which the
// compiler draws, is not.
std::string page_html(const Page& page);

}  // namespace wl
