// The calls of a Service about records and objects.
#include "client/remote/seen.h"
#include "client/remote/service.h"
#include "client/remote/unary.h"
#include "compiler/base/names.h"
#include "proto/rpc.h"
#include "proto/transfer.h"
#include "proto/wire.h"
#include "warploom/v1/blob.grpc.pb.h"
#include "warploom/v1/kernel_store.grpc.pb.h"

namespace wl {

// Checks that a record's generation is not lower than its signer allows (seen.h). Before the first record is used,
// asks the coordinator once for the signers' heads, which say the lowest generation that is allowed.
absl::Status Service::check_age(const KernelRecord& record) {
  if (peer_.seen == nullptr) return absl::OkStatus();
  if (!peer_.seen->has_heard()) {
    auto stub = v1::KernelStore::NewStub(channel_);
    const absl::StatusOr<v1::GetHeadsResponse> answer =
        call(*stub, peer_, &v1::KernelStore::Stub::GetHeads, v1::GetHeadsRequest());
    if (absl::IsUnimplemented(answer.status()))
      return absl::PermissionDeniedError(cat(
          peer_.where, " does not say which of the records that were signed are no longer right, and --signers asks ",
          "for it: it is of a version before that, or somebody in between hides it; upgrade that coordinator"));
    WL_RETURN_IF_ERROR(answer.status());
    peer_.seen->hear(sound_heads(answer->heads(), peer_.signers));
  }
  return peer_.seen->admit(record, peer_.signers, peer_.where);
}

absl::StatusOr<KernelRecord> Service::get_record(const std::string& key) {
  v1::GetKernelRequest request;
  request.set_key(key);
  auto stub = v1::KernelStore::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(v1::KernelRecord answer, call(*stub, peer_, &v1::KernelStore::Stub::GetKernel, request));
  WL_ASSIGN_OR_RETURN(KernelRecord record, arrived_record(answer, {.key = key}, peer_.signers, peer_.where));
  WL_RETURN_IF_ERROR(check_age(record));
  return record;
}

absl::StatusOr<std::vector<KernelRecord>> Service::get_records(const std::vector<std::string>& digests) {
  constexpr size_t kPage = 256;
  auto stub = v1::KernelStore::NewStub(channel_);
  std::vector<KernelRecord> records;
  while (records.size() < digests.size()) {
    v1::BatchGetKernelsRequest request;
    for (size_t i = records.size(); i < std::min(digests.size(), records.size() + kPage); ++i) {
      request.add_items()->set_digest(digests[i]);
    }
    WL_ASSIGN_OR_RETURN(v1::BatchGetKernelsResponse page,
                        call(*stub, peer_, &v1::KernelStore::Stub::BatchGetKernels, request));
    if (page.items_size() == 0 || page.items_size() > request.items_size()) {
      return answer_error(invalid(page.items_size(), " records, asked for were ", request.items_size()), peer_.where);
    }
    for (const auto& item : page.items()) {
      const std::string& digest = digests[records.size()];
      if (!item.has_record()) {
        return absl::NotFoundError(cat("the record ", digest, " is no longer in the store of ", peer_.where,
                                       page.upstream_problem().empty() ? "" : "; ", page.upstream_problem()));
      }
      WL_ASSIGN_OR_RETURN(KernelRecord record,
                          arrived_record(item.record(), {.digest = digest}, peer_.signers, peer_.where));
      WL_RETURN_IF_ERROR(check_age(record));
      records.push_back(std::move(record));
    }
  }
  return records;
}

absl::StatusOr<std::vector<RecordSummary>> Service::list_records(int most, const std::string& key_prefix) {
  auto stub = v1::KernelStore::NewStub(channel_);
  std::vector<RecordSummary> rows;
  v1::ListKernelsRequest request;
  request.set_key_prefix(key_prefix);
  do {
    request.set_page_size(std::min(1000, most - static_cast<int>(rows.size())));
    WL_ASSIGN_OR_RETURN(v1::ListKernelsResponse page, call(*stub, peer_, &v1::KernelStore::Stub::ListKernels, request));
    for (const v1::KernelSummary& message : page.kernels()) {
      // Coordinators of older versions list all keys whatever prefix is asked for, so other keys are left out here.
      if (!message.key().starts_with(key_prefix)) continue;
      rows.push_back({message.key(), message.digest(), message.environment(), message.target(), message.device(),
                      message.plan(), message.ops(), message.best_ns(), message.default_ns(), message.created_unix_ms(),
                      message.pinned(), message.measured_by(), message.confirmed_by(), message.team(), message.name()});
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && static_cast<int>(rows.size()) < most);
  return rows;
}

bool may_be_key(const std::string& text) {
  constexpr size_t kLeastDigits = 6;
  return text.size() >= kLeastDigits && text.size() <= kDigestDigits && is_hexadecimal(text);
}

absl::StatusOr<std::string> Service::whole_key(const std::string& digits) {
  if (!may_be_key(digits) || digits.size() == kDigestDigits) return digits;
  // The largest number of records that are searched for keys; one key may have a record for every environment.
  constexpr int kMostLooked = 1000;
  WL_ASSIGN_OR_RETURN(const std::vector<RecordSummary> found, list_records(kMostLooked, digits));
  if (found.empty()) return absl::NotFoundError(cat("no stored kernel has a key that begins with ", digits));
  for (const RecordSummary& record : found)
    if (record.key != found[0].key)
      return invalid("several keys begin with ", digits, ", such as ", found[0].key, " and ", record.key,
                     "; say more digits");
  return found[0].key;
}

absl::StatusOr<std::string> Service::get_blob(const std::string& digest) {
  auto stub = v1::BlobStore::NewStub(channel_);
  grpc::ClientContext context;
  const std::stop_callback ends(peer_.stop, [&context] { context.TryCancel(); });
  context.set_deadline(peer_.end_of_call(peer_.patience));
  auto bytes = download(*stub, &context, digest, kMostObjectBytes, peer_.where);
  if (!bytes.ok()) return status_of(to_grpc(bytes.status()), peer_);
  return bytes;
}

absl::StatusOr<int64_t> Service::invalidate(const std::string& key) {
  v1::InvalidateKernelRequest request;
  request.set_key(key);
  auto stub = v1::KernelStore::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(v1::InvalidateKernelResponse answer,
                      call(*stub, peer_, &v1::KernelStore::Stub::InvalidateKernel, request));
  return answer.invalidated();
}

absl::Status Service::count_uses(const std::vector<KernelUse>& uses) {
  auto stub = v1::KernelStore::NewStub(channel_);
  for (size_t i = 0; i < uses.size();) {
    v1::CountUsesRequest request;
    for (; i < uses.size() && request.uses_size() < static_cast<int>(kMostItems); ++i) {
      v1::KernelUse* use = request.add_uses();
      use->set_key(uses[i].key);
      use->set_calls(uses[i].calls);
      use->set_ns(uses[i].ns);
    }
    WL_RETURN_IF_ERROR(call(*stub, peer_, &v1::KernelStore::Stub::CountUses, request).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Usage> Service::usage(int most) {
  v1::GetUsageRequest request;
  request.set_most(most);
  auto stub = v1::KernelStore::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(const v1::Usage answer, call(*stub, peer_, &v1::KernelStore::Stub::GetUsage, request));
  auto usage = from_proto(answer);
  if (!usage.ok()) return answer_error(usage.status(), peer_.where);
  return usage;
}

absl::StatusOr<int64_t> Service::set_pinned(const std::string& key_or_digest, bool pinned) {
  auto stub = v1::KernelStore::NewStub(channel_);
  v1::PinKernelRequest request;
  request.set_pinned(pinned);
  request.set_key(key_or_digest);
  auto answer = call(*stub, peer_, &v1::KernelStore::Stub::PinKernel, request);
  if (absl::IsNotFound(answer.status())) {
    request.clear_key();
    request.set_digest(key_or_digest);
    answer = call(*stub, peer_, &v1::KernelStore::Stub::PinKernel, request);
  }
  if (absl::IsNotFound(answer.status())) {
    return absl::NotFoundError(cat("the store of ", peer_.where, " has no record of the key or digest ", key_or_digest,
                                   "; `warploom records` lists what it has"));
  }
  WL_RETURN_IF_ERROR(answer.status());
  return answer->records();
}

}  // namespace wl
