// What a program wants to run, and the coordinator that it may be had from.
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
  std::string graph;                 // path of an .onnx or .graph file; or:
  std::string key;                   // the problem key of one kernel
  std::string target = "cpu";        // as `tune --target`; a key has its own
  Bind bind;                         // extents of the graph's symbolic dimensions
  std::vector<std::string> weights;  // inputs of a .graph file whose values stay the same
  int64_t trials = 0;                // per distinct group; 0: only what the coordinator's store has
  bool allow_tf32 = false;           // products of f32 may have factors of tf32
};

struct CoordinatorAddress {
  std::string server;         // "HOST:PORT" or "unix:PATH"
  std::string ca, cert, key;  // PEM files of TLS; empty: none
  std::string signers;        // file of the keys that may sign records; empty: any
  std::string token_file;     // has the token, and is read for every call; empty: none; or:
  std::string token;
  bool trust_workers = false;                  // objects are used for which nobody but their workers gives a word
  std::chrono::milliseconds patience{60'000};  // with what a store has, to arrive in all; and a second for each kernel
};

// Asks a coordinator and writes the answer as a bundle to a folder that does not exist yet. Takes as long as a search;
// Cancelled soon after a stop is requested.
using Ask = std::function<absl::Status(const BundleRequest& request, const std::string& folder, std::stop_token stop)>;

}  // namespace wl
