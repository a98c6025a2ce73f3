// The services: messages to plain data (proto/wire.h), one call of the engine or the store, and back. Nothing is
// decided here. A service is a class inside its file; to add a call: the .proto and its method there.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/engine/engine.h"
#include "server/store/store.h"

namespace wl {

// The engine and the store must outlive the services.
std::unique_ptr<grpc::Service> make_tuning_service(Engine* engine, Store* store);
std::unique_ptr<grpc::Service> make_worker_service(Engine* engine, double lease_s);
std::unique_ptr<grpc::Service> make_kernel_store_service(Store* store);
std::unique_ptr<grpc::Service> make_blob_service(Engine* engine, Store* store);
std::unique_ptr<grpc::Service> make_admin_service(Engine* engine, Store* store);

}  // namespace wl
