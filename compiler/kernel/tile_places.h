// Where the threads of a team hold the elements of a tile. A position is one element of the vector in one register of
// one thread. The interpreter keeps a value for each position, since the registers of one thread are not those of
// another. The code that counts bank conflicts asks here which elements each thread accesses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/kernel/layout.h"

namespace wl {

class TilePlaces {
 public:
  // Places the elements of a tile with layout `layout` in a team of `team` threads (1 on machines without lanes), of
  // which `wave` form a wave.
  TilePlaces(const Layout& layout, int team, int wave);

  // Positions are ordered by thread, within a thread by register (in the order of its repeats, the last axis fastest),
  // and within a register by element of the vector.
  int64_t size() const { return threads_ * registers_ * vector_; }
  int64_t at(int64_t thread, int64_t number, int64_t v) const { return (thread * registers_ + number) * vector_ + v; }
  int64_t thread_of(int64_t at) const { return at / vector_ / registers_; }
  int64_t register_of(int64_t at) const { return at / vector_ % registers_; }
  int64_t registers() const { return registers_; }
  int64_t vector() const { return vector_; }
  // The coordinates of the element at a position; they may lie beyond the tile's shape.
  std::span<const int64_t> index(int64_t at) const {
    return std::span(coordinates_).subspan(static_cast<size_t>(at) * rank_, rank_);
  }
  // Whether the thread of a position stores its element: if several threads hold the same element, only the first
  // stores it.
  bool stores(int64_t at) const { return (thread_of(at) & replicated_) == 0; }
  // The bits of a thread's number that move along at least one of the axes.
  int64_t thread_bits(std::span<const int> axes) const;
  // Returns the number of the register that is left of register `number` when `axes` are folded away: it counts only
  // the register's repeats along the other axes.
  int64_t folded(int64_t number, std::span<const int> axes) const;

 private:
  Layout layout_;
  int64_t threads_ = 1, registers_ = 1, vector_ = 1;
  int64_t replicated_ = 0;
  size_t rank_ = 0;
  std::vector<int64_t> coordinates_;
  // The base of each bit of a thread's number; vector 0: that bit moves along no axis.
  std::vector<Layout::Base> threads_bases_;
};

// For each position of `by`, the position in `from` where the same thread holds the same element, or -1 where the
// thread does not hold it. Along an axis where `from_layout` has extent 1, every coordinate is the same element.
std::vector<int64_t> positions_in(const TilePlaces& from, const Layout& from_layout, const TilePlaces& by);

// The positions in `from` that a pack instruction reads. For each position of its words, and each of the `elements` of
// a word: the position at which the same thread holds that element, or -1 if the thread does not hold it. Words follow
// one another along `axis` of `from`, from element `first` on.
std::vector<int64_t> packed_positions(const TilePlaces& from, const TilePlaces& words, int axis, int64_t first,
                                      int elements);

}  // namespace wl
