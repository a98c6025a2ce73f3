#include "server/web/drawings.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/cover/explain.h"
#include "compiler/domain/group.h"
#include "compiler/ir/compose/compose.h"
#include "compiler/ir/text.h"
#include "server/jobs/job_plan.h"

namespace wl {
namespace {

constexpr size_t kMostDrawings = 8, kMostWaiting = 4;
constexpr size_t kMostPictureBytes = 6 << 20;
constexpr uint64_t kMostSteps = 10'000'000;  // most steps of Work to plan a job for a drawing (compiler/base/work.h)
constexpr auto kWait = std::chrono::milliseconds(300);
constexpr int kLowestPriority = 19;

// Reads the text of an explanation (compiler/cover/explain.h): lines about the whole cover, which begin with '#', and
// for each group a line "gN: ops" with indented lines below it.
void read_reasons(const std::string& text, Drawing* out) {
  Drawing::Kernel* kernel = nullptr;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    size_t number = 0;
    const std::pair<std::string, std::string> head = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (line.starts_with("# ")) {
      out->summary.emplace_back(line.substr(2));
    } else if (line.starts_with('g') && absl::SimpleAtoi(head.first.substr(1), &number) &&
               number < out->kernels.size()) {
      kernel = &out->kernels[number];
      kernel->ops = head.second;
    } else if (kernel != nullptr) {
      kernel->reasons.emplace_back(absl::StripAsciiWhitespace(line));
    }
  }
}

absl::Status take(CoverExplanation why, Drawing* drawing) {
  if (why.picture.size() + why.text.size() > kMostPictureBytes) {
    return absl::ResourceExhaustedError(
        "the picture of this graph is larger than a page shows; `warploom inspect --stage plan --why --svg FILE` makes "
        "a file of it");
  }
  read_reasons(why.text, drawing);
  drawing->picture = std::move(why.picture);
  return absl::OkStatus();
}

// Draws the cover that a job without a result begins with.
absl::StatusOr<Drawing> draw_planned(const JobRow& job, const Machine& machine, const Compiler& compiler, Work* work) {
  WL_ASSIGN_OR_RETURN(Graph graph, parse(job.graph));
  WL_ASSIGN_OR_RETURN(graph, compiler.laid_out(graph, job.options.cover, work));
  WL_ASSIGN_OR_RETURN(const std::vector<Cover> covers, compiler.covers(graph, machine, job.options.cover, {}, work));
  Drawing drawing;
  for (const Group& group : covers.front().groups) {
    const Graph part = extract(graph, group);
    drawing.kernels.push_back({.key = problem_key(part, *job.device, job.options), .name = describe_group(part)});
  }
  WL_ASSIGN_OR_RETURN(CoverExplanation why, explain(graph, covers.front(), machine, work));
  WL_RETURN_IF_ERROR(take(std::move(why), &drawing));
  return drawing;
}

// Draws the cover that a result launches. It may differ from the first cover, since it was chosen by measured times.
absl::StatusOr<Drawing> draw_result(const JobResult& result, const Machine& machine, Work* work) {
  WL_ASSIGN_OR_RETURN(const Composition whole, compose(result));
  Drawing drawing;
  for (const Step& step : result.steps) {
    const GroupResult& group = result.groups[step.group];
    WL_ASSIGN_OR_RETURN(const Graph part, parse(group.graph));
    drawing.kernels.push_back({.key = group.key, .name = describe_group(part)});
  }
  WL_ASSIGN_OR_RETURN(CoverExplanation why, explain(whole, machine, work));
  WL_RETURN_IF_ERROR(take(std::move(why), &drawing));
  return drawing;
}

absl::StatusOr<Drawing> draw(const JobRow& job, const Compiler& compiler) {
  Work work({}, kMostSteps);
  WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(*job.device));
  return job.result ? draw_result(*job.result, machine, &work) : draw_planned(job, machine, compiler, &work);
}

}  // namespace

Drawings::Drawings(const Compiler* compiler) : compiler_(compiler), pool_(1, kMostWaiting) {
  pool_.start();
  pool_.post([] { setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowestPriority); });
}

Drawings::~Drawings() {
  leaving_ = true;
}

std::list<Drawings::Entry>::const_iterator Drawings::at(int64_t job_id, bool of_result) const {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& one) { return one.job_id == job_id && one.of_result == of_result; });
}

std::shared_ptr<const Drawing> Drawings::find(int64_t job_id, bool of_result) const {
  const std::lock_guard lock(mutex_);
  const auto found = at(job_id, of_result);
  return found == entries_.end() ? nullptr : found->drawing;
}

absl::StatusOr<std::shared_ptr<const Drawing>> Drawings::make(const JobRow& job) {
  const bool of_result = job.result.has_value();
  std::unique_lock lock(mutex_);
  if (at(job.id, of_result) == entries_.end()) {
    const bool taken = pool_.post([this, job] {
      if (leaving_) return;
      absl::StatusOr<Drawing> drawing = draw(job, *compiler_);
      if (!drawing.ok()) drawing = Drawing{.status = drawing.status()};
      put(job.id, job.result.has_value(), *std::move(drawing));
    });
    if (!taken) return absl::UnavailableError("other graphs are being drawn; ask again");
    entries_.push_front({job.id, of_result, nullptr});
  }
  made_.wait_for(lock, kWait, [&] {
    const auto found = at(job.id, of_result);
    return found == entries_.end() || found->drawing != nullptr;
  });
  const auto found = at(job.id, of_result);
  return found == entries_.end() ? nullptr : found->drawing;
}

void Drawings::put(int64_t job_id, bool of_result, Drawing drawing) {
  const auto made = std::make_shared<const Drawing>(std::move(drawing));
  {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_)
      if (entry.job_id == job_id && entry.of_result == of_result) entry.drawing = made;
    while (entries_.size() > kMostDrawings && entries_.back().drawing != nullptr) entries_.pop_back();
  }
  made_.notify_all();
}

}  // namespace wl
