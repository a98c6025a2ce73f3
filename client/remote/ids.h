// Ids that the client creates for its requests.
#pragma once

#include <string>

namespace wl {

// Returns a random UUIDv4, for request ids.
std::string new_request_id();

// Returns the trace id of a new job (proto/trace.h): `given` if it is not empty, else that of the environment variable
// TRACEPARENT, by which tools pass on a W3C trace context, else a new one.
std::string trace_of_job(const std::string& given);

}  // namespace wl
