// Random layouts that hold every element of a tile: position bits in any order, XORs of them, and replicated bits.
#pragma once

#include <algorithm>
#include <bit>
#include <random>
#include <string_view>
#include <vector>

#include "compiler/kernel/layout.h"

namespace wl::testing {

// Properties that all random layouts of a kernel share.
struct LayoutSpace {
  std::vector<int64_t> shape;
  int lane_bits = 0, unit_bits = 0;
  int vector_bits = 0;      // log2 of the elements per vector, in layouts with vectors
  bool axes_apart = false;  // whether every position bit moves along one axis only
};

inline int below(std::mt19937_64& random, int n) {
  return static_cast<int>(random() % static_cast<uint64_t>(n));
}

// Returns a random basis of F2^count: the unit vectors in random order, in half of the cases added to each other.
inline std::vector<uint64_t> random_basis(std::mt19937_64& random, int count) {
  std::vector<uint64_t> out;
  for (int i = 0; i < count; ++i) out.push_back(uint64_t{1} << i);
  std::shuffle(out.begin(), out.end(), random);
  if (count < 2 || below(random, 2) == 0) return out;
  for (int turns = below(random, 2 * count) + 1; turns > 0; --turns) {
    const int a = below(random, count), b = below(random, count);
    if (a != b) out[a] ^= out[b];
  }
  return out;
}

// Returns a random layout of the space. On each axis, bases cover a random number of the low coordinate bits, and the
// rest of the axis is repeated. A random number of these bases is assigned to lanes and waves, whose remaining bits
// are replicated (zero bases); registers get the bases that are left.
inline Layout random_layout(std::mt19937_64& random, const LayoutSpace& space) {
  Layout out;
  out.shape = space.shape;
  int total = 0;
  for (int64_t extent : space.shape) {
    const int low = std::countr_zero(static_cast<uint64_t>(extent));
    out.bits.push_back(low - below(random, std::min(3, low + 1)));
    out.outer.push_back({'r', extent >> out.bits.back()});
    total += out.bits.back();
  }
  const int axis = below(random, out.rank());
  const int vector = below(random, 3) == 0 || out.bits[axis] < space.vector_bits ? 0 : space.vector_bits;
  // `places` collects the coordinate bits that are not in vectors. mix() makes as many independent XORs of them, and
  // adds these to `vectors`, the bases whose kind (lane, unit or register) is still open.
  std::vector<uint64_t> places, vectors;
  const auto mix = [&] {
    for (uint64_t chosen : random_basis(random, static_cast<int>(places.size()))) {
      vectors.push_back(0);
      for (size_t i = 0; i < places.size(); ++i)
        if ((chosen >> i & 1) != 0) vectors.back() ^= places[i];
    }
    places.clear();
  };
  for (int a = 0, shift = 0; a < out.rank(); shift += out.bits[a++]) {
    for (int bit = 0; bit < out.bits[a]; ++bit) {
      if (a == axis && bit < vector) {
        out.bases.push_back({'v', uint64_t{1} << (shift + bit)});
      } else {
        places.push_back(uint64_t{1} << (shift + bit));
      }
    }
    if (space.axes_apart) mix();
  }
  mix();
  std::shuffle(vectors.begin(), vectors.end(), random);
  for (const auto& [kind, slots] : {std::pair('l', space.lane_bits), std::pair('u', space.unit_bits)}) {
    std::vector<uint64_t> mine(slots, 0);
    int used = std::min(slots, static_cast<int>(vectors.size()));
    if (below(random, 3) == 0) used = below(random, used + 1);
    for (int i = 0; i < used; ++i) {
      mine[i] = vectors.back();
      vectors.pop_back();
    }
    std::shuffle(mine.begin(), mine.end(), random);
    for (uint64_t one : mine) out.bases.push_back({kind, one});
  }
  for (uint64_t one : vectors) out.bases.push_back({'r', one});
  return out;
}

}  // namespace wl::testing
