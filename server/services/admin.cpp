#include <algorithm>

#include "absl/strings/numbers.h"
#include "compiler/base/names.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/services/asking.h"
#include "server/services/memory.h"
#include "server/services/services.h"
#include "warploom/v1/admin.grpc.pb.h"

namespace wl {
namespace {

class AdminService final : public v1::Admin::CallbackService {
 public:
  explicit AdminService(const Serving& serving) : serving_(serving) {}
  WL_ANSWER_ON(serving_.quick, GetServerInfo, v1::GetServerInfoRequest, v1::ServerInfo);
  WL_ANSWER_READER_ON(serving_.quick, ListWorkers, v1::ListWorkersRequest, v1::ListWorkersResponse);
  grpc::ServerUnaryReactor* ListDevices(grpc::CallbackServerContext* context, const v1::ListDevicesRequest* request,
                                        v1::ListDevicesResponse* out) override;
  WL_ANSWER_ON(serving_.quick, Drain, v1::DrainRequest, v1::DrainResponse);
  WL_ANSWER_ON(serving_.quick, Undrain, v1::UndrainRequest, v1::UndrainResponse);
  WL_ANSWER_ON(serving_.slow, Backup, v1::BackupRequest, v1::BackupResponse);
  WL_ANSWER_ON(serving_.slow, RevokeProducer, v1::RevokeProducerRequest, v1::RevokeProducerResponse);
  WL_ANSWER_ON(serving_.slow, Reverify, v1::ReverifyRequest, v1::ReverifyResponse);
  WL_ANSWER_ON(serving_.quick, ListReverified, v1::ListReverifiedRequest, v1::ListReverifiedResponse);

 private:
  const Serving serving_;
  Engine* const engine_ = serving_.engine;
  Store* const store_ = serving_.store;
};

grpc::Status AdminService::GetServerInfo(const v1::GetServerInfoRequest*, v1::ServerInfo* out) {
  out->set_version(WARPLOOM_VERSION);
  out->set_api_version(kApiVersion);
  out->set_schema_version(Store::schema_version());
  out->set_store(store_->file());
  out->set_draining(engine_->draining());
  out->set_sqlite_version(Store::sqlite_version());
  if (serving_.signing != nullptr) out->set_signing_key(serving_.signing->public_key());
  const HeldMemory memory = held_memory();
  out->set_heap_bytes(memory.heap_bytes);
  out->set_resident_bytes(memory.resident_bytes);
  const LookedUp known = serving_.looked_up->sum();
  out->set_groups_found(known.hits);
  out->set_groups_missed(known.misses);
  out->set_saved_s(known.saved_s);
  if (serving_.upstream != nullptr) {
    out->set_upstream(serving_.upstream->address());
    out->set_upstream_problem(fitted(serving_.upstream->problem(), TextKind::kText, kMostMessage));
  }
  return grpc::Status::OK;
}

grpc::ServerUnaryReactor* AdminService::ListDevices(grpc::CallbackServerContext* context, const v1::ListDevicesRequest*,
                                                    v1::ListDevicesResponse* out) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  ask_upstream(serving_, *context, {{Question::kDevices, "", ""}}, [=, this](const Asked&) {
    const bool taken = serving_.quick->post([=, this] {
      reactor->Finish(to_grpc(within_memory([&]() -> absl::Status {
        WL_ASSIGN_OR_RETURN(const std::vector<Device> devices, store_->devices());
        for (const Device& device : devices)
          if (out->devices_size() < static_cast<int>(kMostItems)) *out->add_devices() = to_proto(device);
        return absl::OkStatus();
      })));
    });
    if (!taken) reactor->Finish(too_busy());
  });
  return reactor;
}

grpc::Status AdminService::ListWorkers(const Reader& reader, const v1::ListWorkersRequest* request,
                                       v1::ListWorkersResponse* out) {
  size_t bytes = 0;
  for (const WorkerView& worker : engine_->workers()) {
    if (worker.name <= request->page_token() || !sees_worker(reader, worker)) continue;
    if (bytes >= kMostPageBytes) {
      out->set_next_page_token(out->workers().rbegin()->name());
      break;
    }
    v1::WorkerInfo* info = out->add_workers();
    info->set_name(worker.name);
    info->set_epoch(worker.epoch);
    for (const Device& device : worker.devices) *info->add_devices() = to_proto(device);
    info->set_alive(worker.alive);
    info->set_last_seen_unix_ms(worker.last_seen_ms);
    info->set_leases(static_cast<int>(worker.doing.size()));
    info->set_team(worker.team);
    for (const WorkerDoing& doing : worker.doing) {
      v1::WorkerInfo::Doing* out_doing = info->add_doing();
      out_doing->set_target(doing.target);
      out_doing->set_step(doing.step);
      out_doing->set_phase(doing.phase);
      out_doing->set_candidates(doing.candidates);
      out_doing->set_seconds(doing.seconds);
    }
    bytes += info->ByteSizeLong();
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::Drain(const v1::DrainRequest*, v1::DrainResponse*) {
  engine_->drain(true);
  return grpc::Status::OK;
}

grpc::Status AdminService::Undrain(const v1::UndrainRequest*, v1::UndrainResponse*) {
  engine_->drain(false);
  return grpc::Status::OK;
}

grpc::Status AdminService::Backup(const v1::BackupRequest*, v1::BackupResponse* out) {
  const auto made = serving_.upkeep->backup();
  if (!made.ok()) return to_grpc(made.status());
  out->set_file(made->file);
  out->set_bytes(made->bytes);
  return grpc::Status::OK;
}

grpc::Status AdminService::RevokeProducer(const v1::RevokeProducerRequest* request, v1::RevokeProducerResponse* out) {
  // A certificate may also be named by its URI itself, without the escapes that principals have.
  const bool uri = request->producer().starts_with("spiffe://");
  const std::string producer = uri ? Authorizer::as_principal(request->producer()) : request->producer();
  if (producer.empty() || principal_of(producer) != producer) {
    return to_grpc(invalid("producer: expected what the names of its workers begin with, up to the first '/', found \"",
                           producer, "\""));
  }
  if (serving_.authorizer != nullptr) {
    const absl::Status revoked = serving_.authorizer->is_revoked(producer);
    if (!revoked.ok()) return to_grpc(revoked);
  }
  const auto gone = engine_->revoke(producer);
  if (!gone.ok()) return to_grpc(gone.status());
  serving_.replies->clear();
  serving_.forgotten();
  out->set_records(gone->records);
  out->set_trials(gone->trials);
  return grpc::Status::OK;
}

grpc::Status AdminService::Reverify(const v1::ReverifyRequest* request, v1::ReverifyResponse* out) {
  const auto jobs = engine_->reverify(request->target(), request->again());
  if (!jobs.ok()) return to_grpc(jobs.status());
  for (const std::string& job : *jobs) out->add_jobs(job);
  return grpc::Status::OK;
}

grpc::Status AdminService::ListReverified(const v1::ListReverifiedRequest* request, v1::ListReverifiedResponse* out) {
  const int limit = request->page_size() <= 0 ? 100 : std::min(request->page_size(), 1000);
  int64_t job = 0, skip = 0;
  if (!request->job().empty()) {
    const auto id = job_id(request->job());
    if (!id) return to_grpc(invalid("job: expected one that Reverify gave, found \"", request->job(), "\""));
    job = *id;
  }
  if (!request->page_token().empty() && (!absl::SimpleAtoi(request->page_token(), &skip) || skip < 0)) {
    return to_grpc(invalid("page_token: expected one that ListReverified gave, found \"", request->page_token(), "\""));
  }
  const auto rows = store_->reverified(job, skip, limit);
  if (!rows.ok()) return to_grpc(rows.status());
  size_t bytes = 0;
  for (const ReverifiedRow& row : *rows) {
    if (bytes >= kMostPageBytes) break;
    v1::ReverifiedKernel* kernel = out->add_kernels();
    kernel->set_job(job_name(row.job_id));
    kernel->set_digest(row.digest);
    kernel->set_key(row.key);
    kernel->set_environment_before(row.environment_before);
    kernel->set_environment(row.environment);
    kernel->set_outcome(kReverifiedNames[static_cast<int>(row.outcome)]);
    kernel->set_plan_before(row.plan_before);
    kernel->set_plan(row.plan);
    kernel->set_before_ns(row.before_ns);
    kernel->set_ns(row.ns);
    kernel->set_message(row.message);
    bytes += kernel->ByteSizeLong();
  }
  const auto listed = static_cast<size_t>(out->kernels_size());
  if (listed == static_cast<size_t>(limit) || listed < rows->size())
    out->set_next_page_token(cat(skip + static_cast<int64_t>(listed)));
  return grpc::Status::OK;
}

}  // namespace

std::unique_ptr<grpc::Service> make_admin_service(const Serving& serving) {
  return std::make_unique<AdminService>(serving);
}

}  // namespace wl
