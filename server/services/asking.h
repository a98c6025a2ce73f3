// Asks the upstream coordinator for things that this coordinator does not have, on behalf of a call.
#pragma once

#include <vector>

#include "server/services/services.h"
#include "server/upstream/upstream.h"

namespace wl {

// Asks the upstream and calls `done` once, on any thread, perhaps before it returns: at the latest after 1 s, or after
// 70 % of the time until the call's deadline if that is less. Without an upstream, `done` is told that nothing was
// found and that there is no problem. A problem names the upstream.
void ask_upstream(const Serving& serving, const grpc::CallbackServerContext& context,
                  const std::vector<Question>& questions, Upstream::Done done);

// Returns the functions by which the engine asks `upstream` for records and devices; empty ones if `upstream` is null.
Elsewhere elsewhere_of(Upstream* upstream);

}  // namespace wl
