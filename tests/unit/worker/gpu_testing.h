// Makes child processes of a test use the fake GPU drivers (tests/fake_gpu), or hides clang from them.
#pragma once

#include <cstdlib>
#include <string>

#include "tests/unit/scratch.h"
#include "tests/unit/worker/fault_zoo.h"
#include "tests/unit/worker/kernels.h"
#include "worker/device_runner.h"

namespace wl::testing {

// While a FakeGpu exists, runners that this process starts load the fake drivers and the fake NVRTC.
class FakeGpu {
 public:
  FakeGpu() { setenv("LD_LIBRARY_PATH", WARPLOOM_FAKE_GPU, 1); }
  ~FakeGpu() {
    unsetenv("LD_LIBRARY_PATH");
    for (const char* name : {"WARPLOOM_FAKE_STATE", "WARPLOOM_FAKE_MEMORY", "WARPLOOM_FAKE_ABSENT",
                             "WARPLOOM_FAKE_SPILL", "WARPLOOM_FAKE_CLOCKS"})
      unsetenv(name);
  }
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;
};

// While a WithoutClang exists, every clang++ on PATH fails, in this process and its children.
class WithoutClang {
 public:
  WithoutClang();
  ~WithoutClang() { setenv("PATH", path_.c_str(), 1); }
  // Adds a shell script that PATH finds before any other program of this name.
  void add(const std::string& name, const std::string& script) const;
  WithoutClang(const WithoutClang&) = delete;
  WithoutClang& operator=(const WithoutClang&) = delete;

 private:
  const Scratch scratch_;
  const std::string path_;
};

}  // namespace wl::testing
