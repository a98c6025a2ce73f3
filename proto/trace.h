// Trace ids, by which one finds the log lines of client, coordinator, worker and runner that concern one job. They are
// those of W3C Trace Context (w3.org/TR/trace-context): 32 hexadecimal digits in lower case, not all 0. Ids from other
// processes are checked as TextKind::kTrace.
#pragma once

#include <string>

#include "compiler/base/status.h"

namespace wl {

std::string new_trace();  // returns a random trace id
// Parses a trace id, or a `traceparent` of the W3C, VERSION-TRACE-PARENT-FLAGS. Returns the trace id. The
// InvalidArgument error quotes the text.
absl::StatusOr<std::string> parse_trace(const std::string& text);

}  // namespace wl
