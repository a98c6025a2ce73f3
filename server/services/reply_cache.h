// A cache of serialized replies of the service KernelStore. It is limited in bytes and drops the least recently used
// reply first. Thread-safe.
#pragma once

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace wl {

class ReplyCache {
 public:
  explicit ReplyCache(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the answer to `question`, if the cache has one.
  std::optional<grpc::Slice> find(const std::string& question);
  // Returns how often an answer was dropped so far, a number that put() needs. It must be called before the answer is
  // read from the store: if an answer is dropped after that, the answer that was read may be outdated.
  uint64_t now() const;
  // Keeps the answer to a question, which is a record of `key`, unless an answer was dropped since now() returned
  // `asked`.
  void put(const std::string& question, const std::string& key, grpc::Slice answer, uint64_t asked);
  void clear();                       // Forgets every answer.
  void drop(const std::string& key);  // Forgets every answer that is a record of this key.

 private:
  struct Entry {
    std::string question, key;
    grpc::Slice answer;
    int64_t bytes() const;
  };
  using Entries = std::list<Entry>;

  void erase(Entries::iterator entry);  // The caller must hold mutex_.

  const int64_t max_bytes_;
  mutable std::mutex mutex_;  // guards the members declared below
  Entries entries_;           // the cached replies, the most recently used first
  std::unordered_map<std::string, Entries::iterator> by_question_;
  std::unordered_multimap<std::string, Entries::iterator> by_key_;
  int64_t bytes_ = 0;
  uint64_t drops_ = 0;
};

}  // namespace wl
