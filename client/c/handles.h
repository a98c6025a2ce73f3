// The structs that the opaque handles of the C library point to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/c/status.h"
#include "client/fetch/standing.h"
#include "client/program/model.h"
#include "client/program/replica.h"

// NOLINTBEGIN(readability-identifier-naming): names of C
struct warploom_model {
  explicit warploom_model(wl::Model loaded);

  wl::Model model;
  std::shared_ptr<const wl::BundleStanding>
      standing;  // what the client says about the kernels; null: no client loaded them
  struct Size {
    std::string text;
    std::vector<wl::TensorInfo> inputs, outputs;
  };
  std::vector<Size> sizes;
  std::vector<wl::TensorInfo> weights;
};

// Kernels use the caller's bound memory in place if they can; otherwise each run copies from or to it.
struct warploom_executor {
  // An input or output of an executor.
  struct Side {
    int buffer = -1;         // index of the program's buffer for this input or output
    size_t bytes = 0;        // size in bytes of this input or output
    void* copied = nullptr;  // the caller's memory from or to which each run copies; null: no copy
    bool on_device = false;  // whether the caller's memory is on the GPU
  };

  wl::Replica replica;
  std::vector<Side> inputs, outputs;
};
// NOLINTEND(readability-identifier-naming)
