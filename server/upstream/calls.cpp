#include "server/upstream/calls.h"

#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/wire.h"

namespace wl {
namespace {

// Time limits of calls to the upstream. The limit for a record is short, since a caller waits for it. An object may
// take longer: it is fetched after its record, so it is known that the object exists.
constexpr auto kRecordLimit = std::chrono::seconds(1), kObjectLimit = std::chrono::seconds(30);
constexpr auto kOfferLimit = std::chrono::seconds(30);
// Most bytes of a fetched object; limited, because several objects may arrive, and lie in memory, at the same time.
constexpr size_t kMostFetchedObject = 64 << 20;

template <typename Message>
absl::Status checked(const Message& answer, const std::string& where) {
  const absl::Status fields = check_fields(answer);
  if (fields.ok()) return fields;
  return absl::DataLossError(cat("the answer of ", where, " cannot be used: ", std::string(fields.message())));
}

v1::GetKernelRequest request_for(const AskedRecord& asked) {
  v1::GetKernelRequest request;
  if (asked.digest.empty()) request.set_key(asked.key);
  if (asked.digest.empty()) request.set_environment(asked.environment);
  request.set_digest(asked.digest);
  return request;
}

}  // namespace

UpstreamCalls::UpstreamCalls(const std::shared_ptr<grpc::Channel>& channel, std::string where,
                             std::vector<Signer> signers)
    : where_(std::move(where)),
      signers_(std::move(signers)),
      kernels_(v1::KernelStore::NewStub(channel)),
      blobs_(v1::BlobStore::NewStub(channel)),
      admin_(v1::Admin::NewStub(channel)) {}

template <typename Call>
absl::Status UpstreamCalls::limited(std::chrono::milliseconds limit, const Via& via, const Call& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + limit);
  if (!via.empty()) context.AddMetadata(kViaHeader, print_via(via));
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return absl::CancelledError("the coordinator is about to end");
    open_.insert(&context);
  }
  const absl::Status status = call(&context);
  const std::lock_guard lock(mutex_);
  open_.erase(&context);
  return status;
}

void UpstreamCalls::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : open_) context->TryCancel();
}

absl::StatusOr<UpstreamCalls::Answer<std::optional<KernelRecord>>> UpstreamCalls::record(const AskedRecord& asked,
                                                                                         const Via& via) {
  // A single record is fetched by the call for several records, because only the answer to that call says whether the
  // upstream could ask its own upstream.
  v1::BatchGetKernelsRequest request;
  *request.add_items() = request_for(asked);
  v1::BatchGetKernelsResponse answer;
  WL_RETURN_IF_ERROR(limited(kRecordLimit, via, [&](grpc::ClientContext* context) {
    return from_grpc(kernels_->BatchGetKernels(context, request, &answer));
  }));
  WL_RETURN_IF_ERROR(checked(answer, where_));
  if (answer.items_size() != 1)
    return absl::DataLossError(
        cat("the answer of ", where_, " has ", answer.items_size(), " records, asked was for 1"));
  Answer<std::optional<KernelRecord>> out{std::nullopt, answer.upstream_problem()};
  if (!answer.items(0).has_record()) return out;
  WL_ASSIGN_OR_RETURN(out.value, arrived_record(answer.items(0).record(), asked, signers_, where_));
  return out;
}

absl::StatusOr<std::string> UpstreamCalls::object(const std::string& digest, const Via& via) {
  std::string bytes;
  WL_RETURN_IF_ERROR(limited(kObjectLimit, via, [&](grpc::ClientContext* context) -> absl::Status {
    WL_ASSIGN_OR_RETURN(bytes, download(*blobs_, context, digest, kMostFetchedObject, where_));
    return absl::OkStatus();
  }));
  return bytes;
}

absl::StatusOr<std::vector<Device>> UpstreamCalls::devices(const Via& via) {
  v1::ListDevicesResponse answer;
  WL_RETURN_IF_ERROR(limited(kRecordLimit, via, [&](grpc::ClientContext* context) {
    return from_grpc(admin_->ListDevices(context, {}, &answer));
  }));
  WL_RETURN_IF_ERROR(checked(answer, where_));
  std::vector<Device> devices;
  for (const v1::Device& message : answer.devices()) {
    WL_ASSIGN_OR_RETURN(Device device, from_proto(message));
    devices.push_back(std::move(device));
  }
  return devices;
}

absl::StatusOr<UpstreamCalls::Answer<std::vector<KernelRecord>>> UpstreamCalls::serves(
    const std::vector<NumberedRecord>& records, const Via& via) {
  v1::BatchGetKernelsRequest request;
  for (const NumberedRecord& record : records) {
    v1::GetKernelRequest* item = request.add_items();
    *item = request_for({.key = record.key, .environment = record.environment});
    item->set_manifest_only(true);
  }
  v1::BatchGetKernelsResponse answer;
  WL_RETURN_IF_ERROR(limited(kOfferLimit, via, [&](grpc::ClientContext* context) {
    return from_grpc(kernels_->BatchGetKernels(context, request, &answer));
  }));
  WL_RETURN_IF_ERROR(checked(answer, where_));
  if (answer.items_size() == 0 || answer.items_size() > request.items_size())
    return absl::DataLossError(
        cat("the answer of ", where_, " has ", answer.items_size(), " records, asked was for ", request.items_size()));
  Answer<std::vector<KernelRecord>> out{{}, answer.upstream_problem()};
  for (const auto& item : answer.items()) {
    KernelRecord& record = out.value.emplace_back();
    record.digest = item.record().digest();
    record.key = item.record().key();
    record.signed_by = item.record().signed_by();
    record.signature = item.record().signature();
    record.generation = item.record().generation();
    if (!record.digest.empty()) WL_RETURN_IF_ERROR(check_signature(record, signers_));
  }
  return out;
}

absl::StatusOr<std::vector<StoreHead>> UpstreamCalls::heads(const Via& via) {
  v1::GetHeadsResponse answer;
  WL_RETURN_IF_ERROR(limited(kRecordLimit, via, [&](grpc::ClientContext* context) {
    return from_grpc(kernels_->GetHeads(context, {}, &answer));
  }));
  WL_RETURN_IF_ERROR(checked(answer, where_));
  return sound_heads(answer.heads(), signers_);
}

absl::Status UpstreamCalls::offer_heads(const std::vector<StoreHead>& heads) {
  v1::OfferHeadsRequest request;
  for (const StoreHead& head : heads) *request.add_heads() = to_proto(head);
  v1::OfferHeadsResponse answer;
  return limited(kOfferLimit, {}, [&](grpc::ClientContext* context) {
    return from_grpc(kernels_->OfferHeads(context, request, &answer));
  });
}

absl::StatusOr<UpstreamCalls::Offered> UpstreamCalls::offer(const KernelRecord& record, const std::string& object) {
  if (!record.object_sha256.empty()) {
    v1::FindMissingRequest request;
    request.add_digests(record.object_sha256);
    v1::FindMissingResponse missing;
    WL_RETURN_IF_ERROR(limited(kOfferLimit, {}, [&](grpc::ClientContext* context) {
      return from_grpc(blobs_->FindMissing(context, request, &missing));
    }));
    if (missing.digests_size() > 0) {
      WL_RETURN_IF_ERROR(limited(kOfferLimit, {}, [&](grpc::ClientContext* context) {
        return from_grpc(upload(*blobs_, context, record.object_sha256, object));
      }));
    }
  }
  v1::OfferKernelRequest request;
  *request.mutable_record() = to_proto(record);
  v1::OfferKernelResponse answer;
  WL_RETURN_IF_ERROR(limited(kOfferLimit, {}, [&](grpc::ClientContext* context) {
    return from_grpc(kernels_->OfferKernel(context, request, &answer));
  }));
  WL_RETURN_IF_ERROR(checked(answer, where_));
  Offered out;
  out.why = answer.why();
  if (answer.outcome() == v1::OfferKernelResponse::ACCEPTED) out.outcome = Offered::kAccepted;
  if (answer.outcome() == v1::OfferKernelResponse::KNOWN) out.outcome = Offered::kKnown;
  return out;
}

absl::Status UpstreamCalls::ping() {
  v1::ServerInfo answer;
  return limited(kRecordLimit, {},
                 [&](grpc::ClientContext* context) { return from_grpc(admin_->GetServerInfo(context, {}, &answer)); });
}

}  // namespace wl
