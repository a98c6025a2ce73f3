// A program's request for kernels, and the address of the coordinator that may have them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/program/bucket.h"

namespace wl {

// What a request that allows a search waits for. kWait: its search. kNow: kernels that are predicted, compiled and
// checked once; there is no search. kLater: those, and then the search takes place in the background.
enum class Tune : uint8_t { kWait, kNow, kLater };

struct BundleRequest {
  std::string graph;           // path of the graph, an .onnx or .graph file; empty if `key` is given
  std::string key;             // problem key of the one kernel to fetch; empty if `graph` is given
  std::string target = "cpu";  // target of the kernels, as for `tune --target`; ignored for a key, which has its own
  Bind bind;                   // extents of the graph's symbolic dimensions
  std::vector<std::string> weights;  // names of the graph's inputs that are weights; for .graph files only
  int64_t trials = 0;       // largest number of trials for each distinct group; 0: no search, only stored kernels
  bool allow_tf32 = false;  // whether products of f32 may round factors to tf32
  Tune tune = Tune::kWait;  // what a request for a graph with trials waits for; ignored for others
};

struct CoordinatorAddress {
  std::string server;         // the coordinator's address: "HOST:PORT" or "unix:PATH"
  std::string ca, cert, key;  // paths of PEM files for TLS; empty: none
  // The file of public keys, one of which must have signed a record; empty: signatures are not checked.
  std::string signers;
  std::string token_file;      // path of a file with the caller's token, read again for every call; empty: none
  std::string token;           // the caller's token, in place of token_file; empty: none
  bool trust_workers = false;  // whether to use compiled kernels for which only the workers that sent them vouch
  // Time limit for receiving kernels that are in the store; each kernel adds a second.
  std::chrono::milliseconds patience{60'000};
};

// A function that asks a coordinator and writes the answer as a bundle to `folder`, which does not exist yet. It may
// take as long as a search, and returns Cancelled soon after a stop is requested. With kNow it asks for predicted
// kernels; with kLater for a search, which gives way to work for which somebody waits. A stop then also ends the job at
// the coordinator.
using Ask = std::function<absl::Status(const BundleRequest& request, const std::string& folder, std::stop_token stop)>;

}  // namespace wl
