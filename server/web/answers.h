// A cache that keeps the answers of the web pages for one second, by question and by what the caller may see, so that
// many open pages cost as much as one.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace wl {

struct KeptAnswer {
  std::shared_ptr<const std::string> body;
  std::string tag;
};

// All functions may be called from any thread.
class RecentAnswers {
 public:
  // Returns the answer to a question if the cache has one that is at most a second old.
  std::optional<KeptAnswer> find(const std::string& question);
  // Keeps an answer for a second, unless the cache is full.
  void put(const std::string& question, KeptAnswer answer);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string question;
    KeptAnswer answer;
    Clock::time_point made;
  };

  void drop_old();  // The caller must hold mutex_.

  std::mutex mutex_;          // guards the members declared below
  std::list<Entry> entries_;  // the cached answers, the oldest first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_question_;
  size_t bytes_ = 0;
};

}  // namespace wl
