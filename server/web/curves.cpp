#include "server/web/curves.h"

#include <algorithm>

namespace wl {
namespace {

constexpr auto kCurveFresh = std::chrono::seconds(1), kReadAgain = std::chrono::seconds(60);
constexpr size_t kMostPoints = 1 << 18;  // most points in the cache, of all curves together; they take 6 MiB
constexpr int64_t kMostPointsOfCurve = 10'000;

}  // namespace

absl::StatusOr<std::shared_ptr<const TrialPoints>> Curves::of(int64_t search_id) {
  const Clock::time_point now = Clock::now();
  Curve curve;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = curves_.find(search_id); found != curves_.end()) curve = found->second;
  }
  if (curve.points != nullptr && now - curve.read < kCurveFresh) return curve.points;
  if (curve.points == nullptr || now - curve.begun > kReadAgain)
    curve = {.points = std::make_shared<TrialPoints>(), .begun = now, .read = now};
  // Searches may store the trials of several rounds in any order, so the points after the first missing number are read
  // from the store again.
  size_t whole = 0;
  while (whole < curve.points->size() && (*curve.points)[whole].trial == static_cast<int64_t>(whole)) ++whole;
  const auto from = static_cast<int64_t>(whole);
  WL_ASSIGN_OR_RETURN(const TrialPoints later, store_->trial_points(search_id, from, kMostPointsOfCurve - from));
  auto points = std::make_shared<TrialPoints>(curve.points->begin(), curve.points->begin() + from);
  points->insert(points->end(), later.begin(), later.end());
  curve.points = points;
  curve.read = now;
  const std::lock_guard lock(mutex_);
  Curve& kept = curves_[search_id];
  points_ += points->size() - (kept.points == nullptr ? 0 : kept.points->size());
  kept = curve;
  make_room();
  return curve.points;
}

void Curves::make_room() {
  while (points_ > kMostPoints && curves_.size() > 1) {
    const auto oldest = std::min_element(curves_.begin(), curves_.end(),
                                         [](const auto& a, const auto& b) { return a.second.read < b.second.read; });
    points_ -= oldest->second.points->size();
    curves_.erase(oldest);
  }
}

}  // namespace wl
