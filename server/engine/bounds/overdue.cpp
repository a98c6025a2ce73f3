#include "server/engine/bounds/overdue.h"

#include <algorithm>

#include "compiler/base/job.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr double kCompileSeconds = 60;  // time limit of one compilation, in seconds
constexpr double kSetupSeconds = 60;
// A candidate has four stages, each with the recipe's time limit: check, timing, second check, second timing.
constexpr int kStagesOfCandidate = 4;
constexpr double kTimesUsual = 4, kKnownIsShorter = 10;
constexpr size_t kRemembered = 32;
constexpr int kMostDoubled = 8;
constexpr auto kNoted = std::chrono::seconds(60), kForgotten = std::chrono::seconds(3600);

size_t parts_of(const Batch& batch) {
  return std::max<size_t>(1, batch.candidates.size() + batch.chains.size());
}

// Returns the kind of a batch. Usual times are kept for each kind: promotions and chains take longer than rounds.
std::string kind_of(const std::string& device, const Batch& batch) {
  return cat(device, batch.phase > 0 ? " promotion" : "", batch.chains.empty() ? "" : " chains");
}

const std::string kNameless;  // the entry of notes_ that stands for all workers whose principals are unknown

std::string whose(const std::string& worker) {
  return is_answered_for(worker) ? principal_of(worker) : worker;
}

}  // namespace

double Overdue::most_seconds(const Batch& batch) {
  const double each = kCompileSeconds + kStagesOfCandidate * static_cast<double>(batch.recipe.deadline_ns) / 1e9;
  return kSetupSeconds + each * static_cast<double>(parts_of(batch));
}

void Overdue::reported(const std::string& device, const Batch& batch, double seconds) {
  std::deque<double>& known = usual_[kind_of(device, batch)];
  known.push_back(seconds / static_cast<double>(parts_of(batch)));
  if (known.size() > kRemembered) known.pop_front();
}

double Overdue::patience(const std::string& device, const Batch& batch, int times) const {
  const auto known = usual_.find(kind_of(device, batch));
  double first = unknown_s_;
  if (known != usual_.end()) {
    const double each = *std::max_element(known->second.begin(), known->second.end());
    first = std::max(unknown_s_ / kKnownIsShorter, kTimesUsual * each * static_cast<double>(parts_of(batch)));
  }
  return std::min(most_seconds(batch), first * static_cast<double>(1 << std::min(times, kMostDoubled)));
}

void Overdue::noted(const std::string& worker, Clock::time_point now) {
  std::vector<std::string> all = {whose(worker)};
  if (!is_answered_for(worker)) all.push_back(kNameless);
  for (const std::string& who : all) {
    Note& note = notes_[who];
    note.until = now + kNoted * (1 << std::min(note.times, 5));
    ++note.times;
  }
}

bool Overdue::is_noted_as(const std::string& who, Clock::time_point now) const {
  const auto note = notes_.find(who);
  return note != notes_.end() && now < note->second.until;
}

bool Overdue::is_noted(const std::string& worker, Clock::time_point now) const {
  return is_noted_as(whose(worker), now);
}

std::vector<std::string> Overdue::last_of(const std::vector<std::string>& workers, Clock::time_point now) const {
  const bool known_others = std::any_of(workers.begin(), workers.end(), [&](const std::string& worker) {
    return is_answered_for(worker) && !is_noted(worker, now);
  });
  std::vector<std::string> last;
  for (const std::string& worker : workers)
    if (is_noted(worker, now) || (known_others && !is_answered_for(worker) && is_noted_as(kNameless, now)))
      last.push_back(worker);
  if (last.size() == workers.size()) last.clear();
  return last;
}

void Overdue::forget(Clock::time_point now) {
  std::erase_if(notes_, [&](const auto& entry) { return now - entry.second.until > kForgotten; });
}

}  // namespace wl
