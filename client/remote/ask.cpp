#include "client/remote/ask.h"

#include <chrono>
#include <utility>
#include <vector>

#include "client/program/bundle.h"
#include "client/remote/graph_file.h"
#include "client/remote/ids.h"
#include "client/remote/report.h"
#include "client/remote/service.h"
#include "client/remote/trust.h"
#include "compiler/ir/text.h"
#include "proto/trust/signing.h"

namespace wl {
namespace {

using Clock = std::chrono::system_clock;

// kEachArrives: the time that each kernel adds to the time limit for fetching stored kernels. kCallPatience: the time
// limit of one call. kEnds: how long a client that is freed tries to end its jobs.
constexpr std::chrono::seconds kEachArrives{1}, kCallPatience{120};
constexpr std::chrono::milliseconds kEnds{2000};

absl::StatusOr<Service> service_at(const CoordinatorAddress& address, std::stop_token stop) {
  DialOptions dial;
  dial.tls = {.cert = address.cert, .key = address.key, .ca = address.ca};
  dial.token_file = address.token_file;
  dial.token = address.token;
  std::vector<Signer> signers;
  if (!address.signers.empty()) {
    WL_ASSIGN_OR_RETURN(signers, read_signers(address.signers));
  }
  WL_ASSIGN_OR_RETURN(const Service service, Service::at(address.server, dial, std::move(signers)));
  return service.limited(kCallPatience, std::move(stop), Clock::now() + address.patience);
}

// Ends a job that nobody waits for any more. The searches that other jobs need go on.
void end_job_of(const Service& service, const std::string& name) {
  Service teller = service.limited(kCallPatience, {}, Clock::now() + kEnds);
  teller.cancel_job(name).IgnoreError();
}

// Returns a finished job for the graph. There is no time limit for a search; for kernels of the store, the limit is
// address.patience. A stop ends a job whose bundle only this client would take (Tune::kNow, kLater).
absl::StatusOr<Job> job_for(Service& service, const CoordinatorAddress& address, const BundleRequest& request,
                            const GraphFile& file, const std::stop_token& stop) {
  TuneOptions options;
  options.target = request.target;
  options.trials = request.trials;
  options.require_cached = request.trials == 0;
  options.background = request.tune == Tune::kLater;
  if (request.tune == Tune::kNow) {
    options.effort = "now";
    options.trials = 0;
  }
  const std::string id = new_request_id();
  const auto create = [&](Service& at) { return at.create_job(id, file.text, options, file.label, trace_of_job("")); };
  absl::StatusOr<Job> made = create(service);
  const bool ends = request.tune != Tune::kWait;
  if (!made.ok() && stop.stop_requested() && ends) {
    // The coordinator may have made the job just before the call was cancelled. The same id gives the same job.
    Service again = service.limited(kCallPatience, {}, Clock::now() + kEnds / 4);
    if (const absl::StatusOr<Job> same = create(again); same.ok()) end_job_of(service, same->name);
  }
  WL_RETURN_IF_ERROR(made.status());
  Job job = *std::move(made);
  if (!is_done(job.state)) {
    const auto until = options.require_cached ? std::optional(Clock::now() + address.patience) : std::nullopt;
    absl::StatusOr<Job> done = service.watch_job(
        job.name, [](const Job&) {}, [](bool) {}, {.until = until, .stop = stop});
    if (stop.stop_requested() && ends) end_job_of(service, job.name);
    WL_RETURN_IF_ERROR(done.status());
    job = *std::move(done);
  }
  if (!job.result) return why_no_result(job);
  return job;
}

// Converts a record to the result of a job whose graph is the record's group.
JobResult result_of(const KernelRecord& record, const GraphFile& file) {
  JobResult result;
  result.device = record.device;
  result.environment = record.environment;
  result.graph_hash = graph_hash(file.graph);
  GroupResult& group = result.groups.emplace_back(group_of(record));
  group.count = 1;
  group.source = "cached";
  group.default_ns = result.default_ns = median_of(record.default_samples_ns);
  result.best_ns = group.best_ns;
  result.bytes = group.bytes;
  result.kernels = result.kernels_default = group.kernels_default = 1;
  Step& step = result.steps.emplace_back();
  // The buffers of a record are the inputs of its graph, in the graph's order, then the outputs.
  const std::vector<NodeId> inputs = file.graph.inputs();
  for (size_t i = 0; i < record.problem.buffers.size(); ++i) {
    const BufferSpec& buffer = record.problem.buffers[i];
    const int number = static_cast<int>(i);
    const bool known = buffer.output ? result.outputs.size() < file.graph.outputs.size() : i < inputs.size();
    if (!known) break;  // the buffers do not fit the graph; fetch_program() or lay_out() will return an error for that
    const std::string& name =
        buffer.output ? file.graph.outputs[result.outputs.size()].name : file.graph.nodes[inputs[i]].text;
    result.buffers.push_back(
        {name, buffer.dtype, buffer.shape, buffer.output ? ResultBuffer::Kind::kOutput : ResultBuffer::Kind::kInput});
    (buffer.output ? result.outputs : result.inputs).push_back({name, number});
    step.arguments.push_back(number);
  }
  return result;
}

}  // namespace

absl::Status tell_coordinator(const CoordinatorAddress& address, const std::vector<KernelUse>& uses,
                              std::chrono::milliseconds patience, std::stop_token stop) {
  const Clock::time_point until = Clock::now() + patience;
  CoordinatorAddress plain = address;
  plain.signers.clear();  // no record is fetched
  WL_ASSIGN_OR_RETURN(const Service service, service_at(plain, stop));
  return service.limited(kCallPatience, std::move(stop), until).count_uses(uses);
}

absl::Status ask_coordinator(const CoordinatorAddress& address, const BundleRequest& request, const std::string& folder,
                             std::stop_token stop) {
  WL_ASSIGN_OR_RETURN(Service service, service_at(address, stop));
  GraphFile file;
  Job job;
  if (request.key.empty()) {
    WL_ASSIGN_OR_RETURN(
        file, read_graph(request.graph, request.bind, panels_for(request.target), request.weights, request.allow_tf32));
    WL_ASSIGN_OR_RETURN(job, job_for(service, address, request, file, stop));
  } else {
    WL_ASSIGN_OR_RETURN(const KernelRecord record, service.get_record(request.key));
    file.text = record.graph;
    file.label = record.key;
    WL_ASSIGN_OR_RETURN(file.graph, parse(record.graph));
    job.label = record.key;
    job.result = result_of(record, file);
  }
  const auto groups = static_cast<int64_t>(job.result->groups.size());
  service = service.limited(kCallPatience, std::move(stop), Clock::now() + address.patience + groups * kEachArrives);
  const auto object_of = [&](const KernelRecord& record) -> absl::StatusOr<std::string> {
    const std::string doubt = address.trust_workers ? std::string() : doubt_about(record, service.signers());
    if (doubt.empty()) return service.get_blob(record.object_sha256);
    return absl::PermissionDeniedError(
        cat(doubt, "; `warploom tune` builds it from its source, and trust_workers uses it all the same"));
  };
  WL_ASSIGN_OR_RETURN(const Program program, fetch_program(service, object_of, *job.result, file));
  return write_bundle(folder, program, report_json(job, file.bind, file.label, /*stable=*/true, address.trust_workers));
}

}  // namespace wl
