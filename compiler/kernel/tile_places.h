// Where a team holds the elements of a tile: a position is a register of a thread, and an element of its vector. The
// interpreter keeps a value for each position, so that what one thread has in its registers is not what another has,
// and who counts bank conflicts asks where threads access memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/kernel/layout.h"

namespace wl {

class TilePlaces {
 public:
  // `team` threads (1 without lanes), of which `wave` run together.
  TilePlaces(const Layout& layout, int team, int wave);

  // Positions: thread after thread, register after register as repeats number them (the last axis fastest), element
  // after element of a vector.
  int64_t size() const { return threads_ * registers_ * vector_; }
  int64_t at(int64_t thread, int64_t number, int64_t v) const { return (thread * registers_ + number) * vector_ + v; }
  int64_t thread_of(int64_t at) const { return at / vector_ / registers_; }
  int64_t register_of(int64_t at) const { return at / vector_ % registers_; }
  int64_t registers() const { return registers_; }
  int64_t vector() const { return vector_; }
  // The coordinates of what a position holds; they may lie beyond the tile's shape.
  std::span<const int64_t> index(int64_t at) const {
    return std::span(coordinates_).subspan(static_cast<size_t>(at) * rank_, rank_);
  }
  // Whether the thread of a position stores what several threads hold: the first of them does.
  bool stores(int64_t at) const { return (thread_of(at) & replicated_) == 0; }
  // The bits of a thread's number that move along one of the axes.
  int64_t thread_bits(std::span<const int> axes) const;
  // The register that has repeat 0 along these axes, and the repeats of a register along the others.
  int64_t folded(int64_t number, std::span<const int> axes) const;

 private:
  Layout layout_;
  int64_t threads_ = 1, registers_ = 1, vector_ = 1;
  int64_t replicated_ = 0;
  size_t rank_ = 0;
  std::vector<int64_t> coordinates_;
  std::vector<Layout::Base> threads_bases_;  // by bit of a thread's number; vector 0 where it has none
};

// For each position of `by`, where its thread holds the same element of `from`, whose axes of extent 1 have one
// coordinate for all; -1: it holds it nowhere.
std::vector<int64_t> positions_in(const TilePlaces& from, const Layout& from_layout, const TilePlaces& by);

// For each position of the words of a pack, and each of `elements` in a word, where the thread holds that element of
// `from`: words follow one another along `axis` of it, from element `first` on. -1: the thread holds it nowhere.
std::vector<int64_t> packed_positions(const TilePlaces& from, const TilePlaces& words, int axis, int64_t first,
                                      int elements);

}  // namespace wl
