// What a client knows about a bundle that it has given to its callers.
#pragma once

#include <atomic>
#include <cstdint>

namespace wl {

// How the kernels of a bundle were chosen. kUnknown: the request allowed no search, so they are whatever the
// coordinator had. kPredicted: without a search. kTuned: by a search with all trials that the request allows.
enum class BundleChoice : uint8_t { kUnknown, kPredicted, kTuned };

// The client writes it while callers read it.
struct BundleStanding {
  std::atomic<BundleChoice> chosen = BundleChoice::kUnknown;
  std::atomic<bool> replaced = false;  // whether the client gives another bundle to later calls
};

}  // namespace wl
