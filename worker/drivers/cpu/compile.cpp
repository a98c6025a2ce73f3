#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/base/libraries.h"
#include "compiler/base/status.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/cpu/tables.h"
#include "worker/drivers/files.h"
#include "worker/drivers/process.h"
#include "worker/drivers/system_calls.h"

namespace wl {
namespace {

constexpr int kMessageLines = 6;

// The hard resource limits of each compiler process in a sandbox, besides the limit of CPU time.
constexpr const char* kLimits[] = {"/usr/bin/prlimit",          "--as=4294967296:4294967296",
                                   "--fsize=67108864:67108864", "--nofile=256:256",
                                   "--nproc=256:256",           "--core=0:0"};

// A prefix of the script of a compiler outside a sandbox. A background process waits on descriptor 3, a pipe that is
// closed when this process ends, and then kills the compiler's process group. A compiler in a sandbox ends with this
// process anyway.
constexpr const char* kEndWithUs = "(read -r _ <&3; kill -9 0) >/dev/null 2>&1 & exec 3<&-; ";

// The candidates of one translation unit. `members` are indices into the batch; of candidates with equal texts, only
// the first is a member.
struct Unit {
  const CpuTarget* target = nullptr;
  const CpuCompiler* compiler = nullptr;
  std::string_view prelude;
  std::vector<size_t> members;
};

struct UnitResult {
  Outcome outcome = Outcome::kRejected;
  std::string message;
  double seconds = 0;
};

// Returns from a compiler's output the first error with the lines after it or, if there is no error, the first lines.
std::string first_lines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  const auto error = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StrContains(line, "error") || absl::StrContains(line, "undefined");
  });
  if (error != lines.end()) lines.erase(lines.begin(), error);
  lines.resize(std::min<size_t>(lines.size(), kMessageLines));
  for (std::string& line : lines) line.resize(std::min<size_t>(line.size(), 300));
  return absl::StrJoin(lines, "\n");
}

class Compilation {
 public:
  Compilation(const std::vector<Candidate>& candidates, const CompileOptions& options)
      : candidates_(candidates), options_(options), results_(candidates.size()), twin_(candidates.size()) {}

  absl::StatusOr<std::vector<Compiled>> run() {
    make_units();
    WL_RETURN_IF_ERROR(compile_all());
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (twin_[i] == i) continue;
      results_[i] = results_[twin_[i]];
      results_[i].seconds = 0;
    }
    return std::move(results_);
  }

 private:
  void make_units() {
    std::map<std::string_view, const CpuCompiler*> usable;
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::vector<size_t>> groups;
    std::map<std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>, size_t> seen;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Source& source = candidates_[i].source;
      twin_[i] = i;
      if (!cpu_runs(source.target)) {
        reject(i, absl::StrCat("this machine cannot run code for '", source.target, "'"));
        continue;
      }
      if (!source.library.empty() && library_in(usable_library()) != source.library) {
        reject(i, absl::StrCat("this machine has no library '", source.library, "'"));
        continue;
      }
      if (!usable.contains(source.compiler)) usable[source.compiler] = usable_compiler(source.compiler);
      if (!usable[source.compiler]) {
        reject(i, absl::StrCat("this machine has no compiler '", source.compiler, "'"));
        continue;
      }
      const auto [at, fresh] = seen.try_emplace({source.target, source.compiler, source.prelude, source.text}, i);
      twin_[i] = at->second;
      if (fresh) groups[{source.target, source.compiler, source.prelude}].push_back(i);
    }
    for (const auto& [key, members] : groups) {
      const size_t most = static_cast<size_t>(std::max(1, options_.unit));
      // One process compiles one translation unit. Candidates are therefore divided into at least as many units as
      // processes may run at a time (options_.jobs), if there are enough candidates.
      const size_t wanted = std::max((members.size() + most - 1) / most,
                                     std::min(members.size(), static_cast<size_t>(most == 1 ? 1 : options_.jobs)));
      for (std::vector<size_t>& share : shares_of(members, wanted, most))
        queue_.push_back(
            {target_named(std::get<0>(key)), usable[std::get<1>(key)], std::get<2>(key), std::move(share)});
    }
    // Threads take translation units from the back of the queue. The units with the longest texts are at the back and
    // are compiled first, so that no core has to wait long for the last unit.
    std::stable_sort(queue_.begin(), queue_.end(),
                     [&](const Unit& a, const Unit& b) { return text_bytes(a.members) < text_bytes(b.members); });
  }

  size_t text_bytes(const std::vector<size_t>& members) const {
    size_t bytes = 0;
    for (size_t member : members) bytes += candidates_[member].source.text.size();
    return bytes;
  }

  // Distributes the candidates `members` over `n` translation units of about equal text length, each with at most
  // `most` candidates.
  std::vector<std::vector<size_t>> shares_of(std::vector<size_t> members, size_t n, size_t most) const {
    std::stable_sort(members.begin(), members.end(), [&](size_t a, size_t b) {
      return candidates_[a].source.text.size() > candidates_[b].source.text.size();
    });
    std::vector<std::vector<size_t>> shares(n);
    for (size_t member : members)
      std::min_element(shares.begin(), shares.end(), [&](const auto& a, const auto& b) {
        return std::tuple(a.size() >= most, text_bytes(a), a.size()) <
               std::tuple(b.size() >= most, text_bytes(b), b.size());
      })->push_back(member);
    return shares;
  }

  static const CpuTarget* target_named(std::string_view name) {
    for (const CpuTarget& row : cpu_targets())
      if (row.name == name) return &row;
    return nullptr;
  }
  static const CpuCompiler* usable_compiler(std::string_view name) {
    for (const CpuCompiler& row : cpu_compilers())
      if (row.name == name && program_runs(row.program)) return &row;
    return nullptr;
  }

  void reject(size_t i, std::string message) { results_[i] = {Outcome::kRejected, std::move(message), "", 0}; }

  // Compiles all translation units in the queue. Each thread takes units from the back of the queue. If a unit of
  // several candidates fails, each candidate is put back as a unit of its own.
  absl::Status compile_all() {
    for (const Unit& unit : queue_) left_ += unit.members.size();
    std::vector<std::thread> threads;
    const size_t jobs = std::min<size_t>(static_cast<size_t>(std::max(1, options_.jobs)), std::max<size_t>(1, left_));
    for (size_t j = 0; j < jobs; ++j) threads.emplace_back([this] { take_units(); });
    {
      std::unique_lock lock(mutex_);
      const size_t total = left_;
      while (left_ > 0 && running_ + queue_.size() > 0 && failure_.ok()) {
        changed_.wait_for(lock, std::chrono::milliseconds(100));
        const size_t done = total - left_;
        lock.unlock();
        if (options_.progress) options_.progress(static_cast<int>(done));
        lock.lock();
      }
    }
    for (std::thread& thread : threads) thread.join();
    return failure_;
  }

  bool stopped() const { return options_.cancel && options_.cancel->load(std::memory_order_relaxed); }

  void take_units() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !queue_.empty() || running_ == 0; });
      if (queue_.empty() || stopped() || !failure_.ok()) break;
      const Unit unit = std::move(queue_.back());
      queue_.pop_back();
      ++running_;
      const int number = ++number_;
      lock.unlock();
      const std::string folder = absl::StrCat(options_.folder, "/unit", number);
      absl::StatusOr<UnitResult> result = compile_unit(unit, folder);
      lock.lock();
      --running_;
      if (!result.ok()) {
        failure_.Update(result.status());
      } else if (result->outcome == Outcome::kCorrect || unit.members.size() == 1) {
        const double share = result->seconds / static_cast<double>(unit.members.size());
        for (size_t member : unit.members)
          results_[member] = {result->outcome, result->message, absl::StrCat(folder, "/", kUnitObject), share};
        left_ -= unit.members.size();
      } else if (!stopped()) {
        for (size_t member : unit.members) queue_.push_back({unit.target, unit.compiler, unit.prelude, {member}});
      }
      changed_.notify_all();
    }
    queue_.clear();
    changed_.notify_all();
  }

  // Writes the unit's text into a folder of its own, so that no compiler sees the text or object of another unit. A
  // kernel that is compiled alone has the same file name in every batch, since that name may become part of the object.
  absl::Status write_unit(const Unit& unit, const std::string& folder) const {
    std::error_code error;
    if (!std::filesystem::create_directory(folder, error))
      return absl::UnavailableError(absl::StrCat("cannot make the folder ", folder, ": ", error.message()));
    std::vector<std::string> markers;
    for (size_t member : unit.members)
      markers.push_back(unit.members.size() == 1
                            ? "\n#line 1 \"kernel\"\n"
                            : absl::StrCat("\n#line 1 \"trial", candidates_[member].trial, "\"\n"));
    std::vector<std::string_view> parts = {"#line 1 \"prelude\"\n", unit.prelude};
    for (size_t m = 0; m < unit.members.size(); ++m) {
      parts.push_back(markers[m]);
      parts.push_back(candidates_[unit.members[m]].source.text);
    }
    parts.push_back("\n");
    return write_parts(absl::StrCat(folder, "/", kUnitText), parts);
  }

  // Starts the compiler on the text in the folder. The environment is minimal, since some variables change the code
  // that compilers generate.
  absl::StatusOr<Process> start(const Unit& unit, const std::string& folder) const {
    Process::Options options;
    const bool boxed = options_.sandbox == Sandbox::kBubblewrap;
    const char* path = std::getenv("PATH");
    options.folder = folder;
    options.environment = {absl::StrCat("PATH=", path ? path : "/usr/local/bin:/usr/bin:/bin"),
                           absl::StrCat("TMPDIR=", boxed ? "/tmp" : folder), "LC_ALL=C"};
    if (boxed) {
      options.arguments.assign(std::begin(kLimits), std::end(kLimits));
      options.arguments.push_back(absl::StrCat("--cpu=", options_.deadline_ns / 1'000'000'000 + 1));
    }
    if (!boxed) options.pass_fd = life_of_this_process();
    for (const std::string& argument :
         {std::string("/bin/sh"), std::string("-c"),
          absl::StrCat(options.pass_fd >= 0 ? kEndWithUs : "", build_script(*unit.compiler, *unit.target))})
      options.arguments.push_back(argument);
    if (!boxed) return Process::start(options);
    WL_ASSIGN_OR_RETURN(const Descriptor filter, filter_program(Permitted::kCompiler));
    options.pass_fd = filter.get();
    Box box;
    box.work = folder;
    box.filter_fd = 3;
    put_in(box, options);
    return Process::start(options);
  }

  absl::StatusOr<UnitResult> compile_unit(const Unit& unit, const std::string& folder) {
    WL_RETURN_IF_ERROR(write_unit(unit, folder));
    const int64_t begin = monotonic_ns();
    WL_ASSIGN_OR_RETURN(Process process, start(unit, folder));
    Drain drain(16384);
    absl::StatusOr<Exit> exit = absl::DeadlineExceededError("");
    // Waits in short intervals, so that a cancel is noticed.
    while (absl::IsDeadlineExceeded(exit.status()) && !stopped() && monotonic_ns() - begin < options_.deadline_ns)
      exit = process.wait(std::min(begin + options_.deadline_ns, monotonic_ns() + 100'000'000), drain);
    UnitResult result;
    result.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
    std::error_code error;
    const auto object = std::filesystem::symlink_status(absl::StrCat(folder, "/", kUnitObject), error);
    if (exit.ok() && !exit->signalled && exit->code == 0 && std::filesystem::is_regular_file(object)) {
      result.outcome = Outcome::kCorrect;
      return result;
    }
    if (absl::IsDeadlineExceeded(exit.status())) {
      WL_RETURN_IF_ERROR(process.kill().status());
      result.outcome = stopped() ? Outcome::kRejected : Outcome::kTimeout;
      result.message = stopped() ? "cancelled" : absl::StrFormat("compiling took longer than %.1f s", result.seconds);
      return result;
    }
    WL_RETURN_IF_ERROR(exit.status());
    result.outcome = Outcome::kCompileError;
    result.message = first_lines(drain.text());
    if (result.message.empty()) result.message = absl::StrCat("the compiler ", describe(*exit));
    return result;
  }

  const std::vector<Candidate>& candidates_;
  const CompileOptions& options_;
  std::vector<Compiled> results_;
  // For each candidate, the index of the first candidate with the same source; both get the result of compiling that
  // one.
  std::vector<size_t> twin_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Unit> queue_;
  size_t left_ = 0, running_ = 0;
  int number_ = 0;
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<std::vector<Compiled>> compile_cpu(const std::vector<Candidate>& candidates,
                                                  const CompileOptions& options) {
  return Compilation(candidates, options).run();
}

}  // namespace wl
