#include "compiler/emit/exchange.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "compiler/base/status.h"

namespace wl {
namespace {

uint64_t lowest_bit(uint64_t of) {
  return of & (~of + 1);
}

// A basis of vectors over F2. Each entry is the XOR (`value`) of the inserted vectors whose bits are set in `made_of`.
// The entries are reduced so that no two have the same lowest bit.
struct Span {
  struct Entry {
    uint64_t value = 0, made_of = 0;
  };
  std::vector<Entry> entries;

  // Reduces a vector by the basis. `value` becomes the remainder, which is 0 if the basis spans the vector, and
  // `made_of` says which vectors were XORed to get it.
  Entry rest_of(Entry entry) const {
    for (const Entry& known : entries)
      if ((entry.value & lowest_bit(known.value)) != 0) {
        entry.value ^= known.value;
        entry.made_of ^= known.made_of;
      }
    return entry;
  }
};

// Chooses for each lane the lane from which it takes a register. In no round may two lanes need different registers of
// the same lane.
class Solver {
 public:
  Solver(const Moves& moves, int lane_bits)
      : moves_(moves), lane_bits_(lane_bits), held_(moves.held & ((uint64_t{1} << lane_bits) - 1)) {}

  Exchange run() {
    for (uint64_t position : moves_.threads) out_.lane.push_back(position & held_);
    for (uint64_t position : moves_.registers) out_.lane_round.push_back(position & held_);
    out_.put.assign(moves_.threads.size(), 0);
    find_same();
    const std::vector<int> left = use_matching_copies();
    use_other_copies(left);
    put_elsewhere();
    take_turns();
    find_given();
    return std::move(out_);
  }

 private:
  uint64_t registers_of(uint64_t position) const { return position >> kRegisterBit; }

  // Finds conflicts: lanes of the result that need different registers of the same lane in one round. same_ gets the
  // XORs of the numbers of two such lanes.
  void find_same() {
    for (int bit = 0; bit < lane_bits_; ++bit) {
      if (moves_.threads[bit] == 0) continue;  // the lanes of the result that differ in this bit hold the same elements
      const Span::Entry rest = taken_.rest_of({out_.lane[bit], uint64_t{1} << bit});
      if (rest.value != 0) {
        taken_.entries.push_back(rest);
      } else {
        same_.push_back(rest.made_of);
      }
    }
  }

  // Notes that lanes which differ in this bit of their numbers will take from different lanes, so they no longer
  // conflict (find_same()). Removes one entry with this bit from same_, and clears the bit in all other entries.
  // Returns the removed entry; 0 if no entry has the bit.
  uint64_t tell_apart(int bit) {
    const auto with = std::find_if(same_.begin(), same_.end(), [bit](uint64_t one) { return (one >> bit & 1) != 0; });
    if (with == same_.end()) return 0;
    const uint64_t pivot = *with;
    same_.erase(with);
    for (uint64_t& other : same_)
      if ((other >> bit & 1) != 0) other ^= pivot;
    return pivot;
  }

  // Lanes whose numbers differ only in bits outside of held_ have copies of the same registers. Such a bit may
  // distinguish lanes of the result that need different registers of one lane. Then every lane takes from the copy
  // that has the same value of this bit as its own number. Returns the other bits outside of held_.
  std::vector<int> use_matching_copies() {
    std::vector<int> left;
    for (int bit = 0; bit < lane_bits_; ++bit) {
      if ((held_ >> bit & 1) != 0) continue;
      if (moves_.threads[bit] != 0 && tell_apart(bit) != 0) {
        out_.lane[bit] |= uint64_t{1} << bit;
      } else {
        left.push_back(bit);
      }
    }
    return left;
  }

  // Each bit in `copies` distinguishes two copies of a lane's registers. Lanes that still need different registers of
  // that lane are divided between the two copies. If there are no such lanes, each lane takes from the copy that has
  // the same value of the bit as its own number.
  void use_other_copies(const std::vector<int>& copies) {
    for (int copy : copies) {
      int bit = copy;
      if (!same_.empty()) {
        bit = std::countr_zero(same_.back());
        tell_apart(bit);
      }
      out_.lane[bit] |= uint64_t{1} << copy;
    }
  }

  // Lets lanes that still need different registers of one lane fill their own registers in different orders. So in
  // each round they take from different lanes.
  void put_elsewhere() {
    while (!same_.empty()) {
      const auto choice = best_choice();
      if (!choice) return;
      const auto [bit, number] = *choice;
      tell_apart(bit);
      taken_.entries.push_back(taken_.rest_of({out_.lane_round[number], 0}));
      out_.put[bit] |= uint64_t{1} << number;
      out_.lane[bit] ^= out_.lane_round[number];
    }
  }

  // Returns, for put_elsewhere(), a bit of the lane's number and a bit of the round's number. The bit of the round's
  // number must lead to lanes from which no lane takes yet; nullopt if there is no such pair. Pairs with which a lane
  // takes from itself in round 0 are preferred, since the exchange is then a butterfly.
  std::optional<std::pair<int, size_t>> best_choice() const {
    std::optional<std::pair<int, size_t>> any;
    for (int bit = 0; bit < lane_bits_; ++bit) {
      const auto has = [bit](uint64_t one) { return (one >> bit & 1) != 0; };
      if (std::none_of(same_.begin(), same_.end(), has)) continue;
      for (size_t number = 0; number < out_.lane_round.size(); ++number) {
        if (taken_.rest_of({out_.lane_round[number], 0}).value == 0) continue;
        if ((out_.lane[bit] ^ out_.lane_round[number]) == uint64_t{1} << bit) return std::pair(bit, number);
        if (!any) any = {bit, number};
      }
    }
    return any;
  }

  // If one lane must give more registers than a lane of the result has, adds rounds: lanes that still need different
  // registers of one lane take from it in different rounds.
  void take_turns() {
    while (!same_.empty()) {
      const int bit = std::countr_zero(same_.back());
      const uint64_t difference = tell_apart(bit);
      for (auto& [other_bit, other] : turns_)
        if ((other >> bit & 1) != 0) other ^= difference;
      turns_.emplace_back(bit, difference);
    }
    for (const auto& [bit, difference] : turns_) {
      out_.put[bit] |= uint64_t{1} << out_.lane_round.size();
      out_.lane_round.push_back(0);
    }
  }

  // Finds which register each lane gives. The number of the giving lane determines which thread takes from it, and thus
  // which register must be given.
  void find_given() {
    Span takers;
    for (int bit = 0; bit < lane_bits_; ++bit) {
      if (std::any_of(turns_.begin(), turns_.end(), [bit](const auto& turn) { return turn.first == bit; })) continue;
      const Span::Entry rest = takers.rest_of({out_.lane[bit], uint64_t{1} << bit});
      if (rest.value == 0) continue;
      const uint64_t pivot = lowest_bit(rest.value);
      for (Span::Entry& known : takers.entries)
        if ((known.value & pivot) != 0) {
          known.value ^= rest.value;
          known.made_of ^= rest.made_of;
        }
      takers.entries.push_back(rest);
    }
    const uint64_t real = (uint64_t{1} << moves_.registers.size()) - 1;
    const auto needed = [&](uint64_t takes) {  // returns the register that thread `takes` needs in round 0
      return registers_of(listed_sum(moves_.threads, takes) ^
                          listed_sum(moves_.registers, listed_sum(out_.put, takes) & real));
    };
    out_.give.assign(moves_.threads.size(), 0);
    for (const Span::Entry& entry : takers.entries)
      out_.give[std::countr_zero(lowest_bit(entry.value))] = needed(entry.made_of);
    for (size_t bit = lane_bits_; bit < moves_.threads.size(); ++bit)
      out_.give[bit] = listed_sum(out_.give, out_.lane[bit]) ^ registers_of(moves_.threads[bit]);
    for (size_t number = 0; number < moves_.registers.size(); ++number)
      out_.give_round.push_back(listed_sum(out_.give, out_.lane_round[number]) ^
                                registers_of(moves_.registers[number]));
    for (const auto& [bit, difference] : turns_) out_.give_round.push_back(needed(difference));
  }

  const Moves& moves_;
  int lane_bits_;
  uint64_t held_;  // the bits of a lane's number that decide which elements of the argument the lane holds
  Exchange out_;
  Span taken_;                                   // a basis of the numbers of the lanes from which some lane takes
  std::vector<uint64_t> same_;                   // for each conflict (find_same()): the XOR of two lane numbers
  std::vector<std::pair<int, uint64_t>> turns_;  // for each added round: a bit, and the XOR of the lanes it tells apart
};

}  // namespace

bool Exchange::own_lane(int lane_bits) const {
  for (size_t bit = 0; bit < lane.size(); ++bit)
    if (lane[bit] != (static_cast<int>(bit) < lane_bits ? uint64_t{1} << bit : 0)) return false;
  return true;
}

Exchange exchange_of(const Moves& moves, int lane_bits) {
  return Solver(moves, lane_bits).run();
}

}  // namespace wl
