#include "tests/simulated/mutants.h"

#include <regex>
#include <set>

#include "compiler/base/status.h"

namespace wl::testing {
namespace {

struct Breakage {
  const char* kind;  // kind of breakage; a kernel is broken once for every kind that applies to it
  const char* name;
  std::regex what;
  const char* with;  // replacement of the matched text; "$1" is the pattern's first group
};

const std::vector<Breakage>& breakages() {
  static const auto* const kAll = new std::vector<Breakage>{
      {"barrier", "a barrier is missing", std::regex("wl_barrier(_near)?\\(\\);"), ";"},
      {"shuffle", "a shuffle has half its distance", std::regex("wl_shuffle_xor<(16|8|4|2)>"),
       "wl_shuffle_xor<$1 / 2>"},
      {"shuffle", "a shuffle has twice its distance", std::regex("wl_shuffle_xor<(1|2|4|8)>"),
       "wl_shuffle_xor<$1 * 2>"},
      {"bound", "a tail is shorter", std::regex("wl_left\\((\\d+)L - "), "wl_left($1L - WL_LANES - "},
      {"bound", "a store's tail is longer", std::regex("(wl_store_n.*wl_left\\()(\\d+)L - "), "$1$2L + WL_LANES - "},
      // The pattern does not match a bound check of the first row of a tile or run. The number of such a row is a
      // multiple of the tile's height, so a bound that is lower by one row may exclude the same rows.
      {"bound", "a row less", std::regex("wl_within\\((?!v\\d+\\*\\d+L(?: \\+ \\d+L)?,)([^)]*), (\\d+)L\\)"),
       "wl_within($1, $2L - 1)"},
      {"bound", "a tile less", std::regex("wl_within\\((v\\d+\\*(\\d+)L), (\\d+)L\\)"), "wl_within($1, $3L - $2L)"},
      {"bound", "not clamped to the last row", std::regex("(const long v\\d+ = .*)wl_lmin\\(([^()]*), (\\d+)L\\)"),
       "$1($2)"},
      {"bound", "a piece is shorter", std::regex("(_high = .*wl_end_lane\\(.*), (\\d+)L\\)\\)"), "$1, $2L - 1))"},
      {"mask", "a store has no mask", std::regex("wl_store_n<(\\d)>(\\(.*), wl_left\\(.*\\)\\);"), "wl_store<$1>$2);"},
      {"mask", "a fold has no mask", std::regex("wl_keep\\(([a-z0-9_]+), .*>\\(\\)\\)\\);"), "$1);"},
      {"mask", "every thread stores what one should", std::regex("\\bplace == 0\\b|\\(place & \\d+\\) == 0"), "true"},
      {"mask", "rows beyond the last are stored", std::regex("if \\(wl_within\\([^)]*, \\d+L\\)\\)"), "if (true)"},
      {"async", "a wait is missing", std::regex("wl_wait<\\d>\\(\\);"), ";"},
      {"async", "a wait leaves a group more", std::regex("wl_wait<0>"), "wl_wait<1>"},
      {"async", "a wait leaves a group more", std::regex("wl_wait<1>"), "wl_wait<2>"},
      {"async", "a wait leaves a group more", std::regex("wl_wait<2>"), "wl_wait<3>"},
      {"async", "a group is not committed", std::regex("wl_commit\\(\\);"), ";"},
      {"slot", "a slot is the next one", std::regex("= \\(\\((v\\d+)( \\+ \\d+L)?\\)\\) % ([2-5])L;"),
       "= (($1$2 + 1L)) % $3L;"},
      {"phase", "a phase is not waited for", std::regex("wl_await(_near)?\\(.*\\);"), ";"},
      {"phase", "a phase of the other parity is waited for", std::regex("(wl_await(?:_near)?\\(.*, )(v\\d+)\\);"),
       "$011 - $2);"},
      {"phase", "nobody arrives", std::regex("wl_arrive(_copied)?\\(.*\\);"), ";"},
      {"phase", "a phase ends with fewer", std::regex("(wl_begin_phases<\\d+, )(\\d+),"), "$1$2 - 1,"},
      // No mutant swaps the two slots of a ring: a kernel that swaps them in every step still computes the right
      // values.
      {"phase", "a phase is always the first slot's", std::regex("(wl_(?:await|await_near|arrive)\\(p\\d+ \\+ )v\\d+"),
       "$010L"},
      {"pass", "a pass does not wait for the one before", std::regex("if \\(pass == 1\\)"), "if (pass <= 1)"},
      {"last", "a block counts fewer than there are", std::regex("wl_last<(\\d+)>"), "wl_last<$1 / 2>"},
      {"box", "a box begins eight columns further", std::regex("(wl_box_load<.*>\\(map\\d, place, [^,]*)"), "$1 + 8L"},
      {"box", "a box begins a row further", std::regex("(wl_box_load<.*>\\(map\\d, place, [^,]*, [^,]*)"), "$1 + 1L"},
      {"box", "a box has fewer rows", std::regex("wl_box_load<(\\d+),"), "wl_box_load<$1 - 8,"},
      {"box", "a box is missing", std::regex("wl_box_load<(\\d+), (\\d+)"), "wl_box_load<$1, $2 - 1"},
      {"box", "a box goes to another slot", std::regex("(wl_box_load<.*, p\\d+ \\+ )(v\\d+)\\*"), "$1(1 - ($2 & 1))*"},
      {"box", "a matrix has a row less", std::regex("(wl_box_map<.*, place, )(\\d+)L"), "$1$2L - 1L"},
      {"box", "a matrix has fewer columns", std::regex("(wl_box_map<.*, place, \\d+L, )(\\d+)L"), "$1$2L - 8L"},
      {"box", "rows of a matrix are further apart", std::regex("(wl_box_map<.*, )(\\d+)L\\);"), "$1$2L + 8L);"},
      {"round", "the last round begins a tile further", std::regex("\\(block \\+ (\\d+)L\\)"), "(block + $1L + 1L)"},
      {"round", "a part of the last round is missing", std::regex("^  if \\(block >= 0L && block < (\\d+)L\\)"),
       "  if (block >= 0L && block < $1L - 1L)"},
      {"round", "the last tiles' parts are not joined", std::regex("^    if \\(block >= 0L && block < (\\d+)L\\)"),
       "    if (block >= 0L && block < $1L / 2L)"},
      {"round", "another tile's parts are joined", std::regex("(wl_load<.*block\\*\\d+L) \\+ v\\d+\\*-\\d+L"), "$1"},
      {"round", "a turn is left out", std::regex("(v\\d+ < n\\d+_0);"), "$1 - 1;"},
      {"meet", "blocks of a cluster do not meet", std::regex("wl_meet\\(\\);"), "wl_barrier();"},
      {"matrix", "two registers of a factor are swapped",
       std::regex("(wl_mma_m16n8k(?:16|32)_\\w+\\(\\w+, \\w+, )(\\w+), (\\w+)"), "$1$3, $2"},
      {"matrix", "two registers of a factor are swapped",
       std::regex("(wl_mma_mfma(?:16|32)_\\w+\\(\\w+, )(\\w+), (\\w+)"), "$1$3, $2"},
      {"matrix", "registers of the other factor are swapped",
       std::regex("(wl_mma_(?:m16n8k16|m16n8k32|mfma16|mfma32)_.*, )(\\w+), (\\w+)\\);"), "$1$3, $2);"},
      {"shared factor", "products are not waited for", std::regex("wl_mma_wait\\(\\);"), ";"},
      {"shared factor", "a factor is read across k, not along it", std::regex("(wl_mma_wgmma64_\\w+<)0, (\\d)>"),
       "$011, $2>"},
      {"shared factor", "a factor is read along k, not across it", std::regex("(wl_mma_wgmma64_\\w+<\\d, )1>"),
       "$010>"},
      {"shared factor", "a factor begins elsewhere", std::regex("(wl_mma_wgmma64_\\w+<\\d, \\d>\\(\\w+ \\+ )(\\d+)L"),
       "$1$2L + 64"},
      {"shared factor", "two registers of a resident factor are swapped",
       std::regex("(wl_mma_wgmma64_held_\\w+<\\d>\\()(\\w+), (\\w+)"), "$1$3, $2"},
      {"shared factor", "the factor beside a resident one is read across k, not along it",
       std::regex("(wl_mma_wgmma64_held_\\w+<)0>"), "$011>"},
      {"shared factor", "the sums of two columns are swapped",
       std::regex("(wl_mma_wgmma64_\\w+<\\d, \\d>\\([^,]*, [^,]*, )(\\w+), (\\w+)"), "$1$3, $2"},
      {"swizzle", "pieces are swapped by fewer bits", std::regex("wl_swizzle<3, 3, 3>"), "wl_swizzle<2, 3, 3>"},
      {"swizzle", "panels are fewer", std::regex("wl_panels<6, (2|1), 6>"), "wl_panels<6, $1 - 1, 6>"},
      {"sums", "registers of the sums are swapped", std::regex("(wl_mma_m16n8k(?:16|32)_\\w+\\()(\\w+), (\\w+)"),
       "$1$3, $2"},
      {"pack", "elements of a word are swapped",
       std::regex("(wl_word_of_\\w+\\()(wl_part\\([^)]*\\)|\\w+), (wl_part\\([^)]*\\)|\\w+)\\)"), "$1$3, $2)"},
      {"words", "a word is of other elements", std::regex("(wl_word[^(]*\\()(p\\d+)"), "$1$2 + 2"},
      {"identity", "an identity is another", std::regex("-__builtin_inff\\(\\)"), "3e38f"},
  };
  return *kAll;
}

// An instruction prints one line for each register. Returns what all of its lines have in common, given one of them:
// the tile, the buffer and the called functions.
std::string instruction_of(const std::string& line) {
  static const std::regex kTile("t\\d+_"), kName("\\bp\\d+\\b|\\bwl_[a-z_]+|==|\\?"), kNumber("\\d+"),
      kPlace("\\(place(\\*\\d+)? \\+ \\d+\\)");
  std::smatch tile;
  if (!std::regex_search(line, tile, kTile))
    return std::regex_replace(std::regex_replace(line, kPlace, "place$1"), kNumber, "#");
  std::string out = tile.str();
  for (std::sregex_iterator name(line.begin(), line.end(), kName), end; name != end; ++name)
    append(&out, " ", name->str());
  return out;
}

}  // namespace

void break_kernel(int number, const Source& source, std::vector<Mutant>& mutants) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < source.text.size();) {
    const size_t end = source.text.find('\n', at);
    lines.push_back(source.text.substr(at, end - at));
    at = end + 1;
  }
  for (const Breakage& breakage : breakages()) {
    std::set<std::string> seen;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (std::regex_replace(lines[i], breakage.what, breakage.with) == lines[i]) continue;
      const bool alone =
          lines[i].find("wl_shuffle") != std::string::npos || lines[i].find("wl_barrier") != std::string::npos ||
          lines[i].find("wl_wait") != std::string::npos || lines[i].find("wl_await") != std::string::npos ||
          lines[i].find("wl_arrive") != std::string::npos || lines[i].find("wl_commit") != std::string::npos;
      const std::string instruction = instruction_of(lines[i]);
      if (!alone && !seen.insert(instruction).second) continue;
      Mutant mutant{number, breakage.kind, breakage.name, lines[i], source};
      mutant.source.text.clear();
      for (size_t j = 0; j < lines.size(); ++j) {
        const bool same = j == i || (!alone && instruction_of(lines[j]) == instruction);
        append(&mutant.source.text, same ? std::regex_replace(lines[j], breakage.what, breakage.with) : lines[j], "\n");
      }
      mutants.push_back(std::move(mutant));
    }
  }
}

}  // namespace wl::testing
