// The gRPC services of the coordinator. A service converts a request to plain data (proto/wire.h), makes one call of
// the engine or the store, and converts the result back; it decides nothing itself. Each service is a class inside its
// file. A new call needs its .proto and a method of that class.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/trust/signing.h"
#include "server/engine/bounds/turns.h"
#include "server/engine/engine.h"
#include "server/services/authorizer.h"
#include "server/services/budget.h"
#include "server/services/reply_cache.h"
#include "server/services/work_pool.h"
#include "server/store/store.h"
#include "server/store/upkeep.h"
#include "server/upstream/upstream.h"

// Overrides a unary METHOD of a callback service. A thread of `pool` answers the call with the overload of METHOD that
// takes the request and the reply, which may block. That overload is called only if the fields of the request are
// within their limits (proto/limits.h).
#define WL_ANSWER_ON(pool, METHOD, Request, Reply)                                                           \
  grpc::ServerUnaryReactor* METHOD(grpc::CallbackServerContext* context, const Request* request, Reply* out) \
      override {                                                                                             \
    return answer_on(pool, context, [=, this] {                                                              \
      const absl::Status fields = check_fields(*request);                                                    \
      return fields.ok() ? METHOD(request, out) : to_grpc(fields);                                           \
    });                                                                                                      \
  }                                                                                                          \
  grpc::Status METHOD(const Request* request, Reply* out)

// Like WL_ANSWER_ON, for an overload that also takes a Reader, which says whose jobs and records the caller may see.
#define WL_ANSWER_READER_ON(pool, METHOD, Request, Reply)                                                    \
  grpc::ServerUnaryReactor* METHOD(grpc::CallbackServerContext* context, const Request* request, Reply* out) \
      override {                                                                                             \
    return answer_on(pool, context, [=, this] {                                                              \
      const absl::Status fields = check_fields(*request);                                                    \
      if (!fields.ok()) return to_grpc(fields);                                                              \
      const absl::StatusOr<Reader> reader = reader_of(serving_, *context);                                   \
      return reader.ok() ? METHOD(*reader, request, out) : to_grpc(reader.status());                         \
    });                                                                                                      \
  }                                                                                                          \
  grpc::Status METHOD(const Reader& reader, const Request* request, Reply* out)

namespace wl {

// The parts of the coordinator that the services use. These parts must outlive the services, and the pools must also
// outlive the gRPC server.
struct Serving {
  Engine* engine;
  Store* store;
  WorkPool* quick;  // pool for calls that read or write the store
  WorkPool* slow;   // pool for calls that may take seconds, since they compile or write a backup
  // Pool with a low priority for calls that may take minutes: those about graphs whose text is longer than kSmallGraph
  // (32 KiB).
  WorkPool* heavy;
  Upkeep* upkeep;
  ReplyCache* replies;
  const Authorizer* authorizer;  // identifies callers; null in embedded mode, which checks no calls
  const SigningKey* signing;     // signs records; null: records are not signed
  Upstream* upstream;            // the upstream coordinator; null: there is none
  // Signers whose records are accepted from other coordinators; empty: no offers are accepted.
  const std::vector<Signer>* signers;
  Budget* waiting;    // limits the number of open long polls, watches and Attend calls
  Budget* transfers;  // limits the bytes of blobs and of Inspect answers in memory
  double lease_s;
  std::function<void()> forgotten;  // called after records were invalidated or revoked
  // For metrics, called on any thread: how many of the records that clients asked for, by key or digest, were found and
  // how many were not.
  std::function<void(int64_t hits, int64_t misses)> fetched;
  const LookedUpSum* looked_up;  // kernels of ended jobs with and without a record before the job
};

// Returns whose jobs and records the caller may see; in embedded mode, everybody's.
inline absl::StatusOr<Reader> reader_of(const Serving& serving, const grpc::CallbackServerContext& context) {
  if (serving.authorizer == nullptr) return Reader{.every = true};
  return serving.authorizer->view_of(context);
}

// Whether a caller may see a worker. The workers of a team are visible to that team and to operators only.
inline bool sees_worker(const Reader& reader, const WorkerView& worker) {
  return reader.every || worker.team.empty() || worker.team == reader.team;
}

// Returns the principal of the caller, by which queued calls take turns (server/engine/bounds/turns.h). All callers
// whose names are not known count as one caller. Empty in embedded mode.
inline std::string caller_of(const Serving& serving, const grpc::CallbackServerContext& context) {
  return serving.authorizer == nullptr ? "" : serving.authorizer->principal_of(context);
}

// Returns the pool that answers calls about a graph whose text has `bytes` bytes.
inline WorkPool* pool_for_graph(const Serving& serving, size_t bytes) {
  return bytes <= kSmallGraph ? serving.slow : serving.heavy;
}

// Ends an open call once its caller may no longer make it, or after `longest` (Authorizer::hold()). Calls that only
// wait may last a day; calls that transfer bytes may last only ten minutes, because they hold memory meanwhile.
inline constexpr std::chrono::seconds kLongestWait{86'400}, kLongestTransfer{600};
inline std::unique_ptr<OpenCalls::Held> hold_call(const Serving& serving, const grpc::CallbackServerContext& context,
                                                  const char* path, std::chrono::seconds longest, OpenCalls::End end) {
  if (serving.authorizer == nullptr) return nullptr;
  return serving.authorizer->hold(context, path, longest, std::move(end));
}
inline std::unique_ptr<OpenCalls::Held> hold_call(const Serving& serving, const grpc::CallbackServerContext* context,
                                                  const char* path, std::chrono::seconds longest) {
  return hold_call(serving, *context, path, longest, [context](const absl::Status&) { context->TryCancel(); });
}

// record_token() returns the page token by which a listing of records continues after the record `last`.
// record_cursor() parses such a token; nullopt: the token is empty, which stands for the first page. InvalidArgument:
// the text is no page token.
std::string record_token(const RecordRow& last);
absl::StatusOr<std::optional<RecordCursor>> record_cursor(const std::string& token);

std::unique_ptr<grpc::Service> make_tuning_service(const Serving& serving);
std::unique_ptr<grpc::Service> make_worker_service(const Serving& serving);
std::unique_ptr<grpc::Service> make_kernel_store_service(const Serving& serving);
std::unique_ptr<grpc::Service> make_blob_service(const Serving& serving);
std::unique_ptr<grpc::Service> make_admin_service(const Serving& serving);

}  // namespace wl
