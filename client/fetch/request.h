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

struct BundleRequest {
  std::string graph;                 // path of an .onnx or .graph file; empty if `key` is given
  std::string key;                   // problem key of one kernel; empty if `graph` is given
  std::string target = "cpu";        // target, as for `tune --target`; ignored for a key, which has its own
  Bind bind;                         // extents of the graph's symbolic dimensions
  std::vector<std::string> weights;  // for a .graph file: names of the inputs that are weights
  int64_t trials = 0;                // limit of trials for each distinct group; 0: no search, only stored kernels
  bool allow_tf32 = false;           // whether products of f32 may round factors to tf32
};

struct CoordinatorAddress {
  std::string server;          // "HOST:PORT" or "unix:PATH"
  std::string ca, cert, key;   // PEM files for TLS; empty: none
  std::string signers;         // file of public keys, one of which must have signed a record; empty: not checked
  std::string token_file;      // file with a token, read for every call; empty: none
  std::string token;           // the token itself, instead of token_file; empty: none
  bool trust_workers = false;  // whether to use objects for which only the workers that sent them vouch
  // Time limit for receiving kernels that are in the store; each kernel adds a second.
  std::chrono::milliseconds patience{60'000};
};

// A function that asks a coordinator and writes the answer as a bundle to `folder`, which does not exist yet. It may
// take as long as a search, and returns Cancelled soon after a stop is requested.
using Ask = std::function<absl::Status(const BundleRequest& request, const std::string& folder, std::stop_token stop)>;

}  // namespace wl
