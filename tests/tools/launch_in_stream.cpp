// launch_in_stream BUNDLE cuda|hip [lazy]: runs a bundle for GPUs by the C library with host memory, then with device
// memory in a stream of its own, and compares every output. `lazy` is for the fake driver, which executes the work of
// such a stream only when the stream is queried, so outputs must not change before the query. If an output differs, the
// program prints it and exits with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "client/c/warploom.hpp"
#include "compiler/base/status.h"
#include "runtime/gpu_device.h"

namespace {

constexpr unsigned kNonBlocking = 1;
constexpr unsigned char kPoison = 0xA5;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "launch_in_stream: %s\n", why.c_str());
  std::exit(1);
}

void expect(int error, const char* what) {
  if (error != 0) fail(wl::cat(what, ": error ", error));
}

void expect_refused(const std::function<void()>& call, warploom_code code, const std::string& says) {
  try {
    call();
  } catch (const warploom::Error& error) {
    if (error.code() == code && std::string(error.what()).find(says) != std::string::npos) return;
    fail(wl::cat("expected ", static_cast<int>(code), ", ", says, "; found ", static_cast<int>(error.code()), ", ",
                 error.what()));
  }
  fail(wl::cat("expected an error: ", says));
}

// Device memory, and a copy of it in host memory.
struct Memory {
  Memory(const wl::GpuDevice& on, size_t bytes)
      : device(wl::GpuBuffer::create(on, static_cast<int64_t>(bytes)).value()), host(bytes) {
    poison(on.api());
  }
  void poison(const wl::GpuApi& api) {
    std::fill(host.begin(), host.end(), static_cast<char>(kPoison));
    send(api);
  }
  void send(const wl::GpuApi& api) { expect(api.to_device(device.data(), host.data(), host.size()), "sending"); }
  void fetch(const wl::GpuApi& api) { expect(api.to_host(host.data(), device.data(), host.size()), "fetching"); }

  wl::GpuBuffer device;
  std::vector<char> host;
};

void fill(void* memory, size_t bytes, size_t input) {
  auto* const values = static_cast<float*>(memory);  // the inputs of the test's bundles are f32
  for (size_t i = 0; i < bytes / sizeof(float); ++i) values[i] = static_cast<float>((i * 7 + input * 3) % 23) / 8;
}

void run(const std::string& folder, const std::string& family, bool lazy) {
  warploom::Model model(folder);
  model.generate_weights(1);
  warploom::Executor host(model), device(model);
  const auto inputs = model.inputs(), outputs = model.outputs();
  for (size_t i = 0; i < inputs.size(); ++i) fill(host.input(i), inputs[i].bytes, i);
  host.run();

  const wl::GpuApi& api = *wl::gpu_api(family).value();
  const auto opened = wl::GpuDevice::open(family + ":0");
  if (!opened.ok()) fail(std::string(opened.status().message()));
  void* stream = nullptr;
  expect(api.stream_create(&stream, kNonBlocking), "making a stream");
  expect_refused([&] { device.launch(stream); }, WARPLOOM_FAILED_PRECONDITION, inputs[0].name);
  std::vector<Memory> given, made;
  given.reserve(inputs.size());
  made.reserve(outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Memory& memory = given.emplace_back(**opened, inputs[i].bytes);
    std::memcpy(memory.host.data(), host.input(i), inputs[i].bytes);
    memory.send(api);
    device.bind_device_input(i, memory.device.data());
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    device.bind_device_output(i, made.emplace_back(**opened, outputs[i].bytes).device.data());
  expect_refused([&] { device.bind_device_input(0, given[0].device.data() + 4); }, WARPLOOM_INVALID_ARGUMENT,
                 "multiple of 64");

  const auto compare = [&](const char* when) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      Memory& memory = made[i];
      memory.fetch(api);
      if (std::memcmp(memory.host.data(), host.output(i), memory.host.size()) != 0)
        fail(wl::cat(outputs[i].name, " differs ", when));
      memory.poison(api);
    }
  };
  for (int time = 0; time < 3; ++time) {
    device.launch(stream);
    for (Memory& memory : made) {
      if (!lazy) break;
      memory.fetch(api);
      for (const char byte : memory.host)
        if (static_cast<unsigned char>(byte) != kPoison) fail("it ran before its stream did");
    }
    while (api.stream_query(stream) == api.not_ready) {
    }
    compare("in a stream");
  }
  for (int time = 0; time < 3; ++time) {  // the second and third run launch a captured CUDA or HIP graph
    device.run();
    compare("with memory of the device");
  }
  // Now one input and one output are bound to host memory, the others to device memory.
  device.bind_input(0, host.input(0));
  std::vector<char> back(outputs[0].bytes);
  device.bind_output(0, back.data());
  device.run();
  if (std::memcmp(back.data(), host.output(0), back.size()) != 0) fail("an output differs in the host's memory");
  expect_refused([&] { device.launch(stream); }, WARPLOOM_FAILED_PRECONDITION, "host's memory");
  expect(api.stream_destroy(stream), "ending a stream");
}

}  // namespace

int main(int argc, char** argv) {
  const bool lazy = argc == 4 && std::string(argv[3]) == "lazy";
  if (argc != (lazy ? 4 : 3)) fail("usage: launch_in_stream BUNDLE cuda|hip [lazy]");
  run(argv[1], argv[2], lazy);
  std::printf("outputs are equal\n");
}
