// The call WatchJob, which streams a job's states, and the look-up of a job by its name for all calls of TuningService.
#pragma once

#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {

// Returns the id of the job with this name if the reader may see it. A reader sees the jobs of its own team, or those
// of no team if it has none; operators see all jobs. NotFound: the reader sees no such job. Reads the store.
absl::StatusOr<int64_t> job_for(const Serving& serving, const Reader& reader, const std::string& name);

// Sends every change of the job until it is done. A client that reads slowly misses states, but never the last one.
grpc::ServerWriteReactor<v1::Job>* watch_job(const Serving& serving, const grpc::CallbackServerContext& context,
                                             const v1::WatchJobRequest& request);

}  // namespace wl
