#include "compiler/model/banks.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace wl {
namespace {

constexpr int kWordBytes = 4, kWidestBytes = 16;

// Offsets of elements, and which threads take part.
class Threads {
 public:
  Threads(const Layout& layout, const std::vector<int64_t>& strides, int team, int wave)
      : layout_(layout), strides_(strides), lanes_(std::min(team, wave)) {
    int lane = 0, unit = std::countr_zero(static_cast<unsigned>(lanes_));
    used_.assign(std::countr_zero(static_cast<unsigned>(team)), {'l', 0});
    for (const Layout::Base& base : layout.bases)
      if (base.kind == 'l' || base.kind == 'u') used_.at(base.kind == 'l' ? lane++ : unit++) = base;
    for (size_t bit = 0; bit < used_.size(); ++bit)
      if (used_[bit].vector == 0) replicated_ |= int64_t{1} << bit;
  }

  int lanes() const { return lanes_; }
  bool stores(int64_t thread) const { return (thread & replicated_) == 0; }
  // Of element 0 of the vector that a thread has in a register.
  int64_t offset(int64_t thread, const std::vector<int64_t>& repeat) const {
    Layout::Base moved{'l', 0};
    for (size_t bit = 0; bit < used_.size(); ++bit)
      if ((thread >> bit & 1) != 0) moved.vector ^= used_[bit].vector;
    int64_t out = 0;
    for (int axis = 0; axis < layout_.rank(); ++axis)
      out += strides_[axis] * (layout_.first_of(axis, repeat) ^ static_cast<int64_t>(layout_.part(moved, axis)));
    return out;
  }

 private:
  const Layout& layout_;
  const std::vector<int64_t>& strides_;
  int lanes_;
  std::vector<Layout::Base> used_;  // by bit of a thread's number
  int64_t replicated_ = 0;
};

// How many elements of a vector are moved at once.
int64_t piece_of(const Layout& layout, const std::vector<int64_t>& strides, int64_t offset, int bytes) {
  const int axis = layout.vector_axis();
  if (axis < 0 || strides[axis] != 1) return 1;
  int64_t out = std::gcd<int64_t>(std::min(layout.lanes(), std::max(1, kWidestBytes / bytes)), offset);
  for (int a = 0; a < layout.rank(); ++a)
    if (a != axis && layout.shape[a] > 1) out = std::gcd(out, strides[a]);
  return out;
}

// Adds what the words cost that some lanes reach together: as many cycles as there are words in the fullest bank.
void add(BankUse& use, std::vector<int64_t> words, int banks) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::vector<int64_t> of_bank(banks, 0);
  for (int64_t word : words) ++of_bank[word % banks];
  use.cycles += *std::max_element(of_bank.begin(), of_bank.end());
  use.least += (static_cast<int64_t>(words.size()) + banks - 1) / banks;
}

}  // namespace

BankUse bank_use(const Layout& layout, const std::vector<int64_t>& strides, int64_t offset, const Swizzle& swizzle,
                 int bytes, const Gpu& gpu, int team, bool stores) {
  const Threads threads(layout, strides, team, gpu.wave);
  const int axis = layout.vector_axis();
  const int64_t piece = piece_of(layout, strides, offset, bytes), along = axis < 0 ? 0 : strides[axis];
  const int64_t places = along == 0 ? 1 : layout.lanes();  // of a vector, in memory
  const int64_t lane_bytes = std::max<int64_t>(kWordBytes, piece * bytes);
  const int64_t together = std::min<int64_t>(threads.lanes(), gpu.banks * kWordBytes / lane_bytes);
  BankUse out;
  std::vector<int64_t> repeat(layout.rank(), 0);
  for (bool more = true; more;) {
    for (int64_t v = 0; v < places; v += piece)
      for (int64_t first = 0; first < team; first += together) {
        std::vector<int64_t> words;
        for (int64_t thread = first; thread < first + together; ++thread) {
          if (stores && !threads.stores(thread)) continue;
          const int64_t at = swizzle.place_of(offset + threads.offset(thread, repeat) + v * along) * bytes;
          for (int64_t word = at / kWordBytes; word * kWordBytes < at + piece * bytes; ++word) words.push_back(word);
        }
        add(out, std::move(words), gpu.banks);
      }
    more = false;
    for (int a = layout.rank(); a-- > 0 && !more;) {
      more = ++repeat[a] < layout.repeats(a);
      if (!more) repeat[a] = 0;
    }
  }
  return out;
}

}  // namespace wl
