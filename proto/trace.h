// Trace ids. By a trace id one finds the log lines of client, coordinator, worker and runner that concern one job. It
// has the form of W3C Trace Context (w3.org/TR/trace-context): 32 hexadecimal digits in lower case, not all 0. Ids from
// other processes are checked as TextKind::kTrace.
#pragma once

#include <string>

#include "compiler/base/status.h"

namespace wl {

std::string new_trace();  // returns a random trace id
// Parses a trace id, or a W3C `traceparent` (VERSION-TRACE-PARENT-FLAGS), and returns the trace id. InvalidArgument,
// quoting the text: it has neither form.
absl::StatusOr<std::string> parse_trace(const std::string& text);

}  // namespace wl
