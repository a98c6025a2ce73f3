#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/kernel_store.grpc.pb.h"

namespace wl {
namespace {

class KernelStoreService final : public v1::KernelStore::CallbackService {
 public:
  explicit KernelStoreService(const Serving& serving) : serving_(serving) {}
  WL_ANSWER_ON(serving_.quick, GetKernel, v1::GetKernelRequest, v1::KernelRecord);
  WL_ANSWER_ON(serving_.quick, BatchGetKernels, v1::BatchGetKernelsRequest, v1::BatchGetKernelsResponse);
  WL_ANSWER_ON(serving_.quick, ListKernels, v1::ListKernelsRequest, v1::ListKernelsResponse);
  WL_ANSWER_ON(serving_.quick, InvalidateKernel, v1::InvalidateKernelRequest, v1::InvalidateKernelResponse);

 private:
  absl::StatusOr<std::optional<RecordRow>> find(const v1::GetKernelRequest& request);
  const Serving serving_;
  Store* const store_ = serving_.store;
};

absl::StatusOr<std::optional<RecordRow>> KernelStoreService::find(const v1::GetKernelRequest& request) {
  if (!request.digest().empty()) return store_->record_by_digest(request.digest());
  if (request.key().empty()) return invalid("GetKernel: expected a key or a digest, found neither");
  return store_->record_by_key(request.key(), request.environment());
}

grpc::Status KernelStoreService::GetKernel(const v1::GetKernelRequest* request, v1::KernelRecord* out) {
  const auto record = find(*request);
  if (!record.ok()) return to_grpc(record.status());
  if (!*record) {
    return {grpc::StatusCode::NOT_FOUND,
            cat("no record of ", request->key().empty() ? request->digest() : request->key())};
  }
  *out = to_proto((*record)->record);
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::BatchGetKernels(const v1::BatchGetKernelsRequest* request,
                                                 v1::BatchGetKernelsResponse* out) {
  size_t bytes = 0;
  for (const v1::GetKernelRequest& item : request->items()) {
    if (bytes >= kMostPageBytes) break;
    const auto record = find(item);
    if (!record.ok()) return to_grpc(record.status());
    auto* answer = out->add_items();
    if (*record) *answer->mutable_record() = to_proto((*record)->record);
    bytes += answer->ByteSizeLong();
  }
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::ListKernels(const v1::ListKernelsRequest* request, v1::ListKernelsResponse* out) {
  const int limit = request->page_size() <= 0 ? 100 : std::min(request->page_size(), 1000);
  const auto before = request->page_token().empty() ? std::optional<int64_t>(0) : job_id(request->page_token());
  if (!before) return to_grpc(invalid("page_token: expected one that ListKernels gave"));
  const auto records = store_->list_records(*before, limit);
  if (!records.ok()) return to_grpc(records.status());
  size_t bytes = 0;
  for (const RecordRow& row : *records) {
    if (bytes >= kMostPageBytes) break;
    v1::KernelSummary* kernel = out->add_kernels();
    kernel->set_digest(row.record.digest);
    kernel->set_key(row.record.key);
    kernel->set_environment(row.record.environment);
    kernel->set_target(row.record.device.target);
    kernel->set_device(row.record.device.name);
    kernel->set_plan(row.record.plan);
    kernel->set_ops(row.record.ops);
    kernel->set_best_ns(median_of(row.record.samples_ns));
    kernel->set_default_ns(median_of(row.record.default_samples_ns));
    kernel->set_created_unix_ms(row.created_ms);
    bytes += kernel->ByteSizeLong();
  }
  if (out->kernels_size() == limit || out->kernels_size() < static_cast<int>(records->size()))
    out->set_next_page_token(cat(out->kernels().rbegin()->created_unix_ms()));
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::InvalidateKernel(const v1::InvalidateKernelRequest* request,
                                                  v1::InvalidateKernelResponse* out) {
  const auto changed = store_->invalidate(request->key());
  if (!changed.ok()) return to_grpc(changed.status());
  if (*changed == 0) return {grpc::StatusCode::NOT_FOUND, cat("no record of key ", request->key())};
  out->set_invalidated(*changed);
  return grpc::Status::OK;
}

}  // namespace

std::unique_ptr<grpc::Service> make_kernel_store_service(const Serving& serving) {
  return std::make_unique<KernelStoreService>(serving);
}

}  // namespace wl
