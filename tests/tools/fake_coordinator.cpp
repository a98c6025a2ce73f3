// A coordinator with a simulated compiler in a process of its own, so that tests can kill it. It prints "ready" when it
// answers calls.
#include <signal.h>

#include <cstdio>
#include <cstdlib>

#include "proto/log.h"
#include "tests/server/fakes.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: fake_coordinator STORE ADDRESS LEASE_SECONDS\n");
    return 1;
  }
  wl::open_log("fake_coordinator", wl::LogFormat::kText);  // the log goes to stderr
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const wl::FakeCompiler compiler;
  wl::CoordinatorOptions options;
  options.store = argv[1];
  options.listen = argv[2];
  options.lease_s = std::strtod(argv[3], nullptr);
  options.compiler = &compiler;
  wl::Coordinator coordinator;
  if (const absl::Status status = coordinator.start(options); !status.ok()) {
    std::fprintf(stderr, "fake_coordinator: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  std::puts("ready");
  std::fflush(stdout);
  int number = 0;
  sigwait(&signals, &number);
  coordinator.stop();
  return 0;
}
