#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/admin.grpc.pb.h"

namespace wl {
namespace {

class AdminService final : public v1::Admin::Service {
 public:
  AdminService(Engine* engine, Store* store) : engine_(engine), store_(store) {}
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*, v1::ServerInfo*) override;
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*, v1::ListWorkersResponse*) override;
  grpc::Status Drain(grpc::ServerContext*, const v1::DrainRequest*, v1::DrainResponse*) override;
  grpc::Status Undrain(grpc::ServerContext*, const v1::UndrainRequest*, v1::UndrainResponse*) override;

 private:
  Engine* engine_;
  Store* store_;
};

grpc::Status AdminService::GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*, v1::ServerInfo* out) {
  out->set_version(WARPLOOM_VERSION);
  out->set_api_version(kApiVersion);
  out->set_schema_version(Store::schema_version());
  out->set_store(store_->file());
  out->set_draining(engine_->draining());
  out->set_sqlite_version(Store::sqlite_version());
  return grpc::Status::OK;
}

grpc::Status AdminService::ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                                       v1::ListWorkersResponse* out) {
  for (const WorkerView& worker : engine_->workers()) {
    v1::WorkerInfo* info = out->add_workers();
    info->set_name(worker.name);
    info->set_epoch(worker.epoch);
    for (const Device& device : worker.devices) *info->add_devices() = to_proto(device);
    info->set_alive(worker.alive);
    info->set_last_seen_unix_ms(worker.last_seen_ms);
    info->set_leases(worker.leases);
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::Drain(grpc::ServerContext*, const v1::DrainRequest*, v1::DrainResponse*) {
  engine_->drain(true);
  return grpc::Status::OK;
}

grpc::Status AdminService::Undrain(grpc::ServerContext*, const v1::UndrainRequest*, v1::UndrainResponse*) {
  engine_->drain(false);
  return grpc::Status::OK;
}

}  // namespace

std::unique_ptr<grpc::Service> make_admin_service(Engine* engine, Store* store) {
  return std::make_unique<AdminService>(engine, store);
}

}  // namespace wl
