// WatchJob: a stream of a job's states, and what the calls of TuningService say of a job that does not exist.
#pragma once

#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {

grpc::Status no_such_job(const std::string& name);

// Sends every change of the job until it is done. A client that reads slowly misses states, but never the last one.
grpc::ServerWriteReactor<v1::Job>* watch_job(const Serving& serving, const grpc::CallbackServerContext& context,
                                             const v1::WatchJobRequest& request);

}  // namespace wl
