// The calls of a Service about verifying stored kernels again.
#include <algorithm>
#include <chrono>

#include "client/remote/service.h"
#include "client/remote/unary.h"
#include "warploom/v1/admin.grpc.pb.h"

namespace wl {
namespace {

constexpr auto kPatience = std::chrono::minutes(10);  // time limit of a call that looks at all records of a store
constexpr int kPage = 1000;

}  // namespace

absl::StatusOr<std::vector<std::string>> Service::reverify(const std::string& target, bool again) {
  v1::ReverifyRequest request;
  request.set_target(target);
  request.set_again(again);
  auto stub = v1::Admin::NewStub(channel_);
  WL_ASSIGN_OR_RETURN(const v1::ReverifyResponse made,
                      call(*stub, peer_, &v1::Admin::Stub::Reverify, request, kPatience));
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
                        call(*stub, peer_, &v1::Admin::Stub::ListReverified, request, kPatience));
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
