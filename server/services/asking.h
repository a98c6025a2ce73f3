// Asking the upstream on behalf of a call, for what is not here.
#pragma once

#include <vector>

#include "server/services/services.h"
#include "server/upstream/upstream.h"

namespace wl {

// Calls `done` once, on any thread, perhaps before it returns: at the latest after a second, or sooner where the caller
// does not wait so long. Without an upstream there is neither anything found nor a problem. A problem names the
// upstream.
void ask_upstream(const Serving& serving, const grpc::CallbackServerContext& context,
                  const std::vector<Question>& questions, Upstream::Done done);

// The upstream as the engine sees it; null: there is none.
Elsewhere elsewhere_of(Upstream* upstream);

}  // namespace wl
