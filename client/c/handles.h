// What the handles of the C library point to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/c/status.h"
#include "client/program/model.h"
#include "client/program/replica.h"

// NOLINTBEGIN(readability-identifier-naming): names of C
struct warploom_model {
  explicit warploom_model(wl::Model loaded);

  wl::Model model;
  struct Size {
    std::string text;
    std::vector<wl::TensorInfo> inputs, outputs;
  };
  std::vector<Size> sizes;
  std::vector<wl::TensorInfo> weights;
};

// Memory that is bound is used in place, or copied from and to by each run.
struct warploom_executor {
  struct Side {
    int buffer = -1;         // of the program
    size_t bytes = 0;        // of its elements
    void* copied = nullptr;  // the caller's memory, where a run copies
    bool on_device = false;  // whether the caller's memory is the device's
  };

  wl::Replica replica;
  std::vector<Side> inputs, outputs;
};
// NOLINTEND(readability-identifier-naming)
