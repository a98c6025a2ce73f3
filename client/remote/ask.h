// Asks a coordinator for the kernels of a program's request, and writes the answer as a bundle.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "client/fetch/request.h"
#include "compiler/base/job.h"
#include "compiler/base/status.h"

namespace wl {

// Does what `warploom get --out` does or, with trials, `warploom tune --out`, without a display. InvalidArgument: the
// request or the graph is wrong. NotFound: the store lacks a kernel and the request has no trials. PermissionDenied: a
// kernel is not trusted. Cancelled: a stop was requested (a search goes on at the coordinator, unless the request says
// kNow or kLater). Other errors are those of Service.
absl::Status ask_coordinator(const CoordinatorAddress& address, const BundleRequest& request, const std::string& folder,
                             std::stop_token stop);

// Tells the coordinator what a program ran, within `patience`. Errors are those of Service.
absl::Status tell_coordinator(const CoordinatorAddress& address, const std::vector<KernelUse>& uses,
                              std::chrono::milliseconds patience, std::stop_token stop);

}  // namespace wl
