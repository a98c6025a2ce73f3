// A shared object with ask_coordinator() alone. The C library loads it when it is to ask a coordinator, so that
// programs which ask none need neither gRPC nor protobuf. Both are of one build: C++ types pass between them.
#include "client/remote/ask.h"

extern "C" void warploom_ask(const wl::CoordinatorAddress& address, const wl::BundleRequest& request,
                             const std::string& folder, const std::stop_token& stop, absl::Status& result) {
  result = wl::ask_coordinator(address, request, folder, stop);
}
