// The services: messages to plain data (proto/wire.h), one call of the engine or the store, and back. Nothing is
// decided here. A service is a class inside its file; to add a call: the .proto and its method there.
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

// Overrides a unary METHOD of a callback service: it is answered on a pool, by the function of the same name that takes
// the request and the reply, and may block. The fields of the request are within their limits (proto/limits.h).
#define WL_ANSWER_ON(pool, METHOD, Request, Reply)                                                           \
  grpc::ServerUnaryReactor* METHOD(grpc::CallbackServerContext* context, const Request* request, Reply* out) \
      override {                                                                                             \
    return answer_on(pool, context, [=, this] {                                                              \
      const absl::Status fields = check_fields(*request);                                                    \
      return fields.ok() ? METHOD(request, out) : to_grpc(fields);                                           \
    });                                                                                                      \
  }                                                                                                          \
  grpc::Status METHOD(const Request* request, Reply* out)

// The same for a function that also takes whose jobs and records the caller may see.
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

// What the services share. All of it must outlive them, and the pools must outlive the server.
struct Serving {
  Engine* engine;
  Store* store;
  WorkPool* quick;  // calls that read or write the store
  WorkPool* slow;   // calls that may compile, or write a backup, for seconds
  WorkPool* heavy;  // likewise about large graphs, which may take minutes; they give way to all others
  Upkeep* upkeep;
  ReplyCache* replies;
  const Authorizer* authorizer;        // who calls; null: embedded mode, whose calls are all its own
  const SigningKey* signing;           // of records; null: they are not signed
  Upstream* upstream;                  // null: none
  const std::vector<Signer>* signers;  // whose records are taken from other coordinators; empty: nobody's are offered
  Budget* waiting;                     // long polls, watches and attending workers
  Budget* transfers;                   // bytes of blobs and of answers of Inspect
  double lease_s;
  std::function<void()> forgotten;  // records that were signed are no longer right
  // For those who count, on any thread: records that were asked for by key or digest, and were or were not there.
  std::function<void(int64_t hits, int64_t misses)> fetched;
};

// Whose jobs and records a caller may see. Embedded mode sees every one.
inline absl::StatusOr<Reader> reader_of(const Serving& serving, const grpc::CallbackServerContext& context) {
  if (serving.authorizer == nullptr) return Reader{.every = true};
  return serving.authorizer->view_of(context);
}

// Whether a caller may know of a worker: those of a team are seen by the team and by operators alone.
inline bool sees_worker(const Reader& reader, const WorkerView& worker) {
  return reader.every || worker.team.empty() || worker.team == reader.team;
}

// Who makes a call, for turns: all whose names are not known are one.
inline std::string caller_of(const Serving& serving, const grpc::CallbackServerContext& context) {
  return serving.authorizer == nullptr ? "" : serving.authorizer->principal_of(context);
}

// Where calls about a graph of so many bytes are answered.
inline WorkPool* pool_for_graph(const Serving& serving, size_t bytes) {
  return bytes <= kSmallGraph ? serving.slow : serving.heavy;
}

// Lets a call that stays open end when its caller may no longer make it (Authorizer::hold()). Calls that only wait may
// last a day, those that move bytes fill memory meanwhile.
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

// The token of the page of records that follows this one, and back; nullopt for the first page. InvalidArgument: it is
// none.
std::string record_token(const RecordRow& last);
absl::StatusOr<std::optional<RecordCursor>> record_cursor(const std::string& token);

std::unique_ptr<grpc::Service> make_tuning_service(const Serving& serving);
std::unique_ptr<grpc::Service> make_worker_service(const Serving& serving);
std::unique_ptr<grpc::Service> make_kernel_store_service(const Serving& serving);
std::unique_ptr<grpc::Service> make_blob_service(const Serving& serving);
std::unique_ptr<grpc::Service> make_admin_service(const Serving& serving);

}  // namespace wl
