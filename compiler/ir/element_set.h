// A set of elements of one tensor: a bitmap in pages of 4096 elements, each allocated on first use. position() gives an
// element's rank (how many elements of the set come before it) in constant time, so that the values of the set's
// elements can be stored densely, in index order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace wl {

class ElementSet {
 public:
  explicit ElementSet(int64_t size) : page_of_(static_cast<size_t>((size + kPage - 1) / kPage), -1) {}

  void insert(int64_t i) { page(i >> 12).bits[static_cast<size_t>(i >> 6) & 63] |= uint64_t{1} << (i & 63); }
  void insert_range(int64_t begin, int64_t end) {
    while (begin < end) {
      if ((begin & 63) == 0 && end - begin >= 64) {
        page(begin >> 12).bits[static_cast<size_t>(begin >> 6) & 63] = ~uint64_t{0};
        begin += 64;
      } else {
        insert(begin++);
      }
    }
  }
  void insert_all(const ElementSet& other) {
    for (size_t p = 0; p < other.page_of_.size(); ++p) {
      if (other.page_of_[p] < 0) continue;
      Page& to = page(static_cast<int64_t>(p));
      const Page& from = other.pages_[static_cast<size_t>(other.page_of_[p])];
      for (size_t w = 0; w < 64; ++w) to.bits[w] |= from.bits[w];
    }
  }

  // Computes the ranks of all elements. Must be called after the last insert() and before count() or position().
  void freeze() {
    count_ = 0;
    for (int32_t p : page_of_) {
      if (p < 0) continue;
      Page& at = pages_[static_cast<size_t>(p)];
      at.first = count_;
      int in_page = 0;
      for (size_t w = 0; w < 64; ++w) {
        at.before[w] = static_cast<uint16_t>(in_page);
        in_page += std::popcount(at.bits[w]);
      }
      count_ += in_page;
    }
  }
  int64_t count() const { return count_; }
  // Returns the rank of element `i`, which must be in the set.
  int64_t position(int64_t i) const {
    const Page& at = pages_[static_cast<size_t>(page_of_[static_cast<size_t>(i >> 12)])];
    size_t w = static_cast<size_t>(i >> 6) & 63;
    return at.first + at.before[w] + std::popcount(at.bits[w] & ((uint64_t{1} << (i & 63)) - 1));
  }

  // Calls visit(element) for every element of the set, in increasing order.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t p = 0; p < page_of_.size(); ++p) {
      if (page_of_[p] < 0) continue;
      const Page& at = pages_[static_cast<size_t>(page_of_[p])];
      for (size_t w = 0; w < 64; ++w) {
        for (uint64_t bits = at.bits[w]; bits != 0; bits &= bits - 1) {
          visit(static_cast<int64_t>(p * kPage + w * 64) + std::countr_zero(bits));
        }
      }
    }
  }

 private:
  static constexpr int64_t kPage = 4096;
  struct Page {
    std::array<uint64_t, 64> bits{};
    std::array<uint16_t, 64> before{};
    int64_t first = 0;
  };
  Page& page(int64_t number) {
    int32_t& at = page_of_[static_cast<size_t>(number)];
    if (at < 0) {
      at = static_cast<int32_t>(pages_.size());
      pages_.emplace_back();
    }
    return pages_[static_cast<size_t>(at)];
  }

  std::vector<int32_t> page_of_;
  std::vector<Page> pages_;
  int64_t count_ = 0;
};

}  // namespace wl
