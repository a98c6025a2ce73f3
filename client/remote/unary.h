// One unary call to a coordinator.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <optional>
#include <string>

#include "client/remote/service.h"
#include "compiler/base/status.h"
#include "proto/limits.h"

namespace wl {

// Converts the error of reading an answer to DataLoss, because the coordinator made the answer, not the user.
inline absl::Status answer_error(const absl::Status& status, const std::string& where) {
  return absl::DataLossError(cat("the answer of ", where, " cannot be used: ", std::string(status.message())));
}

// Makes the call and checks the fields of its answer.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> call(Stub& stub, const Peer& peer,
                              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                              const Request& request,
                              std::optional<std::chrono::system_clock::duration> patience = {}) {
  grpc::ClientContext context;
  context.set_deadline(peer.end_of_call(patience.value_or(peer.patience)));
  const std::stop_callback ends(peer.stop, [&context] { context.TryCancel(); });
  Response response;
  grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return status_of(status, peer);
  if (const absl::Status fields = check_fields(response); !fields.ok()) return answer_error(fields, peer.where);
  return response;
}

}  // namespace wl
