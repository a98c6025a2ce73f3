// WatchJob: a stream of a job's states, and which job the calls of TuningService are about.
#pragma once

#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {

// The job of this name, if the reader may see it: jobs of no team are seen by callers of none. NotFound: there is none
// for it. Asks the store.
absl::StatusOr<int64_t> job_for(const Serving& serving, const Reader& reader, const std::string& name);

// Sends every change of the job until it is done. A client that reads slowly misses states, but never the last one.
grpc::ServerWriteReactor<v1::Job>* watch_job(const Serving& serving, const grpc::CallbackServerContext& context,
                                             const v1::WatchJobRequest& request);

}  // namespace wl
