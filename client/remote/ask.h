// Asks a coordinator for what a program wants to run, and keeps the answer as a bundle.
#pragma once

#include <stop_token>
#include <string>

#include "client/fetch/request.h"
#include "compiler/base/status.h"

namespace wl {

// As `get --out` or, with trials, `tune --out`, without a display. InvalidArgument: the request or the graph cannot be.
// NotFound: the store lacks a kernel and the request has no trials. Cancelled: a stop was requested; a search goes on.
// Other errors are those of Service.
absl::Status ask_coordinator(const CoordinatorAddress& address, const BundleRequest& request, const std::string& folder,
                             std::stop_token stop);

}  // namespace wl
