// Inspect: what the compiler makes of a graph, as a stream of parts.
#pragma once

#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {

// Makes the whole answer once, on the pool for slow calls, and then sends it as fast as the client reads. What waits to
// be sent counts among the transfers. `context` and `request` live as long as the call.
grpc::ServerWriteReactor<v1::InspectResponse>* inspect(const Serving& serving, grpc::CallbackServerContext* context,
                                                       const v1::InspectRequest& request);

}  // namespace wl
