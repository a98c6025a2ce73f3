// The ids by which the coordinator recognises the requests of a batch that is run again.
#pragma once

#include <string>

#include "compiler/base/job.h"

namespace wl {

// Returns a UUID that is a hash of all that a job of a batch asks for. `batch`: the batch's id; `run`: the run's name;
// `graph`: the canonical text of the graph; `again`: how many earlier jobs of the same request ended without a result.
// The ids are those of older versions, so that a batch which one of them has begun continues with its jobs.
std::string batch_request_id(const std::string& batch, const std::string& run, const std::string& graph,
                             const TuneOptions& options, int again);

}  // namespace wl
