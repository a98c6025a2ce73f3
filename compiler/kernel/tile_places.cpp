#include "compiler/kernel/tile_places.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "compiler/base/log2.h"

namespace wl {
namespace {

// Returns the repeat numbers, one for each axis, of the register with the given number.
std::vector<int64_t> repeats_of(const Layout& layout, int64_t number) {
  std::vector<int64_t> out(layout.rank(), 0);
  for (int axis = layout.rank() - 1; axis >= 0; --axis) {
    out[axis] = number % layout.repeats(axis);
    number /= layout.repeats(axis);
  }
  return out;
}

}  // namespace

TilePlaces::TilePlaces(const Layout& layout, int team, int wave)
    : layout_(layout), threads_(team), vector_(layout.lanes()), rank_(layout.shape.size()) {
  for (int axis = 0; axis < layout.rank(); ++axis) registers_ *= layout.repeats(axis);
  const int wave_bits = log2_floor(std::min(team, std::max(1, wave)));
  threads_bases_.assign(log2_floor(team), {'l', 0});
  std::vector<Layout::Base> vector_bases;
  int lane = 0, unit = wave_bits;
  for (const Layout::Base& base : layout.bases) {
    if (base.kind == 'v') vector_bases.push_back(base);
    if (base.kind == 'l') threads_bases_.at(lane++) = base;
    if (base.kind == 'u') threads_bases_.at(unit++) = base;
  }
  for (size_t bit = 0; bit < threads_bases_.size(); ++bit)
    if (threads_bases_[bit].vector == 0) replicated_ |= int64_t{1} << bit;
  std::vector<std::vector<int64_t>> first;  // for each register: the coordinates of its first element in thread 0
  for (int64_t number = 0; number < registers_; ++number) {
    const std::vector<int64_t> repeat = repeats_of(layout, number);
    std::vector<int64_t>& to = first.emplace_back();
    for (int axis = 0; axis < layout.rank(); ++axis) to.push_back(layout.first_of(axis, repeat));
  }
  const auto moved = [](const std::vector<Layout::Base>& bases, int64_t number) {
    Layout::Base sum{'v', 0};
    for (size_t bit = 0; bit < bases.size(); ++bit)
      if ((number >> bit & 1) != 0) sum.vector ^= bases[bit].vector;
    return sum;
  };
  coordinates_.reserve(static_cast<size_t>(size()) * rank_);
  for (int64_t thread = 0; thread < threads_; ++thread)
    for (int64_t number = 0; number < registers_; ++number)
      for (int64_t v = 0; v < vector_; ++v) {
        const Layout::Base sum{'v', moved(threads_bases_, thread).vector ^ moved(vector_bases, v).vector};
        for (int axis = 0; axis < layout.rank(); ++axis)
          coordinates_.push_back(first[number][axis] ^ static_cast<int64_t>(layout.part(sum, axis)));
      }
}

int64_t TilePlaces::thread_bits(std::span<const int> axes) const {
  int64_t out = 0;
  for (size_t bit = 0; bit < threads_bases_.size(); ++bit)
    for (int axis : axes)
      if (layout_.part(threads_bases_[bit], axis) != 0) out |= int64_t{1} << bit;
  return out;
}

int64_t TilePlaces::folded(int64_t number, std::span<const int> axes) const {
  const std::vector<int64_t> repeat = repeats_of(layout_, number);
  int64_t out = 0;
  for (int axis = 0; axis < layout_.rank(); ++axis) {
    const bool kept = std::find(axes.begin(), axes.end(), axis) == axes.end();
    if (kept) out = out * layout_.repeats(axis) + repeat[axis];
  }
  return out;
}

std::vector<int64_t> positions_in(const TilePlaces& from, const Layout& from_layout, const TilePlaces& by) {
  // Returns a key for the thread and element of a position; -1 if the element lies beyond what `from_layout` covers.
  const auto key = [&](const TilePlaces& places, int64_t at) {
    int64_t out = places.thread_of(at);
    const std::span<const int64_t> index = places.index(at);
    for (size_t axis = 0; axis < index.size(); ++axis) {
      const int64_t extent = from_layout.shape[axis], room = from_layout.outer[axis].count << from_layout.bits[axis];
      if (extent != 1 && index[axis] >= room) return int64_t{-1};
      out = out * std::max<int64_t>(1, room) + (extent == 1 ? 0 : index[axis]);
    }
    return out;
  };
  std::unordered_map<int64_t, int64_t> held;
  // If one thread holds an element at several positions, the first of these positions counts.
  for (int64_t at = from.size(); at-- > 0;) held[key(from, at)] = at;
  std::vector<int64_t> out;
  for (int64_t at = 0; at < by.size(); ++at) {
    const auto found = held.find(key(by, at));
    out.push_back(found == held.end() ? -1 : found->second);
  }
  return out;
}

std::vector<int64_t> packed_positions(const TilePlaces& from, const TilePlaces& words, int axis, int64_t first,
                                      int elements) {
  // An element that a thread holds: the thread's number, and the element's two coordinates.
  using Element = std::array<int64_t, 3>;
  std::map<Element, int64_t> held;
  for (int64_t at = from.size(); at-- > 0;) held[{from.thread_of(at), from.index(at)[0], from.index(at)[1]}] = at;
  std::vector<int64_t> out;
  for (int64_t at = 0; at < words.size(); ++at)
    for (int element = 0; element < elements; ++element) {
      const std::span<const int64_t> index = words.index(at);
      Element wanted{words.thread_of(at), index[0], index[0]};
      wanted[static_cast<size_t>(1 + axis)] = first + index[1] * elements + element;
      const auto found = held.find(wanted);
      out.push_back(found == held.end() ? -1 : found->second);
    }
  return out;
}

}  // namespace wl
