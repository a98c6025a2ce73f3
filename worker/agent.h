// The worker's side of the protocol (proto/warploom/v1/worker.proto): registers, pulls leases, measures, uploads what
// was compiled, reports until the coordinator has it, and goes on when the coordinator goes away and comes back. It
// knows nothing of plans or graphs; what a candidate costs and whether it is right is measure()'s business
// (worker/measure.h).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/base/status.h"
#include "worker/measure.h"

namespace grpc {
class Channel;
}

namespace wl {

struct AgentOptions {
  std::string name;              // of the worker; empty = HOST-PID
  std::vector<Device> devices;   // GPUs too; measure.gpus then has their names
  double exit_when_idle_s = -1;  // return after so long without work; negative = never
  double wait_s = 20;            // of one long poll
  MeasureOptions measure;        // runner, work folder; the agent sets cancel and progress
  // Tests: replaces measure().
  std::function<absl::StatusOr<Measured>(const Batch&, const MeasureOptions&)> measure_with;
};

// Works until `stop` is requested (then finishes or releases its lease, at most about 5 s), the idle time is over (OK),
// another process takes the name (FailedPrecondition), or the last device is quarantined (Unavailable; while others are
// in order, it goes on with those). Blocks; connection failures are retried for ever with
// backoff.
absl::Status run_agent(std::shared_ptr<grpc::Channel> channel, const AgentOptions& options, std::stop_token stop);

}  // namespace wl
