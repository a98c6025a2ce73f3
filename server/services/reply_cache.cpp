#include "server/services/reply_cache.h"

#include <iterator>
#include <utility>

namespace wl {
namespace {

constexpr int64_t kEntryBytes = 256;  // approximate bytes of an entry without its question, key and answer

}  // namespace

int64_t ReplyCache::Entry::bytes() const {
  return kEntryBytes + static_cast<int64_t>(2 * (question.size() + key.size()) + answer.size());
}

std::optional<grpc::Slice> ReplyCache::find(const std::string& question) {
  const std::lock_guard lock(mutex_);
  const auto found = by_question_.find(question);
  if (found == by_question_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->answer;
}

uint64_t ReplyCache::now() const {
  const std::lock_guard lock(mutex_);
  return drops_;
}

void ReplyCache::put(const std::string& question, const std::string& key, grpc::Slice answer, uint64_t asked) {
  const std::lock_guard lock(mutex_);
  if (drops_ != asked || by_question_.contains(question)) return;
  entries_.push_front({question, key, std::move(answer)});
  by_question_.emplace(question, entries_.begin());
  by_key_.emplace(key, entries_.begin());
  bytes_ += entries_.front().bytes();
  while (bytes_ > max_bytes_) erase(std::prev(entries_.end()));
}

void ReplyCache::drop(const std::string& key) {
  const std::lock_guard lock(mutex_);
  ++drops_;
  for (auto at = by_key_.find(key); at != by_key_.end(); at = by_key_.find(key)) erase(at->second);
}

void ReplyCache::clear() {
  const std::lock_guard lock(mutex_);
  ++drops_;
  while (!entries_.empty()) erase(entries_.begin());
}

void ReplyCache::erase(Entries::iterator entry) {
  bytes_ -= entry->bytes();
  by_question_.erase(entry->question);
  const auto [first, last] = by_key_.equal_range(entry->key);
  for (auto at = first; at != last; ++at) {
    if (at->second != entry) continue;
    by_key_.erase(at);
    break;
  }
  entries_.erase(entry);
}

}  // namespace wl
