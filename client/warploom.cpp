// The main program `warploom`, and the only file that joins client, coordinator and worker: without --server a
// coordinator and a worker run in this process (embedded mode), and the client calls them over an in-process channel,
// through the same services as those of a remote coordinator.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/str_join.h"
#include "client/cli/cli.h"
#include "client/cli/exit_code.h"
#include "client/cli/line/parse.h"
#include "client/cli/line/run_cli.h"
#include "client/program/files.h"
#include "client/remote/graph_file.h"
#include "client/remote/report.h"
#include "compiler/base/code.h"
#include "compiler/base/uncaught.h"
#include "compiler/model/rates.h"
#include "compiler/target/target.h"
#include "files/read.h"
#include "proto/log.h"
#include "runtime/gpu_device.h"
#include "server/coordinator.h"
#include "worker/agent.h"
#include "worker/compile.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/cpu/tables.h"
#include "worker/drivers/gpu/code.h"
#include "worker/drivers/gpu/code_judge.h"
#include "worker/measure.h"
#include "worker/private_folder.h"

namespace {

namespace fs = std::filesystem;

// How long this process waits for other processes that use the store, and how long it pauses between attempts to open
// the store.
constexpr std::chrono::hours kLongestTurn{1};
constexpr std::chrono::milliseconds kLook{50};

// Returns the path of warploom-runner in this program's folder; "" if it is missing.
std::string default_runner() {
  std::error_code error;
  const std::string runner = (fs::read_symlink("/proc/self/exe", error).parent_path() / "warploom-runner").string();
  return error || ::access(runner.c_str(), X_OK) != 0 ? "" : runner;
}

std::string family_of(const std::string& target) {
  return target.substr(0, target.find(':'));
}

class ThisMachine final : public wl::Local {
 public:
  ~ThisMachine() override { (void)end_worker(); }

  // Ends the worker. Returns the pause that it owes to the share of use_share(), after what it did last; without it,
  // commands one after the other would take more than their share.
  std::chrono::duration<double> end_worker() {
    if (worker_.joinable()) {
      worker_.request_stop();
      worker_.join();
    }
    return owed_;
  }

  absl::StatusOr<std::shared_ptr<grpc::Channel>> open(const std::string& store) override {
    wl::CoordinatorOptions options;
    options.store = store;
    options.share_machine = true;
    WL_RETURN_IF_ERROR(take_turn(options));
    channel_ = coordinator_->in_process_channel();
    return channel_;
  }

  const wl::Device& device() override {
    if (!device_) device_ = wl::describe_device(sandbox());
    return *device_;
  }

  absl::StatusOr<wl::Device> device_for(const std::string& target, bool must_run) override {
    WL_RETURN_IF_ERROR(wl::check_target(target));
    if (target != "cuda" && target != "hip" && !wl::is_gpu_name(target)) return device();
    for (const wl::Gpus::Gpu& gpu : found().found)
      if (gpu.device.target == target || family_of(gpu.device.target) == family_of(target)) return gpu.device;
    WL_ASSIGN_OR_RETURN(const wl::Target* row, wl::target_named(target));
    if (must_run) {
      return absl::UnavailableError(
          wl::cat("target ", target, ": this machine has no such device (", absl::StrJoin(found().missing, "; "),
                  "); --server names a coordinator whose fleet has one, --target sim:", family_of(target),
                  " runs the same kernels on simulated lanes, `warploom inspect --stage asm` judges their code"));
    }
    wl::Device nominal;
    nominal.target = target;
    nominal.name = "nominal";
    nominal.threads = row->gpu.units;
    nominal.l1_bytes = row->gpu.unit_shared;
    nominal.l2_bytes = row->gpu.l2_bytes;
    nominal.l3_bytes = 0;
    return nominal;
  }

  std::vector<int64_t> panels(const std::string& target, bool here) override {
    return wl::panels_for(target == "cpu" && here ? device().target : target);
  }

  absl::Status start_worker(bool rates) override {
    if (worker_.joinable()) return absl::OkStatus();
    const std::string runner = default_runner();
    if (runner.empty()) {
      return absl::UnavailableError(
          "no worker: warploom-runner is missing; build or install it in the folder of warploom");
    }
    if (device().compilers.empty() && found_.found.empty()) {
      return absl::UnavailableError("no worker: neither g++ nor clang++ is on PATH; install one: apt-get install g++");
    }
    wl::AgentOptions options;
    // All embedded workers have this one name. It is unambiguous, since a store has only one coordinator at a time.
    options.name = wl::kEmbeddedWorker;
    // The worker offers the CPU and, if device_for() was asked for a GPU, the GPUs that were found (found_).
    options.devices = {device()};
    for (const wl::Gpus::Gpu& gpu : found_.found) options.devices.push_back(gpu.device);
    options.measure.gpus = found_.found;
    options.wait_s = 2;
    // If one device's worker ends, all end, because the device of the job has no other worker.
    options.end_together = true;
    options.rates = rates;
    options.share = share_;
    // Several devices pause at the same time.
    options.owes = [this](std::chrono::duration<double> pause) {
      const std::lock_guard lock(owed_mutex_);
      owed_ = std::max(owed_, pause);
    };
    options.measure.runner = runner;
    options.measure.sandbox = sandbox();
    WL_ASSIGN_OR_RETURN(options.measure.work_dir, wl::temporary_folder());
    worker_ = std::jthread([this, channel = channel_, options](std::stop_token stop) {
      absl::Status status = wl::run_agent(channel, options, stop);
      if (status.ok()) return;
      error_ = absl::UnavailableError(wl::cat("the worker has ended: ", status.message()));
      ended_.request_stop();  // worker_error() reads error_ only after this request
    });
    return absl::OkStatus();
  }
  void use_share(double share) override { share_ = share; }
  std::stop_token worker_ended() const override { return ended_.get_token(); }
  absl::Status worker_error() const override { return ended_.stop_requested() ? error_ : absl::OkStatus(); }

  absl::StatusOr<std::string> assemble(const wl::Source& source) override;
  absl::StatusOr<std::string> build(const wl::Source& source) override;
  std::string compiler_for(const wl::Source& source) override { return wl::own_compiler(source); }
  absl::StatusOr<std::vector<std::string>> flags_of(const std::string& target) override {
    for (const wl::CpuTarget& row : wl::cpu_targets())
      if (row.name == target) return wl::code_flags(row);
    if (wl::is_gpu_name(target)) return wl::gpu_flags(target);
    return wl::invalid("no options of a compiler are known for the target ", target);
  }
  absl::StatusOr<wl::Limits> limits_of(const wl::Device& device) override {
    WL_ASSIGN_OR_RETURN(const wl::Machine machine, wl::machine_of(device));
    wl::Ceilings ceilings = wl::ceilings_of(machine);
    return wl::Limits{ceilings.gflops, std::move(ceilings.memories), /*measured=*/false};
  }

  std::vector<TargetRow> targets() override;

  Gpus gpus() override {
    Gpus out;
    for (const wl::Gpus::Gpu& gpu : found().found) out.found.emplace_back(gpu.name, gpu.device);
    out.missing = found().missing;
    return out;
  }

 private:
  // Returns how compilers and candidates are isolated: in a sandbox if the system has namespaces, else not at all. The
  // latter is acceptable, since the machine and the models belong to the user.
  wl::Sandbox sandbox() {
    const absl::StatusOr<std::string> folder = wl::temporary_folder();
    // Without a temporary folder nothing can be compiled, so nothing needs a sandbox.
    if (!folder.ok()) return wl::Sandbox::kNone;
    if (!sandbox_) sandbox_ = wl::sandbox_serves(*folder).ok() ? wl::Sandbox::kBubblewrap : wl::Sandbox::kNone;
    return *sandbox_;
  }

  // Returns the GPUs of this machine, which a child process finds at the first call.
  const wl::Gpus& found() {
    if (!asked_) found_ = wl::find_gpus(default_runner(), sandbox());
    asked_ = true;
    return found_;
  }

  // Starts the coordinator. Waits while other commands use the store, since those end by themselves.
  absl::Status take_turn(const wl::CoordinatorOptions& options);

  std::optional<wl::Coordinator> coordinator_;
  std::shared_ptr<grpc::Channel> channel_;
  std::optional<wl::Sandbox> sandbox_;
  std::optional<wl::Device> device_;
  bool asked_ = false;
  std::mutex owed_mutex_;
  std::chrono::duration<double> owed_{0};  // the longest pause that a device of the worker owed at its end
  double share_ = 0;                       // part of the time in which the worker may use the machine; 0: all of it
  wl::Gpus found_;
  absl::Status error_;      // the error with which the embedded worker ended; may be read once ended_ is stopped
  std::stop_source ended_;  // is stopped when the embedded worker has ended by itself
  std::jthread worker_;
};

// While it exists, a search in the background that uses the store gives way (client/python/warploom/torch/_cache.py):
// it looks whether anybody has locked the file STORE.wanted.
class Wanted {
 public:
  explicit Wanted(const std::string& store)
      : file_(::open((store + ".wanted").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ >= 0) (void)::flock(file_, LOCK_SH);
  }
  Wanted(const Wanted&) = delete;
  Wanted& operator=(const Wanted&) = delete;
  ~Wanted() {
    if (file_ >= 0) ::close(file_);
  }

 private:
  const int file_;  // negative: it cannot be opened, so nobody sees that this process waits
};

// Waits only while another command in embedded mode uses the store, since such a command ends by itself or with its
// parent: in_use_by() names only such processes. If a serving coordinator uses the store, returns the error at once.
absl::Status ThisMachine::take_turn(const wl::CoordinatorOptions& options) {
  const auto until = std::chrono::steady_clock::now() + kLongestTurn;
  std::unique_ptr<Wanted> wanted;
  for (bool said = false;; said = true) {
    coordinator_.emplace();
    const absl::Status started = coordinator_->start(options);
    const std::optional<std::string> holder = wl::in_use_by(started);
    if (!holder) return started;
    if (std::chrono::steady_clock::now() >= until) {
      return absl::UnavailableError(wl::cat("store ", options.store, ": process ", *holder, " has used it for ",
                                            kLongestTurn.count(), " h; end that process, or name another store"));
    }
    if (!said) {
      wanted = std::make_unique<Wanted>(options.store);
      std::fprintf(stderr, "store %s: process %s uses it now; waiting for its end (for at most %lld h)\n",
                   options.store.c_str(), holder->c_str(), static_cast<long long>(kLongestTurn.count()));
    }
    std::this_thread::sleep_for(kLook);
  }
}

std::vector<wl::Local::TargetRow> ThisMachine::targets() {
  std::vector<TargetRow> rows;
  const std::string compilers = absl::StrJoin(device().compilers, ", ");
  for (const wl::Target& target : wl::targets()) {
    TargetRow row{std::string(target.name), compilers, "", ""};
    std::vector<std::string> missing;
    if (wl::is_gpu_name(row.name)) {
      const std::string without = wl::gpu_compiler_missing(row.name);
      row.compilers = wl::gpu_compiler_version(row.name);
      if (!without.empty()) missing.push_back(without);
      for (const wl::Gpus::Gpu& gpu : found().found)
        if (gpu.device.target == row.name) row.runs_on = gpu.name;
      if (row.runs_on.empty()) missing.emplace_back("such a device");
    } else {
      if (compilers.empty()) missing.emplace_back("a compiler: apt-get install g++ (or clang)");
      row.runs_on = wl::cpu_runs(row.name) ? "yes" : "";
      if (row.runs_on.empty()) missing.emplace_back("a CPU with its instructions");
    }
    row.missing = absl::StrJoin(missing, "; ");
    rows.push_back(std::move(row));
  }
  return rows;
}

// Compiles a GPU kernel and returns the facts about its code, whether a worker would accept it, and its assembly text.
// Only NVIDIA's tools can disassemble NVIDIA's machine code, so PTX is shown instead.
absl::StatusOr<std::string> assemble_gpu(const wl::Source& source, const std::string& folder) {
  WL_ASSIGN_OR_RETURN(const wl::GpuUnit unit, wl::compile_gpu({&source, 1}, folder));
  WL_ASSIGN_OR_RETURN(const wl::Target* row, wl::target_named(source.target));
  const wl::CodeLimits limits = wl::code_limits(row->gpu);
  wl::CodeFacts code = unit.kernels[0];
  code.occupancy = wl::occupancy_of(code, limits, source.threads);
  const std::string why = wl::reject_reason(code, limits, source);
  const std::string& assembly = unit.kernels[0].assembly;
  return wl::cat("// ", wl::code_text(code), "\n// ", why.empty() ? "accepted" : wl::cat("rejected: ", why), "\n",
                 assembly.empty() ? "// widths of loads and stores are not known: nothing here disassembles the code\n"
                                  : assembly);
}

absl::StatusOr<std::string> ThisMachine::assemble(const wl::Source& source) {
  WL_ASSIGN_OR_RETURN(const std::string temporary, wl::temporary_folder());
  WL_ASSIGN_OR_RETURN(wl::PendingFolder folder, wl::PendingFolder::create(temporary + "/warploom-asm"));
  if (wl::is_gpu_name(source.target)) return assemble_gpu(source, folder.path());
  wl::CompileOptions options;
  options.folder = folder.path();
  wl::Candidate candidate;
  candidate.source = source;
  WL_ASSIGN_OR_RETURN(std::vector<wl::Compiled> compiled, wl::compile_cpu({candidate}, options));
  if (compiled.size() != 1 || compiled[0].outcome != wl::Outcome::kCorrect) {
    return wl::invalid("the kernel does not compile: ", compiled.empty() ? "" : compiled[0].message);
  }
  // The object is disassembled, instead of compiling the source to assembly, so that the output shows the code that
  // runs.
  std::string command = wl::cat("objdump -d --no-show-raw-insn '", compiled[0].object, "' 2>&1");
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::InternalError("cannot start objdump");
  std::string text;
  char chunk[4096];
  while (size_t n = std::fread(chunk, 1, sizeof chunk, pipe)) text.append(chunk, n);
  if (::pclose(pipe) != 0) return wl::invalid("objdump (package binutils) cannot read the kernel: ", text);
  // Of the whole object's text, only the kernel's own function is returned.
  std::string title = wl::cat("<", source.entry, ">:\n");
  size_t begin = text.find(title), end = text.find("\nDisassembly of section", begin);
  if (begin == std::string::npos) return text;
  return wl::cat(source.entry, ":\n", text.substr(begin + title.size(), end - begin - title.size()), "\n");
}

absl::StatusOr<std::string> ThisMachine::build(const wl::Source& source) {
  return wl::build_object(source, default_runner(), sandbox());
}

}  // namespace

int main(int argc, char** argv) {
  wl::explain_uncaught("warploom", wl::kExitInternal);
  auto options = wl::parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&options)) return *code;
  // The coordinator and the worker in this process log only warnings and errors, because other lines would mix with the
  // display.
  spdlog::set_level(spdlog::level::warn);
  wl::open_log("warploom", wl::LogFormat::kText);
  int code = wl::kExitInternal;
  std::chrono::duration<double> owed{0};
  {
    ThisMachine machine;
    code = wl::run_cli(std::get<wl::Options>(std::move(options)), machine);
    owed = machine.end_worker();
  }
  // The store is free for other commands by now.
  if (code == wl::kExitDone) std::this_thread::sleep_for(owed);
  return code;
}
