#include "server/web/answers.h"

#include <iterator>
#include <utility>

namespace wl {
namespace {

constexpr auto kFresh = std::chrono::seconds(1);
constexpr size_t kMostKept = 128, kMostKeptBytes = 16 << 20;

}  // namespace

std::optional<KeptAnswer> RecentAnswers::find(const std::string& question) {
  const std::lock_guard lock(mutex_);
  drop_old();
  const auto found = by_question_.find(question);
  return found == by_question_.end() ? std::nullopt : std::optional(found->second->answer);
}

void RecentAnswers::put(const std::string& question, KeptAnswer answer) {
  const std::lock_guard lock(mutex_);
  drop_old();
  if (by_question_.contains(question) || entries_.size() >= kMostKept ||
      bytes_ + answer.body->size() > kMostKeptBytes) {
    return;
  }
  bytes_ += answer.body->size();
  entries_.push_back({question, std::move(answer), Clock::now()});
  by_question_[question] = std::prev(entries_.end());
}

void RecentAnswers::drop_old() {
  while (!entries_.empty() && Clock::now() - entries_.front().made > kFresh) {
    bytes_ -= entries_.front().answer.body->size();
    by_question_.erase(entries_.front().question);
    entries_.pop_front();
  }
}

}  // namespace wl
