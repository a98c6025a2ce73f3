// Trace ids, by which the log lines of client, coordinator, worker and runner that concern one job are found: those of
// W3C Trace Context (w3.org/TR/trace-context), 32 hexadecimal digits in lower case that are not all 0. What arrives
// from elsewhere is checked as TextKind::kTrace.
#pragma once

#include <string>

#include "compiler/base/status.h"

namespace wl {

std::string new_trace();  // a random one
// Of a trace id, or of a `traceparent` as the W3C writes it: VERSION-TRACE-PARENT-FLAGS. InvalidArgument quotes the
// text.
absl::StatusOr<std::string> parse_trace(const std::string& text);

}  // namespace wl
