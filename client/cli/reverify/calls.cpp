// The calls of a Service about kernels that are verified again.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>

#include "client/remote/service.h"
#include "proto/limits.h"
#include "proto/wire.h"
#include "warploom/v1/admin.grpc.pb.h"

namespace wl {
namespace {

constexpr auto kDeadline = std::chrono::minutes(10);  // all records of a store are looked at
constexpr int kPage = 1000;

template <typename Request, typename Response>
absl::StatusOr<Response> asked(v1::Admin::Stub& stub, const Peer& peer,
                               grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                               const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  Response response;
  WL_RETURN_IF_ERROR(status_of((stub.*method)(&context, request, &response), peer));
  if (const absl::Status fields = check_fields(response); !fields.ok()) {
    return absl::DataLossError(cat("the answer of ", peer.where, " cannot be used: ", std::string(fields.message())));
  }
  return response;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> Service::reverify(const std::string& target, bool again) {
  v1::ReverifyRequest request;
  request.set_target(target);
  request.set_again(again);
  auto stub = v1::Admin::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(const v1::ReverifyResponse made, asked(*stub, peer_, &v1::Admin::Stub::Reverify, request));
  return std::vector<std::string>(made.jobs().begin(), made.jobs().end());
}

absl::StatusOr<std::vector<Service::Reverification>> Service::list_reverified(const std::string& job, int most) {
  auto stub = v1::Admin::NewStub(channel_);
  std::vector<Reverification> rows;
  v1::ListReverifiedRequest request;
  request.set_job(job);
  do {
    request.set_page_size(std::min(kPage, most - static_cast<int>(rows.size())));
    WL_ASSIGN_OR_RETURN(const v1::ListReverifiedResponse page,
                        asked(*stub, peer_, &v1::Admin::Stub::ListReverified, request));
    for (const v1::ReverifiedKernel& kernel : page.kernels()) {
      rows.push_back({kernel.job(), kernel.digest(), kernel.key(), kernel.environment_before(), kernel.environment(),
                      kernel.outcome(), kernel.plan_before(), kernel.plan(), kernel.before_ns(), kernel.ns(),
                      kernel.message()});
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && static_cast<int>(rows.size()) < most);
  return rows;
}

}  // namespace wl
