#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/kernel_store.grpc.pb.h"

namespace wl {
namespace {

constexpr int kMaxBatch = 256;

// The last record of a page: records may be of one time. Nothing for the first page.
std::string token_of(const RecordRow& last) {
  return cat(last.created_ms, ".", last.record.digest);
}
absl::StatusOr<std::optional<RecordCursor>> cursor_of(const std::string& token) {
  if (token.empty()) return std::nullopt;
  const std::pair<std::string, std::string> parts = absl::StrSplit(token, absl::MaxSplits('.', 1));
  RecordCursor cursor{0, parts.second};
  if (!absl::SimpleAtoi(parts.first, &cursor.created_ms) || cursor.created_ms < 0 || cursor.digest.empty()) {
    return invalid("page_token: expected one that ListKernels gave, found \"", token, "\"");
  }
  return cursor;
}

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
  if (request->items_size() > kMaxBatch) {
    return to_grpc(invalid("BatchGetKernels: expected at most ", kMaxBatch, " items, found ", request->items_size()));
  }
  for (const v1::GetKernelRequest& item : request->items()) {
    const auto record = find(item);
    if (!record.ok()) return to_grpc(record.status());
    auto* answer = out->add_items();
    if (*record) *answer->mutable_record() = to_proto((*record)->record);
  }
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::ListKernels(const v1::ListKernelsRequest* request, v1::ListKernelsResponse* out) {
  const int limit = request->page_size() <= 0 ? 100 : std::min(request->page_size(), 1000);
  const auto after = cursor_of(request->page_token());
  if (!after.ok()) return to_grpc(after.status());
  const auto records = store_->list_records(*after, limit);
  if (!records.ok()) return to_grpc(records.status());
  for (const RecordRow& row : *records) {
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
  }
  if (static_cast<int>(records->size()) == limit) out->set_next_page_token(token_of(records->back()));
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
