// Counts every call of a gRPC server in Metrics.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "server/metrics/metrics.h"

namespace wl {

// Returns a factory for ServerBuilder::experimental().SetInterceptorCreators(). `metrics` must outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> count_calls(Metrics* metrics);

}  // namespace wl
