// The shared object libwarploom-client, which exports ask_coordinator() under the name warploom_ask, and
// tell_coordinator() under the name warploom_tell. The C library loads it when it is to ask a coordinator, so that
// other programs need neither gRPC nor protobuf. C++ types pass between the C library and this object, so both must be
// of one build.
#include "client/remote/ask.h"

extern "C" void warploom_ask(const wl::CoordinatorAddress& address, const wl::BundleRequest& request,
                             const std::string& folder, const std::stop_token& stop, absl::Status& result) {
  result = wl::ask_coordinator(address, request, folder, stop);
}

extern "C" void warploom_tell(const wl::CoordinatorAddress& address, const std::vector<wl::KernelUse>& uses,
                              std::chrono::milliseconds patience, const std::stop_token& stop, absl::Status& result) {
  result = wl::tell_coordinator(address, uses, patience, stop);
}
