// The worker's side of the protocol (proto/warploom/v1/worker.proto): registers, acquires leases, measures, uploads
// compiled objects, reports until the coordinator has the results, and continues when the coordinator disappears and
// comes back. It knows nothing of plans or graphs. Whether a candidate is right and how fast it is, measure() decides
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
  std::string name;              // name of the worker; empty: HOST-PID
  std::vector<Device> devices;   // including GPUs, whose names are then in measure.gpus
  std::string machine;           // on which it runs; empty: own_machine() (worker/calls.h)
  double exit_when_idle_s = -1;  // return after this long without work; negative = never
  double wait_s = 20;            // duration of one long poll
  bool end_together = false;     // a device that cannot measure ends the work with the others, too
  bool rates = false;            // measure how fast the devices are with the first batch, which takes a second
  MeasureOptions measure;        // runner and work folder; the agent sets cancel and progress
  // A more exact error of a call that did not reach the coordinator, where one is known; for the log.
  std::function<absl::Status(const absl::Status&)> explained;
  // Replaces measure() in tests.
  std::function<absl::StatusOr<Measured>(const Batch&, const MeasureOptions&)> measure_with;
};

// Works until `stop` is requested, the idle time is over (OK), another process takes the name (FailedPrecondition), or
// every device is quarantined (Unavailable). On `stop` it finishes or releases its lease within about 5 s. The idle
// time also passes while the coordinator cannot be reached. Blocks. Connection failures are retried for ever with
// backoff.
//
// Several devices work at once, each as a worker NAME/DEVICE of its own: "node7/cuda:1". Nothing else is measured while
// the CPU is. A device that cannot measure ends, and the log says so at once; the others go on unless
// options.end_together, and then that device's error is returned.
absl::Status run_agent(std::shared_ptr<grpc::Channel> channel, const AgentOptions& options, std::stop_token stop);

}  // namespace wl
