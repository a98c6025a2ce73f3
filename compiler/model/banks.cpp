#include "compiler/model/banks.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "compiler/kernel/tile_places.h"

namespace wl {
namespace {

constexpr int kWordBytes = 4, kWidestBytes = 16;

// Returns how many neighbouring elements of a tile's vector one access to shared memory moves.
int64_t piece_of(const Layout& layout, const std::vector<int64_t>& strides, int64_t offset, int bytes) {
  const int axis = layout.vector_axis();
  if (axis < 0 || strides[axis] != 1) return 1;
  int64_t out = std::gcd<int64_t>(std::min(layout.lanes(), std::max(1, kWidestBytes / bytes)), offset);
  for (int a = 0; a < layout.rank(); ++a)
    if (a != axis && layout.shape[a] > 1) out = std::gcd(out, strides[a]);
  return out;
}

// Adds to `use` the cycles of an access by several lanes at once to the 4-byte words `words`: as many cycles as there
// are words in the bank that holds most of them.
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
  const TilePlaces places(layout, team, gpu.wave);
  const int axis = layout.vector_axis();
  const int64_t piece = piece_of(layout, strides, offset, bytes);
  // The number of elements of one vector that lie at different addresses.
  const int64_t apart = axis < 0 || strides[axis] == 0 ? 1 : places.vector();
  const int64_t lane_bytes = std::max<int64_t>(kWordBytes, piece * bytes);
  const int64_t together = std::min<int64_t>({team, gpu.wave, gpu.banks * kWordBytes / lane_bytes});
  BankUse out;
  for (int64_t number = 0; number < places.registers(); ++number)
    for (int64_t v = 0; v < apart; v += piece)
      for (int64_t first = 0; first < team; first += together) {
        std::vector<int64_t> words;
        for (int64_t thread = first; thread < first + together; ++thread) {
          const int64_t place = places.at(thread, number, v);
          if (stores && !places.stores(place)) continue;
          const std::span<const int64_t> index = places.index(place);
          const int64_t element = std::inner_product(index.begin(), index.end(), strides.begin(), offset);
          const int64_t at = swizzle.place_of(element) * bytes;
          for (int64_t word = at / kWordBytes; word * kWordBytes < at + piece * bytes; ++word) words.push_back(word);
        }
        add(out, std::move(words), gpu.banks);
      }
  return out;
}

}  // namespace wl
