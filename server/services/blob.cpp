#include <algorithm>
#include <deque>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/services/asking.h"
#include "server/services/budget.h"
#include "server/services/services.h"
#include "warploom/v1/blob.grpc.pb.h"

namespace wl {
namespace {

constexpr int64_t kMaxBlobBytes = 256 << 20;

grpc::Status too_many_bytes() {
  return {grpc::StatusCode::UNAVAILABLE,
          "blob: others are being transferred that fill the memory set aside for it; try again in a second"};
}

// Decides which objects a caller may know of: the objects of records that it may see, and the last objects that its
// team has uploaded. Uploads of callers without a team are not remembered, because such callers are many and must not
// learn what the others sent. A caller does not learn whether any other object is stored.
class KnownObjects {
 public:
  explicit KnownObjects(Store* store) : store_(store) {}

  void sent(const std::string& team, const std::string& digest) {
    const std::lock_guard lock(mutex_);
    if (!sent_.emplace(team, digest).second) return;
    order_.push_back(sent_.find({team, digest}));
    if (order_.size() <= kMostRemembered) return;
    sent_.erase(order_.front());
    order_.pop_front();
  }

  // Returns those of `digests` whose objects the reader may know of, with a single query to the store.
  absl::StatusOr<std::set<std::string>> to(const Reader& reader, const std::vector<std::string>& digests) {
    std::set<std::string> known;
    std::vector<std::string> others;
    {
      const std::lock_guard lock(mutex_);
      for (const std::string& digest : digests) {
        if (reader.every || sent_.contains({reader.team, digest}))
          known.insert(digest);
        else
          others.push_back(digest);
      }
    }
    WL_ASSIGN_OR_RETURN(std::set<std::string> seen, store_->seen_objects(others, reader));
    known.merge(seen);
    return known;
  }

 private:
  static constexpr size_t kMostRemembered = 1 << 16;
  using Sent = std::set<std::pair<std::string, std::string>>;  // pairs of a team and the digest of its uploaded object

  Store* const store_;
  std::mutex mutex_;  // guards the members declared below
  Sent sent_;
  std::deque<Sent::iterator> order_;  // the entries of sent_, oldest first
};

// Checks that the caller may upload objects: one of its workers has a lease, whose results will refer to the objects,
// or it is a coordinator that may offer records.
absl::Status may_upload(const Serving& serving, const grpc::CallbackServerContext& context) {
  if (serving.authorizer == nullptr || serving.engine->has_lease(serving.authorizer->principal_of(context)) ||
      serving.authorizer->may_also(context, "/warploom.v1.KernelStore/OfferKernel"))
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      "blob: no worker of this caller has a lease at present; objects are uploaded with what they were measured for");
}

// The upload of an object. The call deletes itself once gRPC no longer needs it.
class UploadCall final : public grpc::ServerReadReactor<v1::UploadRequest> {
 public:
  UploadCall(const Serving& serving, KnownObjects* known, grpc::CallbackServerContext* context, v1::UploadResponse* out)
      : serving_(serving), known_(known), context_(context), out_(out) {
    held_ = hold_call(serving, context, "/warploom.v1.BlobStore/Upload", kLongestTransfer);
    if (const absl::Status may = may_upload(serving, *context); !may.ok())
      Finish(to_grpc(may));
    else
      StartRead(&chunk_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return commit();
    if (const absl::Status fields = check_fields(chunk_); !fields.ok()) return Finish(to_grpc(fields));
    const auto size = static_cast<int64_t>(chunk_.data().size());
    if (chunks_.empty())
      digest_ = chunk_.digest();
    else if (size == 0)
      return Finish(to_grpc(invalid("blob: expected bytes in every chunk but the first")));
    if (size > kBlobChunkBytes)
      return Finish(to_grpc(invalid("blob: expected chunks of at most ", kBlobChunkBytes, " bytes, found ", size)));
    if (size_ + size > kMaxBlobBytes)
      return Finish(to_grpc(invalid("blob: expected at most ", kMaxBlobBytes, " bytes")));
    if (!serving_.transfers->take(size)) return Finish(too_many_bytes());
    size_ += size;
    chunks_.push_back(std::move(*chunk_.mutable_data()));
    StartRead(&chunk_);
  }
  void OnDone() override {
    serving_.transfers->give(size_);
    delete this;
  }

 private:
  void commit() {
    const bool taken = serving_.quick->post([this] {
      if (context_->IsCancelled()) return Finish(grpc::Status::CANCELLED);
      Finish(to_grpc(within_memory([this] { return put(); })));
    });
    if (!taken) Finish(too_busy());
  }
  absl::Status put() {
    std::string bytes;
    bytes.reserve(static_cast<size_t>(size_));
    for (std::string& chunk : chunks_) {
      bytes += chunk;
      chunk = std::string();
    }
    out_->set_size(size_);
    WL_ASSIGN_OR_RETURN(const Reader by, reader_of(serving_, *context_));
    WL_RETURN_IF_ERROR(serving_.engine->put_blob(digest_, bytes));
    if (!by.team.empty()) known_->sent(by.team, digest_);
    return absl::OkStatus();
  }

  const Serving serving_;
  KnownObjects* const known_;
  grpc::CallbackServerContext* const context_;
  v1::UploadResponse* const out_;
  v1::UploadRequest chunk_;
  std::string digest_;
  std::vector<std::string> chunks_;
  int64_t size_ = 0;  // bytes that this call holds of the budget `transfers`
  std::unique_ptr<OpenCalls::Held> held_;
};

// The download of an object. The call deletes itself once gRPC no longer needs it.
class DownloadCall final : public grpc::ServerWriteReactor<v1::DownloadResponse> {
 public:
  DownloadCall(const Serving& serving, KnownObjects* known, grpc::CallbackServerContext* context,
               const v1::DownloadRequest& request)
      : serving_(serving), known_(known), context_(context), digest_(request.digest()), offset_(request.offset()) {
    held_ = hold_call(serving, context, "/warploom.v1.BlobStore/Download", kLongestTransfer);
    if (const absl::Status fields = check_fields(request); !fields.ok()) {
      Finish(to_grpc(fields));
    } else if (!serving_.quick->post([this] { begin(); })) {
      Finish(too_busy());
    }
  }

  void OnWriteDone(bool ok) override { ok ? write() : Finish(grpc::Status::CANCELLED); }
  void OnDone() override {
    serving_.transfers->give(taken_);
    delete this;
  }

 private:
  void begin() {
    auto bytes = seen();
    if (!bytes.ok() || *bytes || serving_.upstream == nullptr) return send(std::move(bytes), "");
    ask_upstream(serving_, *context_, {{Question::kObject, digest_, ""}}, [this](const Asked& asked) {
      const bool taken = serving_.quick->post([this, problem = asked.problem] { send(seen(), problem); });
      if (!taken) Finish(too_busy());
    });
  }
  // Returns the object if the store has it and the caller may know of it.
  absl::StatusOr<std::optional<std::string>> seen() {
    return within_memory([this]() -> absl::StatusOr<std::optional<std::string>> {
      WL_ASSIGN_OR_RETURN(const Reader reader, reader_of(serving_, *context_));
      WL_ASSIGN_OR_RETURN(const std::set<std::string> known, known_->to(reader, {digest_}));
      if (known.empty()) return std::nullopt;
      return serving_.store->blob(digest_);
    });
  }
  // Begins to send the object. `problem`: why the upstream could not be asked for it.
  void send(absl::StatusOr<std::optional<std::string>> bytes, const std::string& problem) {
    if (!bytes.ok()) return Finish(to_grpc(bytes.status()));
    if (!*bytes)
      return Finish({grpc::StatusCode::NOT_FOUND, cat("no blob ", digest_, problem.empty() ? "" : "; ", problem)});
    if (!serving_.transfers->take(static_cast<int64_t>((*bytes)->size()))) return Finish(too_many_bytes());
    bytes_ = *std::move(*bytes);
    taken_ = static_cast<int64_t>(bytes_.size());
    write();
  }
  void write() {
    if (offset_ >= static_cast<int64_t>(bytes_.size())) return Finish(grpc::Status::OK);
    chunk_.set_data(bytes_.substr(static_cast<size_t>(offset_), kBlobChunkBytes));
    offset_ += kBlobChunkBytes;
    StartWrite(&chunk_);
  }

  const Serving serving_;
  KnownObjects* const known_;
  grpc::CallbackServerContext* const context_;
  const std::string digest_;
  int64_t offset_;
  std::string bytes_;
  int64_t taken_ = 0;  // bytes that this call holds of the budget `transfers`
  v1::DownloadResponse chunk_;
  std::unique_ptr<OpenCalls::Held> held_;
};

class BlobService final : public v1::BlobStore::CallbackService {
 public:
  explicit BlobService(const Serving& serving) : serving_(serving) {}
  WL_ANSWER_READER_ON(serving_.quick, FindMissing, v1::FindMissingRequest, v1::FindMissingResponse);
  grpc::ServerReadReactor<v1::UploadRequest>* Upload(grpc::CallbackServerContext* context,
                                                     v1::UploadResponse* out) override {
    return new UploadCall(serving_, &known_, context, out);
  }
  grpc::ServerWriteReactor<v1::DownloadResponse>* Download(grpc::CallbackServerContext* context,
                                                           const v1::DownloadRequest* request) override {
    return new DownloadCall(serving_, &known_, context, *request);
  }

 private:
  const Serving serving_;
  KnownObjects known_{serving_.store};
};

grpc::Status BlobService::FindMissing(const Reader& reader, const v1::FindMissingRequest* request,
                                      v1::FindMissingResponse* out) {
  const std::vector<std::string> asked(request->digests().begin(), request->digests().end());
  absl::StatusOr<std::set<std::string>> here = known_.to(reader, asked);
  if (!here.ok()) return to_grpc(here.status());
  const auto lost = serving_.store->missing_blobs({here->begin(), here->end()});
  if (!lost.ok()) return to_grpc(lost.status());
  for (const std::string& digest : *lost) here->erase(digest);
  for (const std::string& digest : asked)
    if (!here->contains(digest)) out->add_digests(digest);
  return grpc::Status::OK;
}

}  // namespace

std::unique_ptr<grpc::Service> make_blob_service(const Serving& serving) {
  return std::make_unique<BlobService>(serving);
}

}  // namespace wl
