#pragma once

#include <string>

namespace wl {

// Returns a random UUIDv4, for request ids.
std::string new_request_id();

}  // namespace wl
