// The composition root of `warploom`, and the one place where the three processes become one: without --server a
// coordinator and a worker live in this process and the client talks to them over an in-process channel, through the
// same services as to a fleet.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "client/cli.h"
#include "client/files.h"
#include "server/coordinator.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"
#include "worker/agent.h"
#include "worker/drivers/cpu.h"
#include "worker/drivers/cpu_tables.h"
#include "worker/measure.h"

namespace {

namespace fs = std::filesystem;

class ThisMachine final : public wl::Local {
 public:
  ~ThisMachine() override {
    if (worker_.joinable()) {
      worker_.request_stop();
      worker_.join();
    }
  }

  absl::StatusOr<std::shared_ptr<grpc::Channel>> open(const std::string& store) override {
    wl::CoordinatorOptions options;
    options.store = store;
    options.share_machine = true;
    WL_RETURN_IF_ERROR(coordinator_.start(options));
    channel_ = coordinator_.in_process_channel();
    return channel_;
  }

  const wl::Device& device() override {
    if (!device_) device_ = wl::describe_device();
    return *device_;
  }

  absl::Status start_worker() override {
    if (worker_.joinable()) return absl::OkStatus();
    std::error_code error;
    fs::path self = fs::read_symlink("/proc/self/exe", error);
    std::string runner = (self.parent_path() / "warploom-runner").string();
    if (error || ::access(runner.c_str(), X_OK) != 0) {
      return absl::UnavailableError(
          wl::cat("no worker: ", runner, " is missing; it belongs beside warploom, build or install it there"));
    }
    if (device().compilers.empty()) {
      return absl::UnavailableError("no worker: neither g++ nor clang++ is on PATH; install one: apt-get install g++");
    }
    wl::AgentOptions options;
    options.name = "embedded";  // the store has one coordinator at a time, so the name is free
    options.devices = {device()};
    options.wait_s = 2;
    options.measure.runner = runner;
    options.measure.work_dir = fs::temp_directory_path().string();
    worker_ = std::jthread([channel = channel_, options](std::stop_token stop) {
      if (absl::Status status = wl::run_agent(channel, options, stop); !status.ok()) {
        std::fprintf(stderr, "warploom: worker: %s\n", std::string(status.message()).c_str());
      }
    });
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> assemble(const wl::Source& source) override;

  std::vector<TargetRow> targets() override {
    std::vector<TargetRow> rows;
    for (const wl::CpuTarget& row : wl::cpu_targets()) rows.push_back({row.name, row.runs_here()});
    return rows;
  }

 private:
  wl::Coordinator coordinator_;
  std::shared_ptr<grpc::Channel> channel_;
  std::optional<wl::Device> device_;
  std::jthread worker_;
};

absl::StatusOr<std::string> ThisMachine::assemble(const wl::Source& source) {
  WL_ASSIGN_OR_RETURN(wl::PendingFolder folder,
                      wl::PendingFolder::create((fs::temp_directory_path() / "warploom-asm").string()));
  wl::CompileOptions options;
  options.folder = folder.path();
  wl::Candidate candidate;
  candidate.source = source;
  WL_ASSIGN_OR_RETURN(std::vector<wl::Compiled> compiled, wl::compile_cpu({candidate}, options));
  if (compiled.size() != 1 || compiled[0].outcome != wl::Outcome::kCorrect) {
    return wl::invalid("the kernel does not compile: ", compiled.empty() ? "" : compiled[0].message);
  }
  // Disassembled rather than compiled to text, so that it is what runs.
  std::string command = wl::cat("objdump -d --no-show-raw-insn '", compiled[0].object, "' 2>&1");
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::InternalError("cannot start objdump");
  std::string text;
  char chunk[4096];
  while (size_t n = std::fread(chunk, 1, sizeof chunk, pipe)) text.append(chunk, n);
  if (::pclose(pipe) != 0) return wl::invalid("objdump (package binutils) cannot read the kernel: ", text);
  // All of it is disassembled; the kernel's own part is what was asked for.
  std::string title = wl::cat("<", source.entry, ">:\n");
  size_t begin = text.find(title), end = text.find("\nDisassembly of section", begin);
  if (begin == std::string::npos) return text;
  return wl::cat(source.entry, ":\n", text.substr(begin + title.size(), end - begin - title.size()), "\n");
}

}  // namespace

int main(int argc, char** argv) {
  // What the coordinator and the worker in here log would stand between the lines of the display and the results.
  spdlog::set_default_logger(spdlog::stderr_color_mt("warploom"));
  spdlog::set_level(spdlog::level::warn);
  ThisMachine machine;
  return wl::run_cli(argc, argv, machine);
}
