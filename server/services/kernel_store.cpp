#include <google/protobuf/io/coded_stream.h>

#include <array>
#include <functional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/base/names.h"
#include "compiler/ir/text.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/usage.h"
#include "proto/wire.h"
#include "server/services/asking.h"
#include "server/services/offers.h"
#include "server/services/services.h"
#include "warploom/v1/kernel_store.grpc.pb.h"

namespace wl {
namespace {

// The calls that fetch records are raw methods of gRPC, which return serialized messages, so that records can be
// returned that were serialized earlier.
using Fetching = v1::KernelStore::WithRawCallbackMethod_GetKernel<
    v1::KernelStore::WithRawCallbackMethod_BatchGetKernels<v1::KernelStore::WithCallbackMethod_ListKernels<
        v1::KernelStore::WithCallbackMethod_InvalidateKernel<v1::KernelStore::WithCallbackMethod_OfferKernel<
            v1::KernelStore::WithCallbackMethod_GetHeads<v1::KernelStore::WithCallbackMethod_OfferHeads<
                v1::KernelStore::WithCallbackMethod_PinKernel<v1::KernelStore::WithCallbackMethod_CountUses<
                    v1::KernelStore::WithCallbackMethod_GetUsage<v1::KernelStore::Service>>>>>>>>>>;

class KernelStoreService final : public Fetching {
 public:
  explicit KernelStoreService(const Serving& serving) : serving_(serving) {}
  grpc::ServerUnaryReactor* GetKernel(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* out) override {
    return fetch<v1::GetKernelRequest>(context, *request, out);
  }
  grpc::ServerUnaryReactor* BatchGetKernels(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* out) override {
    return fetch<v1::BatchGetKernelsRequest>(context, *request, out);
  }
  WL_ANSWER_READER_ON(serving_.quick, ListKernels, v1::ListKernelsRequest, v1::ListKernelsResponse);
  WL_ANSWER_ON(serving_.quick, PinKernel, v1::PinKernelRequest, v1::PinKernelResponse);
  WL_ANSWER_ON(serving_.quick, InvalidateKernel, v1::InvalidateKernelRequest, v1::InvalidateKernelResponse);
  WL_ANSWER_ON(serving_.quick, GetHeads, v1::GetHeadsRequest, v1::GetHeadsResponse);
  WL_ANSWER_ON(serving_.quick, OfferHeads, v1::OfferHeadsRequest, v1::OfferHeadsResponse);
  WL_ANSWER_READER_ON(serving_.quick, CountUses, v1::CountUsesRequest, v1::CountUsesResponse);
  WL_ANSWER_READER_ON(serving_.slow, GetUsage, v1::GetUsageRequest, v1::Usage);
  WL_ANSWER_READER_ON(serving_.quick, OfferKernel, v1::OfferKernelRequest, v1::OfferKernelResponse);

 private:
  using Fetched = absl::StatusOr<std::optional<grpc::Slice>>;  // a serialized record; nullopt: there is no such record
  using Source = std::function<Fetched(const v1::GetKernelRequest&)>;

  template <typename Request>
  grpc::ServerUnaryReactor* fetch(grpc::CallbackServerContext* context, const grpc::ByteBuffer& request,
                                  grpc::ByteBuffer* out);
  struct Count {
    int64_t hits = 0, misses = 0;
  };
  // Makes the answer to a request. `problem`: why the upstream could not be asked for missing records.
  static absl::Status answer(const v1::GetKernelRequest& request, const Source& source, const std::string& problem,
                             grpc::ByteBuffer* out, Count* count);
  static absl::Status answer(const v1::BatchGetKernelsRequest& request, const Source& source,
                             const std::string& problem, grpc::ByteBuffer* out, Count* count);
  // Reports the hits and misses of a call to the metrics, and ends the call.
  void finish(grpc::ServerUnaryReactor* reactor, const absl::Status& status, const Count& count) const {
    serving_.fetched(count.hits, count.misses);
    reactor->Finish(to_grpc(status));
  }
  Fetched read(const Reader& reader, const v1::GetKernelRequest& request);

  const Serving serving_;
  Store* const store_ = serving_.store;
};

// Returns the name of a request's answer in the cache of replies. Requests of readers that see the same records have
// the same name.
std::string name_of(const Reader& reader, const v1::GetKernelRequest& request) {
  const std::string form =
      cat(request.manifest_only() ? "m" : "f", reader.every ? "every" : "team", " ", reader.team, "\n");
  return request.digest().empty() ? cat(form, "k", request.key(), "\n", request.environment())
                                  : cat(form, "d", request.digest());
}

Question question_of(const v1::GetKernelRequest& request) {
  if (!request.digest().empty()) return {Question::kDigest, request.digest(), ""};
  return {Question::kKey, request.key(), request.environment()};
}

// Answers at once if the cache has every record. Otherwise answers from the store, on a thread of the pool, after the
// upstream was asked for records that the store lacks.
template <typename Request>
grpc::ServerUnaryReactor* KernelStoreService::fetch(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer& request, grpc::ByteBuffer* out) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto parsed = std::make_shared<Request>();
  grpc::ByteBuffer bytes = request;
  const bool readable = grpc::SerializationTraits<Request>::Deserialize(&bytes, parsed.get()).ok();
  const absl::Status fields = readable ? check_fields(*parsed) : invalid("expected a ", Request::descriptor()->name());
  const absl::StatusOr<Reader> reader = fields.ok() ? reader_of(serving_, *context) : fields;
  if (!reader.ok()) {
    reactor->Finish(to_grpc(reader.status()));
    return reactor;
  }
  const auto at_hand = [&](const v1::GetKernelRequest& question) -> Fetched {
    auto found = serving_.replies->find(name_of(*reader, question));
    if (!found) return absl::UnavailableError("not at hand");
    return found;
  };
  Count count;
  if (answer(*parsed, at_hand, "", out, &count).ok()) {
    finish(reactor, absl::OkStatus(), count);
    return reactor;
  }
  const auto stored = [this, reader = *reader](const v1::GetKernelRequest& question) { return read(reader, question); };
  const auto again = [=, this](const Asked& asked) {
    const bool taken = serving_.quick->post([=, this, problem = asked.problem] {
      Count found;
      const absl::Status status = within_memory([&] { return answer(*parsed, stored, problem, out, &found); });
      finish(reactor, status, found);
    });
    if (!taken) reactor->Finish(too_busy());
  };
  const bool taken = serving_.quick->post([=, this] {
    if (context->IsCancelled()) return reactor->Finish(grpc::Status::CANCELLED);
    std::vector<Question> missing;
    const auto noting = [&](const v1::GetKernelRequest& question) {
      Fetched found = stored(question);
      if (found.ok() && !*found) missing.push_back(question_of(question));
      return found;
    };
    Count found;
    const absl::Status status = within_memory([&] { return answer(*parsed, noting, "", out, &found); });
    if (missing.empty() || serving_.upstream == nullptr) return finish(reactor, status, found);
    ask_upstream(serving_, *context, missing, again);
  });
  if (!taken) reactor->Finish(too_busy());
  return reactor;
}

absl::Status KernelStoreService::answer(const v1::GetKernelRequest& request, const Source& source,
                                        const std::string& problem, grpc::ByteBuffer* out, Count* count) {
  WL_ASSIGN_OR_RETURN(const std::optional<grpc::Slice> record, source(request));
  ++(record ? count->hits : count->misses);
  if (!record) {
    return absl::NotFoundError(cat("no record of ", request.key().empty() ? request.digest() : request.key(),
                                   problem.empty() ? "" : "; ", problem));
  }
  *out = grpc::ByteBuffer(&*record, 1);
  return absl::OkStatus();
}

// Writes a BatchGetKernelsResponse whose records are already serialized.
absl::Status KernelStoreService::answer(const v1::BatchGetKernelsRequest& request, const Source& source,
                                        const std::string& problem, grpc::ByteBuffer* out, Count* count) {
  using google::protobuf::io::CodedOutputStream;
  // Protobuf tags of field 1 of the answer and of field 1 of its items, both with wire type 2 (length).
  constexpr uint8_t kItems = 1 << 3 | 2, kRecord = 1 << 3 | 2;
  std::vector<grpc::Slice> slices;
  size_t bytes = 0;
  for (const v1::GetKernelRequest& item : request.items()) {
    if (bytes >= kMostPageBytes) break;
    WL_ASSIGN_OR_RETURN(const std::optional<grpc::Slice> record, source(item));
    std::array<uint8_t, 16> head;
    uint8_t* end = head.data();
    *end++ = kItems;
    if (record) {
      const auto size = static_cast<uint32_t>(record->size());
      const size_t record_head = 1 + CodedOutputStream::VarintSize32(size);
      end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(record_head) + size, end);
      *end++ = kRecord;
      end = CodedOutputStream::WriteVarint32ToArray(size, end);
    } else {
      *end++ = 0;
    }
    slices.emplace_back(head.data(), static_cast<size_t>(end - head.data()));
    if (record) slices.push_back(*record);
    if (record) bytes += record->size();
    ++(record ? count->hits : count->misses);
  }
  v1::BatchGetKernelsResponse rest;
  rest.set_upstream_problem(fitted(problem, TextKind::kText, kMostMessage));
  slices.emplace_back(rest.SerializeAsString());
  *out = grpc::ByteBuffer(slices.data(), slices.size());
  return absl::OkStatus();
}

KernelStoreService::Fetched KernelStoreService::read(const Reader& reader, const v1::GetKernelRequest& request) {
  const uint64_t asked = serving_.replies->now();
  if (request.digest().empty() && request.key().empty())
    return invalid("GetKernel: expected a key or a digest, found neither");
  WL_ASSIGN_OR_RETURN(const std::optional<RecordMessage> record,
                      store_->record_message({.key = request.digest().empty() ? request.key() : std::string(),
                                              .environment = request.environment(),
                                              .digest = request.digest(),
                                              .reader = reader},
                                             !request.manifest_only()));
  if (!record) return std::nullopt;
  grpc::Slice answer(record->bytes);
  serving_.replies->put(name_of(reader, request), record->key, answer, asked);
  return answer;
}

grpc::Status KernelStoreService::ListKernels(const Reader& reader, const v1::ListKernelsRequest* request,
                                             v1::ListKernelsResponse* out) {
  const int limit = request->page_size() <= 0 ? 100 : std::min(request->page_size(), 1000);
  const auto after = record_cursor(request->page_token());
  if (!after.ok()) return to_grpc(after.status());
  const auto records = store_->list_records(*after, limit, reader, {.key_prefix = request->key_prefix()});
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
    kernel->set_pinned(row.pinned);
    kernel->set_measured_by(row.record.measured_by);
    kernel->set_confirmed_by(row.record.confirmed_by);
    kernel->set_team(row.team);
    kernel->set_name(describe_group(row.record.graph));
    bytes += kernel->ByteSizeLong();
  }
  const auto listed = static_cast<size_t>(out->kernels_size());
  if (listed == static_cast<size_t>(limit) || listed < records->size())
    out->set_next_page_token(record_token((*records)[listed - 1]));
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::InvalidateKernel(const v1::InvalidateKernelRequest* request,
                                                  v1::InvalidateKernelResponse* out) {
  const auto changed = store_->invalidate(request->key());
  if (!changed.ok()) return to_grpc(changed.status());
  serving_.replies->drop(request->key());
  serving_.forgotten();
  if (*changed == 0) return {grpc::StatusCode::NOT_FOUND, cat("no record of key ", request->key())};
  out->set_invalidated(*changed);
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::OfferKernel(const Reader& reader, const v1::OfferKernelRequest* request,
                                             v1::OfferKernelResponse* out) {
  const auto record = from_proto(request->record());
  if (!record.ok()) return to_grpc(record.status());
  const auto taken = take_offer(serving_, reader, *record);
  if (!taken.ok()) return to_grpc(taken.status());
  constexpr v1::OfferKernelResponse::Outcome kOutcomes[] = {
      v1::OfferKernelResponse::ACCEPTED, v1::OfferKernelResponse::KNOWN, v1::OfferKernelResponse::REFUSED};
  out->set_outcome(kOutcomes[taken->outcome]);
  out->set_why(fitted(taken->why, TextKind::kText, kMostMessage));
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::CountUses(const Reader& reader, const v1::CountUsesRequest* request,
                                           v1::CountUsesResponse* out) {
  std::vector<KernelUse> uses;
  for (const v1::KernelUse& use : request->uses()) uses.push_back({use.key(), use.calls(), use.ns()});
  const auto known = serving_.engine->count_uses(reader.team, uses);
  if (!known.ok()) return to_grpc(known.status());
  out->set_known(*known);
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::GetUsage(const Reader& reader, const v1::GetUsageRequest* request, v1::Usage* out) {
  const auto usage = serving_.engine->usage(reader, request->most() == 0 ? kUsageItems : request->most());
  if (!usage.ok()) return to_grpc(usage.status());
  *out = to_proto(*usage);
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::GetHeads(const v1::GetHeadsRequest* /*request*/, v1::GetHeadsResponse* out) {
  const auto heads = heads_of(*store_);
  if (!heads.ok()) return to_grpc(heads.status());
  for (const StoreHead& head : *heads) *out->add_heads() = to_proto(head);
  return grpc::Status::OK;
}

grpc::Status KernelStoreService::OfferHeads(const v1::OfferHeadsRequest* request, v1::OfferHeadsResponse* /*out*/) {
  if (serving_.signers->empty()) return grpc::Status::OK;
  return to_grpc(store_->put_heads(sound_heads(request->heads(), *serving_.signers)));
}

grpc::Status KernelStoreService::PinKernel(const v1::PinKernelRequest* request, v1::PinKernelResponse* out) {
  if (request->key().empty() == request->digest().empty())
    return {grpc::StatusCode::INVALID_ARGUMENT, "PinKernel: expected a key or a digest, and not both"};
  const auto records = store_->pin(
      {.key = request->key(), .environment = request->environment(), .digest = request->digest()}, request->pinned());
  if (!records.ok()) return to_grpc(records.status());
  if (*records == 0) return {grpc::StatusCode::NOT_FOUND, cat("no record of ", request->key(), request->digest())};
  out->set_records(*records);
  return grpc::Status::OK;
}

}  // namespace

// The page token includes the digest, because several records may have the same time.
std::string record_token(const RecordRow& last) {
  return cat(last.created_ms, ".", last.record.digest);
}

absl::StatusOr<std::optional<RecordCursor>> record_cursor(const std::string& token) {
  if (token.empty()) return std::nullopt;
  const std::pair<std::string, std::string> parts = absl::StrSplit(token, absl::MaxSplits('.', 1));
  RecordCursor cursor{0, parts.second};
  if (!absl::SimpleAtoi(parts.first, &cursor.created_ms) || cursor.created_ms < 0 || cursor.digest.empty()) {
    return invalid("page_token: expected one that a page of records gave, found \"", token, "\"");
  }
  return cursor;
}

std::unique_ptr<grpc::Service> make_kernel_store_service(const Serving& serving) {
  return std::make_unique<KernelStoreService>(serving);
}

}  // namespace wl
