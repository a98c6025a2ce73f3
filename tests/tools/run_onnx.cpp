// Runs the ONNX backend tests' cases through compiled kernels:
//
//   run_onnx [--cover greedy|single] [--jobs N] [--objects DIR] [--target NAME] DIR
//
// DIR/cases.txt lists the cases, which are folders of DIR (onnx_case.h describes them). Prints one line per case:
//
//   NAME<tab>ok<tab>VARIANT<tab>KERNELS      its outputs are written
//   NAME<tab>failed<tab>MESSAGE              "import: ...", "compile: ...", ...
//   NAME<tab>crashed<tab>MESSAGE             it crashed its process, or took too long
//
// All cases are prepared in one child process, and their kernels are compiled together. Each case runs in its own
// child. --objects keeps compiled kernels in DIR for the next run.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <new>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "compiler/cover/cover.h"
#include "tests/tools/onnx_case.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl::testing {
namespace {

constexpr unsigned kPrepareSeconds = 60, kRunSeconds = 120;
constexpr size_t kPart = 192;  // number of kernels that are compiled together

absl::StatusOr<Cover> greedy(const Graph& graph, const Machine& machine) {
  return cover_greedy(graph, machine);
}

absl::StatusOr<Cover> single(const Graph& graph, const Machine& machine) {
  return cover_one_per_op(graph, machine);
}

struct Settings {
  std::string folder, objects;
  CoverFunction cover = greedy;
  int jobs = 2;
  std::string target;
};

// Lies in memory shared by two processes. The child that prepares the cases writes the number of the current case; if
// the child crashes, the parent reads which case is to blame.
struct Progress {
  std::atomic<int> preparing{-1};
};

struct Reports {
  void add(const std::string& name, std::string_view state, const std::string& message) {
    std::cout << name << "\t" << state << "\t" << absl::StrReplaceAll(message, {{"\t", " "}, {"\n", " | "}}) << "\n";
  }
};

std::string words_of(int status) {
  if (!WIFSIGNALED(status)) return cat("exited with status ", WEXITSTATUS(status));
  return WTERMSIG(status) == SIGALRM ? "took too long" : cat("killed by ", strsignal(WTERMSIG(status)));
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Returns the path of every kernel's object. The path is empty if the kernel does not compile; `messages` then has the
// reason.
absl::StatusOr<std::vector<std::string>> compile_all(const Kernels& kernels, const Settings& settings,
                                                     std::map<int, std::string>& messages) {
  std::map<std::string, std::string> known;
  const std::string index = settings.objects + "/index.txt";
  for (const std::string& line : lines_of(index)) {
    const std::string path = line.substr(line.find('\t') + 1);
    if (std::filesystem::exists(path)) known[line.substr(0, line.find('\t'))] = path;
  }
  std::vector<std::string> objects(kernels.all().size());
  std::vector<Candidate> fresh;
  for (const Candidate& candidate : kernels.all()) {
    const auto at = known.find(candidate.source.entry);
    if (at != known.end()) {
      objects[static_cast<size_t>(candidate.trial)] = at->second;
    } else {
      fresh.push_back(candidate);
    }
  }
  CompileOptions options;
  for (int run = 0; options.folder.empty() || std::filesystem::exists(options.folder); ++run)
    options.folder = cat(settings.objects, "/run", run);
  std::filesystem::create_directories(options.folder);
  options.jobs = settings.jobs;
  options.unit = 24;
  options.deadline_ns = 300'000'000'000;
  std::ofstream out(index, std::ios::app);
  double seconds = 0;
  // Compiles the kernels in parts, so that an interrupted run leaves objects for the next one.
  for (size_t begin = 0; begin < fresh.size(); begin += kPart) {
    const std::vector<Candidate> part(
        fresh.begin() + static_cast<std::ptrdiff_t>(begin),
        fresh.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kPart, fresh.size())));
    const std::string folder = options.folder;
    append(&options.folder, "/", begin);
    std::filesystem::create_directories(options.folder);
    WL_ASSIGN_OR_RETURN(const auto compiled, compile_cpu(part, options));
    options.folder = folder;
    for (size_t i = 0; i < part.size(); ++i) {
      seconds += compiled[i].seconds;
      if (compiled[i].outcome != Outcome::kCorrect) {
        messages[static_cast<int>(part[i].trial)] = compiled[i].message;
        continue;
      }
      objects[static_cast<size_t>(part[i].trial)] = compiled[i].object;
      out << part[i].source.entry << "\t" << compiled[i].object << "\n";
    }
    out.flush();
  }
  std::fprintf(stderr, "%zu kernels, %zu of them compiled in %.1f s of compiler time\n", objects.size(), fresh.size(),
               seconds);
  return objects;
}

std::string run_in_child(const OnnxCase& the_case, const Kernels& kernels, const std::vector<std::string>& objects,
                         bool& crashed) {
  const std::string note = the_case.folder + "/error.txt";
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    alarm(kRunSeconds);
    const auto status = run_case(the_case, kernels, objects);
    if (!status.ok()) std::ofstream(note) << status.message();
    std::_Exit(status.ok() ? 0 : 3);
  }
  const int status = wait_for(child);
  crashed = !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 3);
  if (crashed) return cat("run: ", words_of(status));
  if (WEXITSTATUS(status) == 0) return "";
  const auto lines = lines_of(note);
  return lines.empty() ? "run: no message" : lines[0];
}

// Prepares, compiles, runs and reports all cases except those in `crashed`.
int do_cases(const std::vector<std::string>& names, const std::map<int, std::string>& crashed, const Settings& settings,
             const Machine& machine, Progress& progress) {
  Reports reports;
  Kernels kernels;
  std::vector<absl::StatusOr<OnnxCase>> cases;
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    cases.push_back(absl::UnknownError(""));
    if (crashed.contains(i)) continue;
    progress.preparing = i;
    alarm(kPrepareSeconds);
    cases.back() =
        prepare_case(cat(settings.folder, "/", names[static_cast<size_t>(i)]), settings.cover, machine, kernels);
  }
  alarm(0);
  progress.preparing = -1;
  std::map<int, std::string> messages;
  const auto objects = compile_all(kernels, settings, messages);
  if (!objects.ok()) {
    std::fprintf(stderr, "run_onnx: %s\n", std::string(objects.status().message()).c_str());
    return 1;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (const auto dead = crashed.find(static_cast<int>(i)); dead != crashed.end()) {
      reports.add(names[i], "crashed", dead->second);
      continue;
    }
    if (!cases[i].ok()) {
      reports.add(names[i], "failed", std::string(cases[i].status().message()));
      continue;
    }
    std::string message;
    for (const OnnxCase::Step& step : cases[i]->steps)
      if (const auto at = messages.find(step.kernel); at != messages.end()) message = cat("compile: ", at->second);
    bool died = false;
    if (message.empty()) message = run_in_child(*cases[i], kernels, *objects, died);
    if (message.empty()) {
      reports.add(names[i], "ok", cat(cases[i]->variant, " ", cases[i]->steps.size()));
    } else {
      reports.add(names[i], died ? "crashed" : "failed", message);
    }
  }
  std::cout.flush();
  return 0;
}

int run(const Settings& settings) {
  Device device = describe_cpu();
  if (!settings.target.empty()) device.target = settings.target;
  device.threads = 2;
  const auto machine = machine_of(device);
  if (!machine.ok()) {
    std::fprintf(stderr, "run_onnx: %s\n", std::string(machine.status().message()).c_str());
    return 1;
  }
  const std::vector<std::string> names = lines_of(settings.folder + "/cases.txt");
  void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto* progress = new (shared) Progress();
  std::map<int, std::string> crashed;
  for (;;) {
    std::cout.flush();
    const pid_t child = fork();
    if (child == 0) std::_Exit(do_cases(names, crashed, settings, *machine, *progress));
    const int status = wait_for(child);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (progress->preparing < 0) {
      std::fprintf(stderr, "run_onnx: %s\n", words_of(status).c_str());
      return 1;
    }
    crashed[progress->preparing] = cat("prepare: ", words_of(status));
  }
}

std::optional<Settings> parse(int argc, char** argv) {
  Settings settings;
  int i = 1;
  for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
    const std::string_view option = argv[i], value = argv[i + 1];
    if (option == "--cover" && (value == "greedy" || value == "single")) {
      settings.cover = value == "greedy" ? greedy : single;
    } else if (option == "--objects") {
      settings.objects = value;
    } else if (option == "--target") {
      settings.target = value;
    } else if (option != "--jobs" || !absl::SimpleAtoi(argv[i + 1], &settings.jobs)) {
      return std::nullopt;
    }
  }
  if (i + 1 != argc) return std::nullopt;
  settings.folder = argv[i];
  if (settings.objects.empty()) settings.objects = settings.folder + "/objects";
  return settings;
}

}  // namespace
}  // namespace wl::testing

int main(int argc, char** argv) {
  const auto settings = wl::testing::parse(argc, argv);
  if (!settings) {
    std::fprintf(stderr, "usage: run_onnx [--cover greedy|single] [--jobs N] [--objects DIR] [--target NAME] DIR\n");
    return 1;
  }
  return wl::testing::run(*settings);
}
