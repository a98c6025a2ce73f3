// A report as one page of HTML that needs nothing else: no script, no file beside it. It is made of the report
// (docs/report.md), and of what was seen while a search ran.
#pragma once

#include <string>
#include <vector>

#include "client/cli/cli.h"
#include "client/cli/progress.h"
#include "client/program/json.h"

namespace wl {

struct Page {
  std::string title;
  Json report;                     // of one size
  std::vector<Curve> curves = {};  // none: nobody watched the search
  Limits limits = {};
  std::string picture = {},
              why = {};  // of the graph with its groups, SVG, and why they are what they are; may be empty
};

// What the report says that a worker has measured of its device; not `measured` if it says nothing of use.
Limits measured_limits(const Json& report);

// Everything in a report that others have named is text here, never markup; only `picture`, which the compiler draws,
// is taken as it is.
std::string page_html(const Page& page);

}  // namespace wl
