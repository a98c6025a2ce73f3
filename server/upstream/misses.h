// Remembers for some seconds the questions for which the upstream had no answer, so that they are not asked again in
// this time. The number of remembered questions is limited. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace wl {

class Misses {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kRemembered = std::chrono::seconds(3);
  static constexpr size_t kMost = 4096;  // most questions remembered: for a new one, the oldest is then forgotten

  // If the question is remembered, returns the problem with which it ended ("": the upstream does not have what was
  // asked for); otherwise nullopt.
  std::optional<std::string> find(const std::string& question, Clock::time_point now) {
    forget(now);
    const auto found = why_.find(question);
    return found == why_.end() ? std::nullopt : std::optional(found->second);
  }
  void put(const std::string& question, std::string why, Clock::time_point now) {
    forget(now);
    if (!why_.emplace(question, std::move(why)).second) return;
    order_.emplace_back(now + kRemembered, question);
    if (order_.size() > kMost) forget_first();
  }
  size_t size() const { return why_.size(); }

 private:
  void forget(Clock::time_point now) {
    while (!order_.empty() && order_.front().first <= now) forget_first();
  }
  void forget_first() {
    why_.erase(order_.front().second);
    order_.pop_front();
  }

  std::unordered_map<std::string, std::string> why_;  // for each remembered question, the problem with which it ended
  std::deque<std::pair<Clock::time_point, std::string>> order_;
};

}  // namespace wl
