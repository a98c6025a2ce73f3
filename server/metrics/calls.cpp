#include "server/metrics/calls.h"

#include <chrono>
#include <set>
#include <string>

#include "absl/status/status.h"

namespace wl {
namespace {

namespace ge = grpc::experimental;
using Clock = std::chrono::steady_clock;

// Returns the methods whose calls wait for something to happen, so that their durations say nothing about the
// coordinator's speed.
const std::set<std::string>& waiting_methods() {
  static const std::set<std::string> kMethods = {"/warploom.v1.WorkerService/AcquireLeases",
                                                 "/warploom.v1.WorkerService/Attend",
                                                 "/warploom.v1.TuningService/WatchJob"};
  return kMethods;
}

// Counts one call of the server, and lives as long as that call.
class CallCounter final : public ge::Interceptor {
 public:
  CallCounter(Metrics* metrics, const char* method) : metrics_(metrics), method_(method) {}
  // A call whose client has disconnected gets no status, and counts as cancelled.
  ~CallCounter() override {
    const std::chrono::duration<double> seconds = Clock::now() - begun_;
    metrics_->call_ended(method_, absl::StatusCodeToString(code_), seconds.count(),
                         waiting_methods().contains(method_));
  }

  void Intercept(ge::InterceptorBatchMethods* methods) override {
    // The cast is valid, because gRPC and Abseil use the same numbers for status codes.
    if (methods->QueryInterceptionHookPoint(ge::InterceptionHookPoints::PRE_SEND_STATUS))
      code_ = static_cast<absl::StatusCode>(methods->GetSendStatus().error_code());
    methods->Proceed();
  }

 private:
  Metrics* const metrics_;
  const std::string method_;
  const Clock::time_point begun_ = Clock::now();
  absl::StatusCode code_ = absl::StatusCode::kCancelled;
};

class CounterFactory final : public ge::ServerInterceptorFactoryInterface {
 public:
  explicit CounterFactory(Metrics* metrics) : metrics_(metrics) {}
  ge::Interceptor* CreateServerInterceptor(ge::ServerRpcInfo* info) override {
    return new CallCounter(metrics_, info->method());
  }

 private:
  Metrics* const metrics_;
};

}  // namespace

std::unique_ptr<ge::ServerInterceptorFactoryInterface> count_calls(Metrics* metrics) {
  return std::make_unique<CounterFactory>(metrics);
}

}  // namespace wl
