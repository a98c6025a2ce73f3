#include "client/remote/service.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <thread>

#include "client/remote/seen.h"
#include "client/remote/unary.h"
#include "compiler/base/names.h"
#include "proto/backoff.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "warploom/v1/admin.grpc.pb.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {
namespace {

using Clock = std::chrono::system_clock;
constexpr auto kFirstRetry = std::chrono::milliseconds(100), kLastRetry = std::chrono::milliseconds(2000);

// Checks the size of a graph's text. InvalidArgument: the text is too large for a message; gRPC's own error would not
// say what to do.
absl::Status fits_message(const std::string& graph) {
  if (graph.size() <= kMostGraph) return absl::OkStatus();
  return invalid("graph: expected at most ", kMostGraph, " bytes as text, found ", graph.size(),
                 "; cut it into smaller graphs");
}

// Appends one message of the stream with which Inspect answers to `out`.
absl::Status add_part(v1::InspectResponse part, Inspection& out) {
  WL_RETURN_IF_ERROR(check_fields(part));
  out.graph += part.graph();
  out.why += part.why();
  out.picture += part.picture();
  for (v1::InspectResponse::Group& group : *part.mutable_groups()) {
    InspectedGroup& added = out.groups.emplace_back(InspectedGroup{
        group.key(), group.graph(), group.plan(), group.space(), group.kernel(), group.count(), group.tuned(), {}});
    if (!group.has_source()) continue;
    group.mutable_source()->set_prelude(part.prelude());
    WL_ASSIGN_OR_RETURN(added.source, from_proto(group.source()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Inspection> read_inspection(const std::shared_ptr<grpc::Channel>& channel, const Peer& peer,
                                           const v1::InspectRequest& request) {
  auto stub = v1::TuningService::NewStub(channel);
  grpc::ClientContext context;
  const std::stop_callback ends(peer.stop, [&context] { context.TryCancel(); });
  context.set_deadline(peer.end_of_call(peer.patience));
  auto stream = stub->Inspect(&context, request);
  Inspection inspection;
  v1::InspectResponse part;
  int64_t bytes = 0;
  absl::Status wrong;
  while (wrong.ok() && stream->Read(&part)) {
    bytes += static_cast<int64_t>(part.ByteSizeLong());
    wrong = bytes > kMostInspection ? invalid("it has more than ", kMostInspection, " bytes")
                                    : add_part(std::move(part), inspection);
  }
  if (!wrong.ok()) context.TryCancel();
  const absl::Status status = status_of(stream->Finish(), peer);
  if (!wrong.ok()) return answer_error(wrong, peer.where);
  WL_RETURN_IF_ERROR(status);
  return inspection;
}

}  // namespace

absl::Status status_of(const grpc::Status& status, const Peer& peer) {
  const std::string& where = peer.where;
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    const absl::Status known = explained(from_grpc(status), where, peer.dialled);
    if (!absl::IsUnavailable(known)) return known;
    return absl::UnavailableError(cat("no coordinator answers at ", where, " (", status.error_message(),
                                      "); start one with `warploomd --listen ", where,
                                      "`, or leave out --server to tune in this process"));
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    return absl::DeadlineExceededError(cat("the coordinator at ", where, " did not answer in time; is it overloaded?"));
  return from_grpc(status);
}

Service::Service(std::shared_ptr<grpc::Channel> channel, Peer peer)
    : channel_(std::move(channel)), peer_(std::move(peer)) {}

absl::StatusOr<Service> Service::at(const std::string& address, const DialOptions& options,
                                    std::vector<Signer> signers) {
  WL_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, dial(address, options));
  Peer peer{.where = address, .dialled = options, .signers = std::move(signers)};
  if (!peer.signers.empty())
    peer.seen = SeenGenerations::of_user(cat(options.token, options.token_file, options.tls.cert));
  return Service(std::move(channel), std::move(peer));
}

void Service::await_connection(std::chrono::milliseconds patience) const {
  constexpr auto kSlice = std::chrono::milliseconds(100);  // interval between checks for a stop request of the caller
  const auto end = Clock::now() + patience;
  while (Clock::now() < end && !peer_.stop.stop_requested() &&
         !channel_->WaitForConnected(std::min(end, Clock::now() + kSlice))) {
  }
}

absl::StatusOr<Job> Service::create_job(const std::string& request_id, const std::string& graph,
                                        const TuneOptions& options, const std::string& label,
                                        const std::string& trace) {
  WL_RETURN_IF_ERROR(fits_message(graph));
  v1::CreateTuningJobRequest request;
  request.set_request_id(request_id);
  request.set_graph(graph);
  *request.mutable_options() = to_proto(options);
  request.set_label(fitted(label, TextKind::kName, kMostName));
  request.set_trace(trace);
  auto stub = v1::TuningService::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(v1::Job job, call(*stub, peer_, &v1::TuningService::Stub::CreateTuningJob, request));
  return from_proto(job);
}

absl::StatusOr<Job> Service::watch_job(const std::string& name, const std::function<void(const Job&)>& on_change,
                                       const std::function<void(bool lost)>& on_lost, const WatchLimits& limits) {
  auto stub = v1::TuningService::NewStub(channel_);
  Backoff backoff(kFirstRetry, kLastRetry);
  uint64_t version = 0;
  bool lost = false;
  Clock::time_point give_up;  // time at which to stop trying to reach the coordinator; valid while `lost` is true
  for (;;) {
    grpc::ClientContext context;
    if (limits.until) context.set_deadline(*limits.until);
    const std::stop_callback ends(limits.stop, [&context] { context.TryCancel(); });
    v1::WatchJobRequest request;
    request.set_name(name);
    request.set_resume_version(version);
    auto stream = stub->WatchJob(&context, request);
    v1::Job message;
    std::optional<Job> last;
    absl::Status wrong;
    while (wrong.ok() && stream->Read(&message)) {
      auto job = from_proto(message);
      wrong = job.status();
      if (!wrong.ok()) break;
      if (std::exchange(lost, false)) on_lost(false);
      // The growing delay is reset only after progress, not if the coordinator repeats the same state.
      if (job->version != version) backoff.reset();
      version = job->version;
      on_change(*job);
      last = *std::move(job);
    }
    if (!wrong.ok()) context.TryCancel();
    const absl::Status status = status_of(stream->Finish(), peer_);
    if (!wrong.ok()) return answer_error(wrong, peer_.where);
    if (last && is_done(last->state)) return *std::move(last);
    if (limits.stop.stop_requested()) return absl::CancelledError(cat("job ", name, " is no longer awaited"));
    // The stream's only deadline is limits.until, so DeadlineExceeded means that this time has come.
    if (absl::IsDeadlineExceeded(status) && !lost)
      return absl::DeadlineExceededError(cat("job ", name, " at ", peer_.where, " is not done in time"));
    if (!status.ok() && !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
    // The stream ended early, because the coordinator stopped or restarted. The coordinator's store still has the job.
    const auto now = Clock::now();
    if (!std::exchange(lost, true)) {
      give_up = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.patience_s));
      if (limits.until) give_up = std::min(give_up, *limits.until);
      on_lost(true);
    }
    std::this_thread::sleep_until(std::min(now + backoff.next(), give_up));
    if (Clock::now() >= give_up) return unreachable(name);
  }
}

absl::Status Service::unreachable(const std::string& name) const {
  return absl::UnavailableError(cat("the coordinator at ", peer_.where,
                                    " is unreachable; what was measured is in its store: ",
                                    "start it again, then `warploom watch ", name, " --server ", peer_.where, "`"));
}

absl::StatusOr<Job> Service::get_job(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  auto stub = v1::TuningService::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(v1::Job job, call(*stub, peer_, &v1::TuningService::Stub::GetJob, request));
  return from_proto(job);
}

absl::StatusOr<Job> Service::cancel_job(const std::string& name, std::chrono::seconds patience) {
  v1::CancelJobRequest request;
  request.set_name(name);
  auto stub = v1::TuningService::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(v1::Job job, call(*stub, peer_, &v1::TuningService::Stub::CancelJob, request, patience));
  return from_proto(job);
}

absl::StatusOr<std::vector<Job>> Service::list_jobs(int most, bool unfinished) {
  auto stub = v1::TuningService::NewStub(channel_);
  std::vector<Job> jobs;
  v1::ListJobsRequest request;
  request.set_unfinished(unfinished);
  do {
    request.set_page_size(std::min(1000, most - static_cast<int>(jobs.size())));
    WL_ASSIGN_OR_RETURN(v1::ListJobsResponse page, call(*stub, peer_, &v1::TuningService::Stub::ListJobs, request));
    for (const v1::Job& message : page.jobs()) {
      WL_ASSIGN_OR_RETURN(jobs.emplace_back(), from_proto(message));
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && static_cast<int>(jobs.size()) < most);
  return jobs;
}

absl::StatusOr<Inspection> Service::inspect(const std::string& graph, const TuneOptions& options,
                                            const std::string& stage, bool simplify_only, bool why) {
  WL_RETURN_IF_ERROR(fits_message(graph));
  v1::InspectRequest request;
  request.set_graph(graph);
  *request.mutable_options() = to_proto(options);
  request.set_stage(stage);
  request.set_simplify_only(simplify_only);
  request.set_why(why);
  return read_inspection(channel_, peer_, request);
}

absl::StatusOr<Inspection> Service::inspect(const JobResult& result, const std::string& stage, bool why) {
  v1::InspectRequest request;
  *request.mutable_result() = to_proto(result);
  request.set_stage(stage);
  request.set_why(why);
  if (request.ByteSizeLong() > static_cast<size_t>(kMaxMessageBytes))
    return invalid("the graphs and plans of its kernels take more than the ", kMaxMessageBytes,
                   " bytes that a coordinator reads; cut the graph into smaller graphs");
  WL_ASSIGN_OR_RETURN(Inspection inspection, read_inspection(channel_, peer_, request));
  const bool same = std::equal(inspection.groups.begin(), inspection.groups.end(), result.groups.begin(),
                               result.groups.end(), [](const auto& a, const auto& b) { return a.key == b.key; });
  if (!same) return answer_error(invalid("it is of other kernels than were asked about"), peer_.where);
  return inspection;
}

absl::StatusOr<std::vector<WorkerSummary>> Service::list_workers() {
  auto stub = v1::Admin::NewStub(channel_);
  std::vector<WorkerSummary> rows;
  v1::ListWorkersRequest request;
  do {
    WL_ASSIGN_OR_RETURN(v1::ListWorkersResponse page, call(*stub, peer_, &v1::Admin::Stub::ListWorkers, request));
    for (const v1::WorkerInfo& message : page.workers()) {
      WorkerSummary row{message.name(),   message.epoch(), {}, message.alive(), message.last_seen_unix_ms(),
                        message.leases(), message.team()};
      for (const v1::WorkerInfo::Doing& one : message.doing())
        row.doing.push_back({one.target(), one.step(), one.phase(), one.candidates(), one.seconds()});
      for (const v1::Device& device : message.devices()) {
        WL_ASSIGN_OR_RETURN(Device converted, from_proto(device));
        row.devices.push_back(std::move(converted));
      }
      rows.push_back(std::move(row));
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return rows;
}

absl::StatusOr<ServerSummary> Service::server() {
  auto stub = v1::Admin::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(v1::ServerInfo info,
                      call(*stub, peer_, &v1::Admin::Stub::GetServerInfo, v1::GetServerInfoRequest()));
  return ServerSummary{info.version(),        info.api_version(), info.schema_version(),   info.store(),
                       info.sqlite_version(), info.draining(),    info.signing_key(),      info.heap_bytes(),
                       info.resident_bytes(), info.upstream(),    info.upstream_problem(), info.groups_found(),
                       info.groups_missed(),  info.saved_s()};
}

absl::StatusOr<Service::Revoked> Service::revoke(const std::string& producer) {
  v1::RevokeProducerRequest request;
  request.set_producer(producer);
  auto stub = v1::Admin::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(v1::RevokeProducerResponse answer,
                      call(*stub, peer_, &v1::Admin::Stub::RevokeProducer, request, std::chrono::hours(1)));
  return Revoked{answer.records(), answer.trials()};
}

absl::Status Service::set_drained(bool drained) {
  auto stub = v1::Admin::NewStub(channel_);
  return drained ? call(*stub, peer_, &v1::Admin::Stub::Drain, v1::DrainRequest()).status()
                 : call(*stub, peer_, &v1::Admin::Stub::Undrain, v1::UndrainRequest()).status();
}

absl::StatusOr<Service::Backup> Service::make_backup() {
  auto stub = v1::Admin::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(v1::BackupResponse made,
                      call(*stub, peer_, &v1::Admin::Stub::Backup, v1::BackupRequest(), std::chrono::hours(1)));
  return Backup{made.file(), made.bytes()};
}

}  // namespace wl
