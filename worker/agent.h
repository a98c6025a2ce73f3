// The worker's side of the protocol (proto/warploom/v1/worker.proto). An agent registers, acquires leases (batches that
// it holds for a limited time), measures them, uploads compiled objects, and reports results until the coordinator has
// stored them. It reconnects when the coordinator disappears and comes back. It knows nothing of plans or graphs:
// measure() (worker/measure.h) decides whether a candidate is right and how fast it is.
#pragma once

#include <chrono>
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
  std::vector<Device> devices;   // the CPUs and GPUs that the worker offers; measure.gpus describes the GPUs among them
  std::string machine;           // digest that identifies the worker's machine; empty: own_machine() (worker/calls.h)
  double exit_when_idle_s = -1;  // seconds without a lease after which run_agent() returns; negative: no limit
  double wait_s = 20;            // seconds that one call for work may wait at the coordinator
  double share = 0;  // largest part of the time in which each device works (drivers/duty_cycle.h); 0: all of it
  bool end_together = false;  // whether all devices stop when one of them cannot measure
  bool rates = false;         // whether to measure the peak rates of each device after its first batch
  MeasureOptions measure;     // how batches are measured: runner, folder, sandbox, GPUs; the agent sets the rest
  // If set, is called when a registration fails with Unavailable (the coordinator was not reached), and returns a more
  // exact error for the log.
  std::function<absl::Status(const absl::Status&)> explained;
  // If set, is called when a device's worker ends, with the pause that its share still asks for.
  std::function<void(std::chrono::duration<double>)> owes;
  // If set, is called instead of measure(); for tests.
  std::function<absl::StatusOr<Measured>(const Batch&, const MeasureOptions&)> measure_with;
};

// Works until `stop` is requested or the idle time is over (OK), another process takes the name (FailedPrecondition),
// the coordinator refuses the registration (InvalidArgument), or every device is quarantined (Unavailable). On `stop`
// it finishes or releases its lease within about 5 s. The idle time also passes while the coordinator cannot be
// reached; if it ends before the first registration, the error of that registration is returned. Blocks. Failed calls
// are retried for ever with backoff.
//
// Several devices work at the same time, each as a worker NAME/DEVICE of its own, for example "node7/cuda:1". While the
// CPU is measured, no other device is measured. A device that cannot measure any more ends, and the log says so at
// once. The other devices continue, unless options.end_together is set: then they end as well, and the first device's
// error is returned.
absl::Status run_agent(std::shared_ptr<grpc::Channel> channel, const AgentOptions& options, std::stop_token stop);

}  // namespace wl
