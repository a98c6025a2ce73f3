#include "tests/unit/emit/compiled.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "compiler/ir/text.h"
#include "runtime/runtime.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl::testing {
namespace {

constexpr int kThreads = 2;

// The label of the kernel that is running, for the message of report_fault().
const char* volatile running = "";

void report_fault(int signal) {
  const char* const parts[] = {"\nfault in a kernel: ", running, "\n"};
  for (const char* part : parts)
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  ::signal(signal, SIG_DFL);
  raise(signal);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Machine machine_named(std::string_view target) {
  Machine machine;
  machine.target = target_named(target).value();
  machine.units = 3;  // number of multiprocessors; so few that even small groups keep all of them busy
  machine.threads = kThreads;
  // the fewest elements that a part may have; so few that even small groups are divided into parts
  machine.part_elements = 16;
  static const Device* const kDevice = new Device(describe_cpu());
  for (const std::string& compiler : kDevice->compilers) {
    machine.gcc = machine.gcc || compiler == "gcc";
    machine.clang = machine.clang || compiler == "clang";
  }
  return machine;
}

std::vector<std::string> runnable_targets() {
  std::vector<std::string> out;
  for (const Target& row : targets())
    if (row.family == "cpu" && cpu_runs(row.name)) out.emplace_back(row.name);
  return out;
}

std::string difference_of_output(const BufferSpec& spec, const void* data, const std::vector<Value>& expected) {
  int64_t bad = 0;
  std::string first;
  for (int64_t i = 0; i < spec.elements(); ++i) {
    std::string message = difference(load_element(spec.dtype, data, i), expected[i]);
    if (message.empty() && is_float(spec.dtype) && is_poison(spec.dtype, data, i)) message = "not written";
    if (!message.empty() && bad++ == 0) first = cat("element ", i, ": ", message);
  }
  return bad == 0 ? "" : cat("output ", spec.name, ": ", bad, " of ", spec.elements(), " elements wrong; ", first);
}

absl::StatusOr<int> CompiledChecks::group(const Graph& graph, uint64_t seed) {
  Problem problem{graph, buffers_of(graph), {}, seed};
  WL_ASSIGN_OR_RETURN(problem.expected, evaluate_outputs(graph, generated_inputs(graph, seed)));
  problems_.push_back(std::move(problem));
  return static_cast<int>(problems_.size()) - 1;
}

void CompiledChecks::add(int group, Source source, std::string plan) {
  if (!seen_.emplace(std::pair(group, cat(source.compiler, source.entry)), kernels()).second) return;
  cases_.push_back({group, {kernels(), std::move(plan), std::move(source)}});
}

// Runs all kernels of one group on one set of buffers.
std::string CompiledChecks::run_group(int number, const std::vector<std::pair<const Case*, std::string>>& objects,
                                      std::vector<std::string>& wrong) {
  const Problem& problem = problems_[number];
  std::vector<Buffer> buffers;
  std::vector<void*> args;
  for (const BufferSpec& spec : problem.buffers) {
    auto buffer = Buffer::create(spec.bytes(), static_cast<int64_t>(buffers.size()) * 320 % 4096);
    if (!buffer.ok()) return buffer.status().ToString();
    if (!spec.output) {
      fill_range(spec.fill, spec.dtype, problem.seed, spec.stream, 0, spec.elements(), buffer->data());
      if (auto status = buffer->set_read_only(true); !status.ok()) return status.ToString();
    }
    args.push_back(buffer->data());
    buffers.push_back(std::move(*buffer));
  }
  Pool pool(kThreads, false);
  const auto check = [&](const Source& source, const std::string& path) -> std::string {
    auto object = SharedObject::open(path);
    if (!object.ok()) return object.status().ToString();
    auto symbol = object->symbol(source.entry);
    if (!symbol.ok()) return symbol.status().ToString();
    if (auto status = pool.reserve_scratch(source.scratch_bytes); !status.ok()) return status.ToString();
    if (auto status = pool.reserve_work(source.work_bytes); !status.ok()) return status.ToString();
    std::vector<void*> all = args;
    all.push_back(pool.workspace());
    for (size_t b = 0; b < buffers.size(); ++b)
      if (problem.buffers[b].output) poison(problem.buffers[b].dtype, buffers[b].data(), problem.buffers[b].elements());
    pool.spoil_scratch();
    pool.launch({reinterpret_cast<BlockFunction>(*symbol), source.grid, kThreads, source.scratch_bytes, source.passes},
                all.data());
    size_t output = 0;
    for (size_t b = 0; b < buffers.size(); ++b) {
      const BufferSpec& spec = problem.buffers[b];
      if (auto status = buffers[b].check_red_zones(); !status.ok()) return cat(spec.name, ": ", status.ToString());
      if (!spec.output) continue;
      const std::string wrong_output = difference_of_output(spec, buffers[b].data(), problem.expected[output++]);
      if (!wrong_output.empty()) return wrong_output;
    }
    return "";
  };
  for (const auto& [one, path] : objects) {
    const std::string label =
        cat(one->candidate.plan, "\n", one->candidate.source.compiler, " ", path, "\n", print(problem.graph));
    running = label.c_str();
    const std::string message = check(one->candidate.source, path);
    running = "";
    if (!message.empty()) wrong.push_back(cat(message, "\n", label, one->candidate.source.text));
  }
  return "";
}

std::vector<std::string> CompiledChecks::run() {
  const std::string folder = ::testing::TempDir() + "/" + folder_ + cat(".", getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  CompileOptions options;
  options.folder = folder;
  options.unit = 40;
  options.deadline_ns = 300'000'000'000;
  std::vector<Candidate> candidates;
  for (const Case& one : cases_) candidates.push_back(one.candidate);
  const auto start = std::chrono::steady_clock::now();
  const auto compiled = compile_cpu(candidates, options);
  if (!compiled.ok()) return {compiled.status().ToString()};
  const double compiling = seconds_since(start);

  std::vector<std::string> wrong;
  std::map<int, std::vector<std::pair<const Case*, std::string>>> by_problem;
  for (size_t i = 0; i < cases_.size(); ++i) {
    const Compiled& one = (*compiled)[i];
    if (one.outcome == Outcome::kCorrect) {
      by_problem[cases_[i].problem].emplace_back(&cases_[i], one.object);
    } else {
      wrong.push_back(cat("does not compile: ", one.message, "\n", cases_[i].candidate.plan, "\n",
                          print(problems_[cases_[i].problem].graph), cases_[i].candidate.source.text));
    }
  }
  const auto old_segv = ::signal(SIGSEGV, report_fault);
  const auto old_ill = ::signal(SIGILL, report_fault);
  // the simulated GPU calls abort() when it finds an error of a kernel; report_fault() then names the kernel
  const auto old_abort = ::signal(SIGABRT, report_fault);
  const auto middle = std::chrono::steady_clock::now();
  for (const auto& [problem, objects] : by_problem) {
    const std::string message = run_group(problem, objects, wrong);
    if (!message.empty()) wrong.push_back(message);
  }
  std::printf("%d kernels compiled in %.1f s and run in %.1f s\n", kernels(), compiling, seconds_since(middle));
  ::signal(SIGSEGV, old_segv);
  ::signal(SIGILL, old_ill);
  ::signal(SIGABRT, old_abort);
  if (wrong.empty()) std::filesystem::remove_all(folder);
  return wrong;
}

void CompiledChecks::expect_right() {
  const std::vector<std::string> wrong = run();
  EXPECT_EQ(wrong.size(), 0u);
  for (size_t i = 0; i < wrong.size() && i < 5; ++i) ADD_FAILURE() << wrong[i];
}

}  // namespace wl::testing
