// The call Inspect: shows what the compiler makes of a graph, as a stream of parts.
#pragma once

#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {

// Makes the whole answer once, on the pool for graphs of this size, and then sends it as fast as the client reads. Its
// bytes count against Serving::transfers until the call ends. `context` and `request` live as long as the call.
grpc::ServerWriteReactor<v1::InspectResponse>* inspect(const Serving& serving, grpc::CallbackServerContext* context,
                                                       const v1::InspectRequest& request);

}  // namespace wl
