// A set of ops of a graph, stored as bits. An op is a small number: its index in CoverValues::anchors().
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace wl {

class OpSet {
 public:
  explicit OpSet(int size = 0) : words_((static_cast<size_t>(size) + 63) / 64, 0) {}
  void add(int op) { words_[static_cast<size_t>(op) / 64] |= uint64_t{1} << (op % 64); }
  bool has(int op) const { return ((words_[static_cast<size_t>(op) / 64] >> (op % 64)) & 1) != 0; }
  OpSet& operator|=(const OpSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  OpSet& operator&=(const OpSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  template <typename Visit>
  void each(Visit visit) const {
    for (size_t i = 0; i < words_.size(); ++i)
      for (uint64_t rest = words_[i]; rest != 0; rest &= rest - 1)
        visit(static_cast<int>(i) * 64 + std::countr_zero(rest));
  }
  bool operator==(const OpSet&) const = default;

 private:
  std::vector<uint64_t> words_;
};

}  // namespace wl
